//! The kinds that a graph may use: those of this build, or those of a test.

use steadfast_resources::{KindSpec, registry};

/// The kinds that a graph may use.
#[derive(Clone, Debug)]
pub struct KindSet {
    here: Vec<&'static KindSpec>,
    elsewhere: Vec<&'static str>,
}

impl KindSet {
    /// Returns the kinds of this build.
    #[must_use]
    pub fn of_this_build() -> Self {
        Self { here: registry::specs().to_vec(), elsewhere: registry::ELSEWHERE.to_vec() }
    }

    /// Creates a set of given kinds, and of the names of kinds that exist only in other builds.
    #[must_use]
    pub fn new(here: Vec<&'static KindSpec>, elsewhere: Vec<&'static str>) -> Self {
        Self { here, elsewhere }
    }

    /// Returns true if a graph may use this kind, in this build or another.
    #[must_use]
    pub fn is_known(&self, kind: &str) -> bool {
        self.find(kind).is_some() || self.is_elsewhere(kind)
    }

    pub(super) fn find(&self, kind: &str) -> Option<&'static KindSpec> {
        self.here.iter().copied().find(|spec| spec.kind == kind)
    }

    pub(super) fn is_elsewhere(&self, kind: &str) -> bool {
        self.elsewhere.contains(&kind)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.here.iter().map(|spec| spec.kind)
    }
}
