//! What a resource copies from the host, as a check finds it: who changes that has asked for another copy.

use std::sync::{Mutex, PoisonError};

/// All that is copied, as two hashes that are the same in each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyDigest {
    /// Of its state (inodes, sizes, times of change): where that is the same, so is the content.
    pub state: u64,
    /// Of its content: names, types and bytes; of what is very large, of its state.
    pub content: u64,
}

/// Where one check tells what it has found to be copied, where that is asked.
#[derive(Debug, Default)]
pub struct CopyDigestSlot {
    before: Option<u64>,
    now: Mutex<Option<CopyDigest>>,
}

impl CopyDigestSlot {
    /// With the state of what the last good run has copied, if that is known.
    #[must_use]
    pub fn since(before: Option<u64>) -> Self {
        Self { before, now: Mutex::default() }
    }

    /// What this check has found; none where that is what it was before, or does not matter, or nothing is copied.
    #[must_use]
    pub fn now(&self) -> Option<CopyDigest> {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn before(&self) -> Option<u64> {
        self.before
    }

    pub(crate) fn tell(&self, copied: CopyDigest) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(copied);
    }
}
