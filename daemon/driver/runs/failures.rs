//! The last failures of resources, each with the change that the failed run was to make.

use std::collections::HashMap;
use steadfast_engine::{Class, VertexId};
use steadfast_resources::{Difference, Failure};

/// The change that a failed run was to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptedChange {
    /// The cause of the change.
    pub class: Class,
    /// The differences that the check of the run had found.
    pub differences: Vec<Difference>,
}

/// The last failure of each resource that is not as declared.
#[derive(Debug, Default)]
pub(in crate::driver) struct LastFailures {
    failures: HashMap<VertexId, Failure>,
    /// The changes of failed applies. A failed check has none.
    changes: HashMap<VertexId, AttemptedChange>,
}

impl LastFailures {
    /// Returns the last failure of a resource.
    pub(in crate::driver) fn get(&self, id: VertexId) -> Option<&Failure> {
        self.failures.get(&id)
    }

    /// Returns the change that the failed apply of a resource was to make.
    pub(in crate::driver) fn change(&self, id: VertexId) -> Option<&AttemptedChange> {
        self.changes.get(&id)
    }

    /// Replaces the failure of a resource by that of a check, or of an apply whose change follows.
    pub(in crate::driver) fn insert(&mut self, id: VertexId, failure: Failure) {
        self.changes.remove(&id);
        self.failures.insert(id, failure);
    }

    /// Records a failure unless the resource has one.
    pub(in crate::driver) fn insert_if_none(&mut self, id: VertexId, failure: &Failure) {
        self.failures.entry(id).or_insert_with(|| failure.clone());
    }

    /// Records the change of the failed apply of a resource.
    pub(in crate::driver) fn note_change(
        &mut self,
        id: VertexId,
        class: Class,
        differences: Vec<Difference>,
    ) {
        if !differences.is_empty() {
            self.changes.insert(id, AttemptedChange { class, differences });
        }
    }

    /// Removes the failure of a resource.
    pub(in crate::driver) fn remove(&mut self, id: VertexId) {
        self.failures.remove(&id);
        self.changes.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::{AttemptedChange, LastFailures};
    use steadfast_engine::{Class, VertexId};
    use steadfast_resources::{Difference, Failure};

    fn mode() -> Vec<Difference> {
        let (aspect, from, to) = ("mode", "0600".to_owned(), "0644".to_owned());
        vec![Difference { aspect, from, to, diff: None }]
    }

    /// A failed check ends the change of an earlier failed apply: its host state is unknown.
    #[test]
    fn a_failed_check_has_no_change() {
        let (mut failures, id) = (LastFailures::default(), VertexId(1));
        failures.insert(id, Failure::new("a full disk"));
        failures.note_change(id, Class::Corrective, mode());
        let change = AttemptedChange { class: Class::Corrective, differences: mode() };
        assert_eq!(failures.change(id), Some(&change));
        failures.insert(id, Failure::new("no answer"));
        assert_eq!(failures.change(id), None);
        assert_eq!(failures.get(id).map(|failure| failure.what.as_str()), Some("no answer"));
    }

    /// A success removes the failure and its change; an apply without differences has no change.
    #[test]
    fn a_success_removes_the_change() {
        let (mut failures, id) = (LastFailures::default(), VertexId(1));
        failures.insert(id, Failure::new("a full disk"));
        failures.note_change(id, Class::Corrective, Vec::new());
        assert_eq!(failures.change(id), None);
        failures.note_change(id, Class::Corrective, mode());
        failures.remove(id);
        assert_eq!((failures.get(id), failures.change(id)), (None, None));
    }
}
