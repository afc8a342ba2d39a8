//! Which copies were found equal to what they are copied from: while neither changes, nothing is read again. And whether what is copied is what it
//! was: who changes that has asked for another copy.
//!
//! A state is told by inode, size and time of change. One that is younger than some milliseconds could still change without another
//! time, and is not trusted (git's racy rule). What a program writes through a mapping may be seen late, when the kernel writes it
//! back: then the time of change moves.

use crate::host::files::{Content, Seen};
use crate::host::wall;
use rustix::fs::FileType;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Younger states are not trusted; clocks of file systems tick every ten milliseconds at most.
const YOUNG: Duration = Duration::from_millis(20);

/// So many are remembered, 16 bytes each.
const AT_MOST: usize = 1 << 18;

/// What was found equal.
#[derive(Default)]
pub(super) struct Known {
    /// With keys of its own, so that nobody can make two states look alike.
    keys: RandomState,
    equal: Mutex<HashMap<u64, u64>>,
    copied: Mutex<Option<u64>>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

/// All that a check has found to be copied, in whatever order. Its hash is the same in each process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origins(Option<u64>);

impl Origins {
    /// This is copied to that place, which is none of many where it is empty.
    pub(super) fn add(&mut self, below: &Path, seen: &Seen) {
        let mut hasher = DefaultHasher::new();
        below.hash(&mut hasher);
        // Not its device, whose number may be another one after a start of the host. A directory moves with what is in it, which is told apart.
        if seen.kind == FileType::Directory {
            seen.mode.hash(&mut hasher);
        } else {
            (seen.identity.1, seen.size, seen.changed).hash(&mut hasher);
        }
        self.0 = Some(self.0.unwrap_or_default().wrapping_add(hasher.finish()));
    }
}

/// A pair of states, as they were before their contents were compared.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    path: u64,
    states: u64,
    /// Neither can change any more without being told.
    is_settled: bool,
}

impl Known {
    /// What is at a path and what it is copied from; none where a part of the content is no file.
    pub(super) fn pair(&self, path: &Path, there: &Seen, content: &Content<'_>) -> Option<Pair> {
        if !content.is_all_files() {
            return None;
        }
        let settled = wall().checked_sub(YOUNG)?;
        let mut hasher = self.keys.build_hasher();
        let mut newest = there.changed;
        hash(there, &mut hasher);
        for origin in content.origins() {
            hash(origin.seen(), &mut hasher);
            newest = newest.max(origin.seen().changed);
        }
        let settled = (i64::try_from(settled.as_secs()).ok()?, i64::from(settled.subsec_nanos()));
        let path = self.keys.hash_one(path);
        Some(Pair { path, states: hasher.finish(), is_settled: newest < settled })
    }

    /// Whether just these were found equal before.
    pub(super) fn are_equal(&self, pair: Pair) -> bool {
        let equal = self.equal.lock().unwrap_or_else(PoisonError::into_inner);
        equal.get(&pair.path) == Some(&pair.states)
    }

    /// A hash of what the last check has found to be copied.
    pub(super) fn copied(&self) -> Option<u64> {
        *self.copied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A check has found that this is copied; none where it did not come so far.
    pub(super) fn note_copied(&self, origins: Origins) {
        *self.copied.lock().unwrap_or_else(PoisonError::into_inner) = origins.0;
    }

    /// They were found equal.
    pub(super) fn note(&self, pair: Pair) {
        if !pair.is_settled {
            return;
        }
        let mut equal = self.equal.lock().unwrap_or_else(PoisonError::into_inner);
        if equal.len() >= AT_MOST && !equal.contains_key(&pair.path) {
            equal.clear();
        }
        equal.insert(pair.path, pair.states);
    }
}

fn hash(seen: &Seen, hasher: &mut impl std::hash::Hasher) {
    // Its attributes do not matter, but any change of them moves the time of change too.
    (seen.identity, seen.size, seen.changed).hash(hasher);
}
