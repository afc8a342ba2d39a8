//! What a resource copies from the host, as its checks find it: who changes that has asked for another copy.

use std::sync::{Mutex, PoisonError};

/// All that is copied, as two hashes that are the same in each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Of its state (inodes, sizes, times of change): where that is the same, so is the content.
    pub state: u64,
    /// Of its content: names, types and bytes.
    pub content: u64,
}

/// Where one check tells what it has found to be copied.
#[derive(Debug, Default)]
pub struct Copies {
    before: Option<Copied>,
    now: Mutex<Option<Copied>>,
}

impl Copies {
    /// With what the last good run has copied, if that is known: what has the same state need not be read.
    #[must_use]
    pub fn since(before: Option<Copied>) -> Self {
        Self { before, now: Mutex::default() }
    }

    /// What the last good run has copied.
    #[must_use]
    pub fn before(&self) -> Option<Copied> {
        self.before
    }

    /// What this check has found; none where it copies nothing, or has not come so far.
    #[must_use]
    pub fn now(&self) -> Option<Copied> {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, copied: Copied) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(copied);
    }
}
