//! The ownership of an object, which decides the object's fate when its resource leaves the graph (B-16, B-17).

use std::sync::Arc;

/// The origin of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A run of ours created the object: it did not exist at the first apply.
    Created,
    /// The object existed at the first apply.
    Adopted,
}

/// The ownership record of an object. An empty record is equal to none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ownership {
    /// The origin; none if there is nothing that could be removed.
    pub origin: Option<Origin>,
    /// The name of the graph that declares the object: only a graph of that name removes it.
    pub graph: Arc<str>,
    /// The object is deleted when its resource leaves the graph (`on_remove: delete`).
    pub delete: bool,
    /// The object must not be removed, by its graph.
    pub protect: bool,
    /// The object must not be removed, by the operator.
    pub pinned: bool,
    /// A hash of the removal data: another hash means another object.
    pub thing: u64,
    /// The removal data of an object to be deleted, in a form that only its writer reads.
    pub removal: Option<Arc<str>>,
    /// The identities that come before this one in order, if they are deleted on removal; sorted.
    pub after: Vec<Arc<str>>,
}

impl Ownership {
    /// Returns true if the record is not empty.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.origin.is_some() || self.is_protected() || !self.after.is_empty()
    }

    /// Returns true if the object must not be removed.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.protect || self.pinned
    }

    /// Returns the record after [`super::Entry::Protect`].
    #[must_use]
    pub fn protected(&self, protect: bool) -> Self {
        Self { pinned: protect, protect: protect && self.protect, ..self.clone() }
    }
}
