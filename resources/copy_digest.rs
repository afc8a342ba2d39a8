//! Digests of the files that a resource copies from the host: a changed source asks for another copy.

use std::sync::{Mutex, PoisonError};

/// The digest of all copied sources, as two hashes that are equal in every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyDigest {
    /// The hash of the metadata (inodes, sizes, times of change): equal metadata means equal content.
    pub state: u64,
    /// The hash of names, types and bytes; for very large files, the hash of their metadata.
    pub content: u64,
}

/// A slot in which a check reports the digest of the sources that it found.
#[derive(Debug, Default)]
pub struct CopyDigestSlot {
    before: Option<u64>,
    now: Mutex<Option<CopyDigest>>,
}

impl CopyDigestSlot {
    /// Makes a slot with the metadata hash of the last successful run, if there is one.
    #[must_use]
    pub fn since(before: Option<u64>) -> Self {
        Self { before, now: Mutex::default() }
    }

    /// Returns the digest that the check reported; none if the sources are unchanged or irrelevant, or if nothing
    /// is copied.
    #[must_use]
    pub fn now(&self) -> Option<CopyDigest> {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn before(&self) -> Option<u64> {
        self.before
    }

    pub(crate) fn report(&self, copied: CopyDigest) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(copied);
    }
}
