//! The data that a check passes to an apply.

use crate::change::Difference;
use crate::host::files::{Attributes, EntryStat};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// The work for one object, with the state that it is based on.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::kinds::file) struct Plan {
    /// The found object.
    pub(in crate::kinds::file) found: Option<EntryStat>,
    /// The found object must be removed first.
    pub(in crate::kinds::file) clear: bool,
    /// The work after that.
    pub(in crate::kinds::file) work: Work,
}

impl Plan {
    /// Returns true if the plan still fits the present object. A directory that stays may have changed inside:
    /// otherwise other users could prevent its management.
    pub(in crate::kinds::file) fn fits(&self, now: Option<&EntryStat>) -> bool {
        match (&self.found, now, &self.work) {
            (Some(found), Some(now), Work::Attributes(_)) => now.is_still(found),
            (found, now, _) => found.as_ref() == now,
        }
    }

    /// Returns true if another object, or none, is at the path after the work.
    pub(in crate::kinds::file) fn replaces(&self) -> bool {
        !matches!(self.work, Work::Attributes(_))
    }
}

/// The work for one object.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::kinds::file) enum Work {
    /// No work besides the removal.
    Remove,
    /// Writes the file anew and always sets the mode.
    Write { attributes: Attributes, mode: u32 },
    /// Makes the link.
    Link(Attributes),
    /// Makes the directory.
    Directory(Attributes),
    /// Leaves the object in place and sets these attributes.
    Attributes(Attributes),
}

/// A plan with its differences for display.
pub(in crate::kinds::file) struct Finding {
    pub(in crate::kinds::file) plan: Plan,
    pub(in crate::kinds::file) differences: Vec<Difference>,
    pub(in crate::kinds::file) destructive: bool,
}

/// The paths below a directory that differ. The apply determines the differences again, because a tree may be
/// large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::kinds::file) enum Below {
    /// No path.
    #[default]
    Nothing,
    /// Exactly these paths.
    Only(BTreeSet<PathBuf>),
    /// More paths than [`REMEMBERED`].
    Much,
}

/// The limit of stored paths.
const REMEMBERED: usize = 1000;

impl Below {
    /// Adds a path.
    pub(in crate::kinds::file) fn note(&mut self, below: &Path) {
        match self {
            Self::Nothing => *self = Self::Only(BTreeSet::from([below.to_owned()])),
            Self::Only(paths) if paths.len() < REMEMBERED => {
                paths.insert(below.to_owned());
            }
            Self::Only(_) => *self = Self::Much,
            Self::Much => {}
        }
    }

    /// Returns true if this path, or one below, differs.
    pub(in crate::kinds::file) fn concerns(&self, below: &Path) -> bool {
        match self {
            Self::Nothing => false,
            // Paths are ordered by their parts, so everything below a path follows the path directly.
            Self::Only(paths) => {
                let from = (Bound::Included(below), Bound::Unbounded);
                paths.range::<Path, _>(from).next().is_some_and(|next| next.starts_with(below))
            }
            Self::Much => true,
        }
    }
}

/// The state that an apply must find again.
#[derive(Debug)]
pub(in crate::kinds::file) struct Premise {
    /// The plan for the object itself.
    pub(in crate::kinds::file) top: Option<Plan>,
    /// The paths below the object that differ.
    pub(in crate::kinds::file) below: Below,
    /// The state of the copied sources.
    pub(in crate::kinds::file) origins: Vec<EntryStat>,
}

/// The result of a check, with its differences for display.
pub(in crate::kinds::file) struct Found {
    pub(in crate::kinds::file) premise: Premise,
    pub(in crate::kinds::file) differences: Vec<Difference>,
    pub(in crate::kinds::file) destructive: bool,
    /// A hash of the objects that would be lost.
    pub(in crate::kinds::file) lost: Option<u64>,
}

impl Found {
    /// Returns a hash of the premise if the differences hide an old content, and of the objects that would be
    /// lost; 0 if the differences show everything.
    pub(in crate::kinds::file) fn premise_digest(&self) -> u64 {
        let is_hidden = |one: &Difference| {
            one.aspect == "content" && !one.from.is_empty() && one.diff.is_none()
        };
        let is_hidden = self.differences.iter().any(is_hidden);
        if !is_hidden && self.lost.is_none() {
            return 0;
        }
        let mut hash = DefaultHasher::new();
        if is_hidden {
            format!("{:?}", self.premise).hash(&mut hash);
        }
        self.lost.hash(&mut hash);
        hash.finish().max(1)
    }
}
