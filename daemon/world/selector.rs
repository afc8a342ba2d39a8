//! The selection of exports by one collection of a graph.

use super::bundle::matches_pattern;

/// The exports that a collection takes: those of one kind, from hosts that match any of the patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectionSelector {
    /// The kind of the exported resources.
    pub kind: String,
    /// Patterns of host names, such as `web*`.
    pub from: Vec<String>,
    /// The time over which the hosts take over a change of these exports, in seconds.
    pub splay: u64,
}

impl CollectionSelector {
    /// Returns true if the collection takes resources of this kind from this host.
    ///
    /// ```
    /// # use steadfast::world::selector::CollectionSelector;
    /// let selector = CollectionSelector { kind: "file".into(), from: vec!["web*".into()], splay: 0 };
    /// assert!(selector.selects("web1", "file") && !selector.selects("db1", "file"));
    /// ```
    #[must_use]
    pub fn selects(&self, host: &str, kind: &str) -> bool {
        self.kind == kind && self.from.iter().any(|pattern| matches_pattern(pattern, host))
    }

    /// Returns a text that no other selection has.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} from {}", self.kind, self.from.join(" "))
    }
}
