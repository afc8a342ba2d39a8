//! Which kinds a graph may use: those of this build, or those a test brings along.

use steadfast_resources::{KindSpec, registry};

/// The kinds a graph may use.
#[derive(Clone, Debug)]
pub struct KindSet {
    here: Vec<&'static KindSpec>,
    elsewhere: Vec<&'static str>,
}

impl KindSet {
    /// The kinds of this build.
    #[must_use]
    pub fn of_this_build() -> Self {
        Self { here: registry::specs().to_vec(), elsewhere: registry::ELSEWHERE.to_vec() }
    }

    /// Other kinds, and the names of those that exist only elsewhere.
    #[must_use]
    pub fn new(here: Vec<&'static KindSpec>, elsewhere: Vec<&'static str>) -> Self {
        Self { here, elsewhere }
    }

    /// Whether a graph may use this kind, here or elsewhere.
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
