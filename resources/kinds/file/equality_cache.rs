//! Which copies were found equal to what they are copied from: while neither changes, nothing is read again.
//!
//! A state is told by inode, size and time of change. One that is younger than some milliseconds could still change without another
//! time, and is not trusted (git's racy rule). What a program writes through a mapping may be seen late, when the kernel writes it
//! back: then the time of change moves.

use crate::host::files::{Content, EntryStat};
use crate::host::wall;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
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
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
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
    pub(super) fn pair(
        &self,
        path: &Path,
        there: &EntryStat,
        content: &Content<'_>,
    ) -> Option<Pair> {
        if !content.is_all_files() {
            return None;
        }
        let mut hasher = self.keys.build_hasher();
        let mut newest = there.changed;
        hash_state(there, &mut hasher);
        for origin in content.origins() {
            hash_state(origin.seen(), &mut hasher);
            newest = newest.max(origin.seen().changed);
        }
        let path = self.keys.hash_one(path);
        Some(Pair { path, states: hasher.finish(), is_settled: is_settled(newest) })
    }

    /// Whether just these were found equal before.
    pub(super) fn are_equal(&self, pair: Pair) -> bool {
        let equal = self.equal.lock().unwrap_or_else(PoisonError::into_inner);
        equal.get(&pair.path) == Some(&pair.states)
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

/// Whether what was changed last at that time can change no more without another time.
pub(super) fn is_settled(changed: (i64, i64)) -> bool {
    wall().checked_sub(YOUNG).is_some_and(|settled| {
        let seconds = i64::try_from(settled.as_secs()).unwrap_or(i64::MAX);
        changed < (seconds, i64::from(settled.subsec_nanos()))
    })
}

/// Another state has another hash.
pub(super) fn hash_state(seen: &EntryStat, hasher: &mut impl std::hash::Hasher) {
    // Its attributes do not matter, but any change of them moves the time of change too.
    (seen.identity, seen.size, seen.changed).hash(hasher);
}
