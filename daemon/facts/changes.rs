//! Changes of facts: between two collections, and by resources.

use super::schema::{FactSource, FactSpec};
use super::table::SCHEMA;
use crate::expressions::Value;

/// A fact that differs between two collections.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedFact {
    /// The dotted name, as an expression uses it.
    pub name: String,
    /// The value before; `None` if the fact was absent.
    pub before: Option<Value>,
    /// The value now; `None` if the fact is absent.
    pub after: Option<Value>,
}

/// Returns the used facts that differ. The names are those of expressions, without `facts.` in front.
#[must_use]
pub fn changed_facts<'names>(
    before: &Value,
    after: &Value,
    used: impl IntoIterator<Item = &'names str>,
) -> Vec<ChangedFact> {
    let changed = |name: &str| {
        let (old, new) = (value_of(before, name), value_of(after, name));
        let change =
            || ChangedFact { name: name.to_owned(), before: old.cloned(), after: new.cloned() };
        (old != new).then(change)
    };
    used.into_iter().filter_map(changed).collect()
}

/// Returns true if one dotted name is the other one or leads into it.
#[must_use]
pub fn names_overlap(one: &str, other: &str) -> bool {
    let below = |name: &str, above: &str| {
        name.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    below(one, other) || below(other, one)
}

/// Returns the value at a dotted name; a name with an index stands for its whole list or map.
fn value_of<'facts>(facts: &'facts Value, name: &str) -> Option<&'facts Value> {
    let name = name.split('[').next().unwrap_or(name);
    facts.at_path(name)
}

/// The kinds whose resources change facts, with these facts.
const CHANGES: &[(&str, &[&str])] = &[
    ("hostname", &["hostname", "fqdn"]),
    ("hosts", &["fqdn"]),
    ("kmod", &["filesystems", "interfaces", "block_devices"]),
    ("mount", &["mounts", "filesystems"]),
    ("pkg", &["reboot_required"]),
    ("swap", &["memory.swap_mb"]),
    ("timezone", &["time_zone"]),
];

/// Returns the facts that a resource changes: by its kind, and by the path that it writes.
#[must_use]
pub fn facts_changed_by_kind(kind: &str, path: Option<&str>) -> Vec<&'static str> {
    let by_kind = CHANGES.iter().filter(|(name, _)| *name == kind).flat_map(|(_, facts)| *facts);
    let reads = |spec: &&FactSpec| {
        let mut sources = spec.sources.iter();
        path.is_some_and(|path| {
            sources.any(|source| match source {
                FactSource::Path(source) => {
                    let inside = path.strip_prefix(source);
                    inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                }
                FactSource::Polled(_) | FactSource::Network | FactSource::Periodic => false,
            })
        })
    };
    let by_path = SCHEMA.iter().filter(reads).map(|spec| spec.name);
    let mut facts: Vec<&'static str> = by_kind.copied().chain(by_path).collect();
    facts.sort_unstable();
    facts.dedup();
    facts
}

/// Returns the kinds whose resources change a fact, for its description.
#[must_use]
pub fn kinds_that_change(fact: &str) -> Vec<&'static str> {
    CHANGES.iter().filter(|(_, facts)| facts.contains(&fact)).map(|(kind, _)| *kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_resources::KindSet;

    #[test]
    fn names_overlap_by_whole_parts() {
        assert!(names_overlap("os.id", "os") && names_overlap("mounts", "mounts./srv"));
        assert!(!names_overlap("os", "osx"));
    }

    #[test]
    fn only_used_facts_count_as_changed() {
        let facts = |name: &str, count: i64| {
            let json = serde_json::json!({"hostname": name, "cpu": {"count": count}});
            Value::from_json(json).expect("facts")
        };
        let changed = changed_facts(&facts("a", 2), &facts("b", 4), ["hostname", "fqdn"]);
        let names: Vec<&str> = changed.iter().map(|change| change.name.as_str()).collect();
        assert_eq!(names, ["hostname"]);
        assert_eq!(changed_facts(&facts("a", 2), &facts("a", 4), ["cpu"]).len(), 1);
    }

    #[test]
    fn the_table_names_kinds_and_facts_that_exist() {
        for (kind, facts) in CHANGES {
            assert!(KindSet::of_this_build().find(kind).is_some(), "{kind}");
            for fact in *facts {
                assert!(super::super::find_fact(fact).is_some(), "{fact}");
            }
        }
        assert_eq!(facts_changed_by_kind("file", Some("/etc/hosts")), ["fqdn"]);
        assert_eq!(facts_changed_by_kind("file", Some("/etc/hosts.allow")), Vec::<&str>::new());
        assert_eq!(
            facts_changed_by_kind("file", Some("/etc/steadfast/facts.d/rack.yaml")),
            ["local"]
        );
        assert_eq!(kinds_that_change("mounts"), ["mount"]);
    }
}
