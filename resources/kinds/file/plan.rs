//! What a check decides and an apply does.

use crate::change::Difference;
use crate::host::files::{Attributes, EntryStat};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// What has to be done with one thing, and what it was decided from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// What was there.
    pub(super) found: Option<EntryStat>,
    /// It must go first.
    pub(super) clear: bool,
    /// What follows then.
    pub(super) work: Work,
}

impl Plan {
    /// Whether it still fits what is there now. A directory that stays need not stand still: others could keep us from
    /// taking it over.
    pub(super) fn fits(&self, now: Option<&EntryStat>) -> bool {
        match (&self.found, now, &self.work) {
            (Some(found), Some(now), Work::Attributes(_)) => now.is_still(found),
            (found, now, _) => found.as_ref() == now,
        }
    }

    /// Whether another thing is at its path afterwards, or none.
    pub(super) fn replaces(&self) -> bool {
        !matches!(self.work, Work::Attributes(_))
    }
}

/// What has to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing more.
    Remove,
    /// Write the file anew; the mode is always set.
    Write { attributes: Attributes, mode: u32 },
    /// Make the link.
    Link(Attributes),
    /// Make the directory.
    Directory(Attributes),
    /// Leave it, and give it these.
    Attributes(Attributes),
}

/// A plan and how it is shown.
pub(super) struct Finding {
    pub(super) plan: Plan,
    pub(super) differences: Vec<Difference>,
    pub(super) destructive: bool,
}

/// What differs below a directory. How, is found again when it is done: a tree may be large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Below {
    /// Nothing.
    #[default]
    Nothing,
    /// Just these paths.
    Only(BTreeSet<PathBuf>),
    /// More than are remembered.
    Much,
}

/// So many paths are remembered.
const REMEMBERED: usize = 1000;

impl Below {
    /// Notes a path.
    pub(super) fn note(&mut self, below: &Path) {
        match self {
            Self::Nothing => *self = Self::Only(BTreeSet::from([below.to_owned()])),
            Self::Only(paths) if paths.len() < REMEMBERED => {
                paths.insert(below.to_owned());
            }
            Self::Only(_) => *self = Self::Much,
            Self::Much => {}
        }
    }

    /// Whether it is about this path, or something below it.
    pub(super) fn concerns(&self, below: &Path) -> bool {
        match self {
            Self::Nothing => false,
            // Paths are ordered by their parts, so that all below one follow it.
            Self::Only(paths) => {
                let from = (Bound::Included(below), Bound::Unbounded);
                paths.range::<Path, _>(from).next().is_some_and(|next| next.starts_with(below))
            }
            Self::Much => true,
        }
    }
}

/// What an apply finds again.
#[derive(Debug)]
pub(super) struct Premise {
    /// What has to be done with the thing itself.
    pub(super) top: Option<Plan>,
    /// What differs below it.
    pub(super) below: Below,
    /// The state of all that is copied from.
    pub(super) origins: Vec<EntryStat>,
}

/// What a check found, and how it is shown.
pub(super) struct Found {
    pub(super) premise: Premise,
    pub(super) differences: Vec<Difference>,
    pub(super) destructive: bool,
    /// A hash of what would be gone.
    pub(super) lost: Option<u64>,
}

impl Found {
    /// A hash of all that this was decided from, where a content that was there is not shown in full, and of what would be gone; 0
    /// where all is shown.
    pub(super) fn seal(&self) -> u64 {
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
