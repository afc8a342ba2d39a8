//! The interface between the hub and the kernel's file events: one non-recursive watch per directory.
//!
//! Purpose: hide the crate that reads the events. Invariant: a backend does not interpret events; the hub does. Reading
//! order: this file, `inotify.rs` (used for resources), `batch.rs` (its reads), `notify.rs` (used for the graph's own
//! files).

mod batch;
pub(super) mod inotify;
pub(super) mod notify;

use super::filesystem::EntryHandle;
use std::path::Path;
use thiserror::Error;

/// The number of a watched directory; numbers are not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectoryId(pub u32);

/// An event of the kernel.
#[derive(Clone, Copy, Debug)]
pub enum BackendEvent<'n> {
    /// A change of a directory entry; an empty name means the directory itself.
    Entry {
        /// The directory.
        directory: DirectoryId,
        /// The name of the entry.
        name: &'n [u8],
        /// True if the entry was created, removed or replaced; false if its content or attributes changed.
        structural: bool,
    },
    /// The watch has ended, because the directory was removed or moved.
    Lost(DirectoryId),
    /// Events were lost, for unknown directories.
    Overflow,
    /// No more events will come, for the given reason.
    Broken(&'n str),
}

/// The receiver of events, called by the backend's thread. Returns true if any event matters to a vertex.
pub type Sink = Box<dyn Fn(&[BackendEvent<'_>]) -> bool + Send + Sync>;

/// The reason for which a directory cannot be watched.
#[derive(Debug, Error)]
pub enum Failure {
    /// The directory no longer exists.
    #[error("the path is gone")]
    Gone,
    /// A limit of the system is reached: the sysctl with this name.
    #[error("no inotify watch is free; raise the sysctl {0}")]
    Limit(&'static str),
    /// Any other error.
    #[error("{0}")]
    Other(String),
}

/// A source of file events. Methods may block until the kernel has replied. The hub's thread calls them, and so may an
/// abandoned thread whose file system has responded at last.
pub trait Backend: Send + Sync {
    /// Watches a directory; the watch is active on return. A repeated call renews a watch that may have been lost,
    /// without a gap. `at` is open on the directory; a backend that uses `path` may watch another directory, so the
    /// caller checks afterwards.
    ///
    /// # Errors
    ///
    /// The reason for which the directory cannot be watched.
    fn watch(&self, directory: DirectoryId, path: &Path, at: &EntryHandle) -> Result<(), Failure>;

    /// Ends a watch; does nothing if there is none.
    fn unwatch(&self, directory: DirectoryId);
}
