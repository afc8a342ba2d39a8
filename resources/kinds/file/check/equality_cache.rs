//! A cache of copies that were found equal to their sources: while neither side changes, nothing is read
//! again.
//!
//! The cache identifies a state by inode, size and time of change. A state that is only some milliseconds old
//! could still change within the same timestamp and is not trusted (git's racy rule). A write through a
//! memory mapping may become visible late: the kernel moves the time of change when it writes the pages back.

use crate::host::files::{Content, EntryStat};
use crate::host::wall;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The age below which a state is not trusted; clocks of file systems tick every ten milliseconds at most.
const YOUNG: Duration = Duration::from_millis(20);

/// The limit of entries, of 16 bytes each.
const AT_MOST: usize = 1 << 18;

/// The pairs that were found equal.
#[derive(Default)]
pub(in crate::kinds::file) struct Known {
    /// Random keys for this cache, so nobody can make two states with equal hashes.
    keys: RandomState,
    equal: Mutex<HashMap<u64, u64>>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

/// The states of a copy and its sources before the comparison of their contents.
#[derive(Clone, Copy)]
pub(in crate::kinds::file) struct Pair {
    path: u64,
    states: u64,
    /// Both states are old enough that any later change is visible.
    is_settled: bool,
}

impl Known {
    /// Returns the states of a path and of its sources; none if a part of the content is no file.
    pub(in crate::kinds::file) fn pair(
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

    /// Returns true if exactly this pair was found equal before.
    pub(in crate::kinds::file) fn are_equal(&self, pair: Pair) -> bool {
        let equal = self.equal.lock().unwrap_or_else(PoisonError::into_inner);
        equal.get(&pair.path) == Some(&pair.states)
    }

    /// Stores a pair that was found equal.
    pub(in crate::kinds::file) fn note(&self, pair: Pair) {
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

/// Returns true if an object with this time of change can no longer change within the same timestamp.
pub(in crate::kinds::file) fn is_settled(changed: (i64, i64)) -> bool {
    wall().checked_sub(YOUNG).is_some_and(|settled| {
        let seconds = i64::try_from(settled.as_secs()).unwrap_or(i64::MAX);
        changed < (seconds, i64::from(settled.subsec_nanos()))
    })
}

/// Hashes the state of an object: distinct states have distinct hashes.
pub(in crate::kinds::file) fn hash_state(seen: &EntryStat, hasher: &mut impl std::hash::Hasher) {
    // The attributes are left out, because any change of them also moves the time of change.
    (seen.identity, seen.size, seen.changed).hash(hasher);
}
