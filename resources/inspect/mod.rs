//! Reads live objects back as declarations, for `steadfast inspect`.
//!
//! An inspector must change nothing, and must never return a secret: a secret field is a [`Field::Secret`].
//!
//! Reading order: `file.rs`, `svc.rs`, `pkg.rs`, `account.rs`, `identity.rs`, `locale.rs`, `hosts.rs`, `kernel.rs`,
//! `unit.rs`, `contained.rs` (several objects in one file), `edits.rs`, `keys.rs`, `cron.rs`, `stored.rs`, `git.rs`,
//! `divert.rs`.

mod account;
mod contained;
mod cron;
mod divert;
mod edits;
mod file;
mod git;
mod hosts;
mod identity;
mod kernel;
mod keys;
mod locale;
mod pkg;
mod stored;
mod svc;
mod unit;

pub use file::SOURCES;

use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;

/// A live object as a declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// The name of the resource.
    pub name: String,
    /// The fields that differ from the defaults of the kind, in the order of its table.
    pub fields: Vec<(&'static str, Field)>,
    /// The reason why a plan of the declaration is not empty, or what it omits; at most one line.
    pub note: Option<String>,
}

impl Inspected {
    fn new(name: impl Into<String>, fields: Vec<(&'static str, Field)>) -> Self {
        Self { name: name.into(), fields, note: None }
    }

    fn noting(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }
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
        divert::INSPECTOR,
        file::INSPECTOR,
        stored::FIREWALL,
        git::INSPECTOR,
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
        account::USERS,
    ]
}

/// Reads all objects in a container, a file or an account; none if the container does not exist.
pub type InspectAll =
    for<'a> fn(&'a Host, &'a str) -> Answer<'a, Result<Option<Vec<Inspected>>, Failure>>;

/// The inspection of a kind with several objects in one file or account, which the user names instead of an object.
#[derive(Clone, Copy, Debug)]
pub struct ContainerInspector {
    /// The name of the kind.
    pub kind: &'static str,
    /// The noun for the container: `file`, `list`, `unit` or `user`.
    pub container: &'static str,
    /// Reads the objects in one container.
    pub read: InspectAll,
    /// Lists all containers with objects; none if any file can be one.
    pub all: Option<ListNames>,
}

/// Returns the inspectors of containers, by kind.
#[must_use]
pub fn container_inspectors() -> &'static [ContainerInspector] {
    &[
        edits::BLOCKS,
        cron::INSPECTOR,
        edits::INI,
        edits::JSON,
        stored::REPOSITORIES,
        keys::INSPECTOR,
        edits::TOML,
        unit::INSPECTOR,
        edits::YAML,
    ]
}

/// The kinds whose objects cannot be read back, with the reason and the advice.
const NOT_ON_THE_HOST: &[(&str, &str)] = &[
    ("archive", "the host does not store the address of an unpacked archive: declare it by hand"),
    ("exec", "a command leaves no object: inspect the files and services that it makes"),
    ("export", "exports are in the world, not on the host"),
    ("fetch", "the host does not store the address of a download: `inspect file` prints the file"),
    ("kv", "values are in the world, not on the host"),
    ("line", "a line has no name in its file: `inspect file` prints the whole file"),
    ("msg", "a message leaves no object"),
    ("noop", "noop has no object"),
    ("password", "a password is in the state of steadfast alone, and is never shown"),
    ("print", "print has no object"),
    ("probe", "a probe has no object"),
    ("replace", "a replaced text has no mark in its file: `inspect file` prints the whole file"),
    ("test", "test has no object"),
    ("timer", "timer has no object"),
    ("value", "value has no object"),
];

/// Returns the reason why objects of a kind cannot be inspected, if the kind is one of this build.
#[must_use]
pub fn not_inspected(kind: &str) -> Option<&'static str> {
    NOT_ON_THE_HOST.iter().find(|(own, _)| *own == kind).map(|(_, why)| *why)
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

#[cfg(test)]
mod tests {
    use super::{container_inspectors, inspectors, not_inspected};
    use crate::kind_set::KindSet;

    #[test]
    fn each_kind_has_an_inspector_or_a_reason() {
        for kind in KindSet::of_this_build().names() {
            let has_one = inspectors().iter().any(|it| it.kind == kind);
            let has_container = container_inspectors().iter().any(|it| it.kind == kind);
            let has_reason = not_inspected(kind).is_some();
            let count = [has_one, has_container, has_reason].iter().filter(|it| **it).count();
            assert_eq!(count, 1, "{kind}: expected an inspector, or a reason in NOT_ON_THE_HOST");
        }
    }
}
