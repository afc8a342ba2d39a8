//! Reads live objects back as declarations, for `steadfast inspect`.
//!
//! An inspector must change nothing, and must never return a secret: a secret field is a [`Field::Secret`].
//!
//! Reading order: `file.rs`, `svc.rs`, `pkg.rs`, `account.rs`, `identity.rs`, `locale.rs`, `hosts.rs`, `kernel.rs`,
//! `unit.rs`.

mod account;
mod file;
mod hosts;
mod identity;
mod kernel;
mod locale;
mod pkg;
mod svc;
mod unit;

use crate::failure::Failure;
use crate::host::Host;
use crate::kind::Value;
use crate::resource::Answer;

/// A live object as a declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// The name of the resource.
    pub name: String,
    /// The fields that differ from the defaults of the kind, in the order of its table.
    pub fields: Vec<(&'static str, Field)>,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// A value that may be shown.
    Shown(Value),
    /// A secret, by the name that a graph may give it. The value itself is never read into a declaration.
    Secret(String),
}

/// Reads one object by name; none if the object does not exist.
pub type InspectOne =
    for<'a> fn(&'a Host, &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>>;

/// Lists the names of all objects of a kind.
pub type ListNames = for<'a> fn(&'a Host) -> Answer<'a, Result<Vec<String>, Failure>>;

/// The inspection of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Inspector {
    /// The name of the kind.
    pub kind: &'static str,
    /// Reads one object.
    pub one: InspectOne,
    /// Lists all objects; none if a kind has too many to list, such as files.
    pub all: Option<ListNames>,
}

/// Returns the inspectors, by kind.
#[must_use]
pub fn inspectors() -> &'static [Inspector] {
    &[
        file::INSPECTOR,
        account::GROUPS,
        identity::HOSTNAME,
        hosts::INSPECTOR,
        kernel::MODULES,
        locale::INSPECTOR,
        kernel::MOUNTS,
        pkg::INSPECTOR,
        svc::INSPECTOR,
        kernel::SWAP,
        kernel::PARAMETERS,
        identity::TIMEZONE,
        unit::INSPECTOR,
        account::USERS,
    ]
}

/// Makes a field that may be shown.
fn text(name: &'static str, value: impl Into<String>) -> (&'static str, Field) {
    (name, Field::Shown(Value::Text(value.into())))
}

/// Makes the name of a secret from a kind, a name and a field: letters, digits and `_`.
fn secret_name(kind: &str, name: &str, field: &str) -> String {
    let all = format!("{kind}_{name}_{field}");
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let mut text: String = all.chars().map(plain).collect();
    while text.contains("__") {
        text = text.replace("__", "_");
    }
    text
}
