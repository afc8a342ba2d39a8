//! The schema of facts: the parts of a row, and look-ups in the table.

use super::table::SCHEMA;
use crate::expressions::{MapKey, Value, ValueType};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The class of a fact: it decides where an expression may use the fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactClass {
    /// The value stays the same until the host boots again.
    Fixed,
    /// The value can change at any time; the daemon watches its sources.
    Watched,
    /// The value changes all the time; expressions cannot use the fact.
    DisplayOnly,
}

impl FactClass {
    /// Returns the name for messages and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed until reboot",
            Self::Watched => "watched",
            Self::DisplayOnly => "display only",
        }
    }
}

/// The type of a fact, in a form that a static table can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactType {
    /// `true` or `false`.
    Bool,
    /// An integer.
    Int,
    /// A number with a fraction.
    Float,
    /// A string.
    Text,
    /// A list of strings.
    Texts,
    /// Network interfaces by name.
    Interfaces,
    /// Mounted file systems by mount point.
    Mounts,
    /// Block devices by name.
    BlockDevices,
    /// Values of the operator by name, each with a type of its own.
    Local,
}

impl FactType {
    /// Returns the type in the graph language.
    #[must_use]
    pub fn value_type(self) -> ValueType {
        let texts = || ValueType::List(Arc::new(ValueType::Text));
        let table = |keys: &[(&str, ValueType, bool)]| {
            let key = |(name, value_type, optional): &(&str, ValueType, bool)| {
                let key = MapKey { value_type: value_type.clone(), optional: *optional };
                ((*name).to_owned(), key)
            };
            ValueType::AnyMap(Arc::new(ValueType::Map(Arc::new(keys.iter().map(key).collect()))))
        };
        match self {
            Self::Bool => ValueType::Bool,
            Self::Int => ValueType::Int,
            Self::Float => ValueType::Float,
            Self::Text => ValueType::Text,
            Self::Texts => texts(),
            Self::Interfaces => table(&[
                ("addresses", texts(), false),
                ("mac", ValueType::Text, true),
                ("mtu", ValueType::Int, false),
                ("state", ValueType::Text, false),
            ]),
            Self::Mounts => table(&[
                ("device", ValueType::Text, false),
                ("options", texts(), false),
                ("type", ValueType::Text, false),
            ]),
            Self::BlockDevices => table(&[
                ("model", ValueType::Text, true),
                ("read_only", ValueType::Bool, false),
                ("removable", ValueType::Bool, false),
                ("rotational", ValueType::Bool, false),
                ("size_mb", ValueType::Int, false),
            ]),
            Self::Local => ValueType::AnyMap(Arc::new(ValueType::Unknown)),
        }
    }
}

/// A source whose change can change a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactSource {
    /// A file, or a directory with its entries. The path is absolute.
    Path(&'static str),
    /// A file of the kernel that poll(2) reports: the host name or the mount table.
    Polled(&'static str),
    /// Addresses, routes and interfaces, which the kernel reports over netlink.
    Network,
    /// No event exists; the daemon collects every 30 s.
    Periodic,
}

/// One fact.
#[derive(Clone, Copy, Debug)]
pub struct FactSpec {
    /// The dotted name below `facts`.
    pub name: &'static str,
    /// The type.
    pub fact_type: FactType,
    /// The unit, for numbers.
    pub unit: Option<&'static str>,
    /// The class.
    pub class: FactClass,
    /// The regular expression of each string of the value.
    pub pattern: Option<&'static str>,
    /// True if a host may lack the fact; an expression must then name a default.
    pub optional: bool,
    /// True if the control socket does not show the fact.
    pub private: bool,
    /// One sentence of description.
    pub doc: &'static str,
    /// The sources that change a watched fact.
    pub sources: &'static [FactSource],
}

/// Finds a fact by its whole name.
#[must_use]
pub fn find_fact(name: &str) -> Option<&'static FactSpec> {
    SCHEMA.iter().find(|spec| spec.name == name)
}

/// Returns the facts that a dotted name uses: the fact itself, the fact that the name leads into, or all facts of a
/// group such as `os`.
pub(super) fn used_by_name(name: &str) -> impl Iterator<Item = &'static FactSpec> + '_ {
    SCHEMA.iter().filter(move |spec| is_below(name, spec.name) || is_below(spec.name, name))
}

/// Returns true if the dotted name is the other one or leads into it.
fn is_below(name: &str, above: &str) -> bool {
    name.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns true if the name is a fact or a group of facts, such as `os`.
#[must_use]
pub fn is_fact_or_group(name: &str) -> bool {
    SCHEMA.iter().any(|spec| is_below(spec.name, name))
}

/// Returns true if the name is a fact, a group, or leads into a fact, such as `local.rack`.
#[must_use]
pub fn is_known_name(name: &str) -> bool {
    used_by_name(name).next().is_some()
}

/// Returns the sources of the watched facts among these dotted names, without `facts.` in front.
#[must_use]
pub fn sources_of_facts<'names>(
    names: impl IntoIterator<Item = &'names str>,
) -> BTreeSet<FactSource> {
    let used = names.into_iter().flat_map(used_by_name);
    let watched = used.filter(|spec| spec.class == FactClass::Watched);
    watched.flat_map(|spec| spec.sources).copied().collect()
}

/// Returns the type of `facts` for the checker of expressions. The types of local facts are those of their values.
#[must_use]
pub fn facts_type(facts: &Value) -> ValueType {
    let mut top = BTreeMap::new();
    for spec in SCHEMA {
        let value_type = match spec.fact_type {
            FactType::Local => facts
                .at_path(spec.name)
                .map_or_else(|| ValueType::Map(Arc::default()), Value::value_type),
            other => other.value_type(),
        };
        let key = MapKey { value_type, optional: spec.optional };
        match spec.name.split_once('.') {
            None => {
                top.insert(spec.name.to_owned(), key);
            }
            Some((group, name)) => {
                let group = top
                    .entry(group.to_owned())
                    .or_insert_with(|| MapKey::required(ValueType::Map(Arc::default())));
                if let ValueType::Map(keys) = &mut group.value_type {
                    Arc::make_mut(keys).insert(name.to_owned(), key);
                }
            }
        }
    }
    ValueType::Map(Arc::new(top))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_patterns_compile() {
        for pair in SCHEMA.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
        for spec in SCHEMA {
            if let Some(pattern) = spec.pattern {
                regex_lite::Regex::new(pattern).expect(spec.name);
            }
            assert_eq!(spec.class == FactClass::Watched, !spec.sources.is_empty(), "{}", spec.name);
            assert!(spec.name.split('.').count() <= 2, "{}", spec.name);
        }
    }

    #[test]
    fn names_lead_to_their_sources() {
        let sources = sources_of_facts(["mounts", "os", "cpu.count", "interfaces.eth0.mtu"]);
        let expected = [
            FactSource::Path("/etc/os-release"),
            FactSource::Path("/usr/lib/os-release"),
            FactSource::Polled("/proc/self/mountinfo"),
            FactSource::Network,
        ];
        assert_eq!(sources, BTreeSet::from(expected));
        assert!(is_fact_or_group("os") && is_fact_or_group("os.id") && !is_fact_or_group("o"));
    }

    #[test]
    fn the_type_of_all_facts_has_groups_and_optional_keys() {
        let local = Value::from_json(serde_json::json!({"local": {"rack": 7}})).expect("facts");
        let text = facts_type(&local).to_string();
        assert!(text.contains("cpu: map {count: int, model?: string}"), "{text}");
        assert!(text.contains("local: map {rack: int}"), "{text}");
        assert!(text.contains("hostname: string"), "{text}");
    }
}
