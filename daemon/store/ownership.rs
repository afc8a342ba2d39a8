//! Whose a thing is, and what becomes of it when its resource leaves the graph (B-16, B-17).

use std::sync::Arc;

/// Who brought a thing into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// We did: it was not there when it was first applied.
    Created,
    /// Others did: it was there.
    Adopted,
}

/// What is kept of whose a thing is. One that says nothing is as good as none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ownership {
    /// Who brought it into being; none where there is nothing that could be removed.
    pub origin: Option<Origin>,
    /// The name of the graph that declares it: only a graph of that name removes it.
    pub graph: Arc<str>,
    /// It is deleted when its resource leaves the graph (`on_remove: delete`).
    pub delete: bool,
    /// It must not leave: so its graph says.
    pub protect: bool,
    /// It must not leave: so the operator says.
    pub pinned: bool,
    /// A hash of how it is removed: another one means another thing.
    pub thing: u64,
    /// How it is removed, in a form that only their writer reads; where it is deleted.
    pub removal: Option<Arc<str>>,
    /// The identities that it came after, as far as any of them is deleted when it leaves; sorted.
    pub after: Vec<Arc<str>>,
}

impl Ownership {
    /// Whether it says anything.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.origin.is_some() || self.is_protected() || !self.after.is_empty()
    }

    /// Whether it must not leave.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.protect || self.pinned
    }

    /// The same after [`super::Entry::Protect`].
    #[must_use]
    pub fn protected(&self, protect: bool) -> Self {
        Self { pinned: protect, protect: protect && self.protect, ..self.clone() }
    }
}
