//! What the hub asks of the kernel's file events, whichever crate brings them: one watch for each directory, not recursive.

pub(super) mod inotify;
pub(super) mod notify;

use super::filesystem::EntryHandle;
use std::path::Path;
use thiserror::Error;

/// A directory that is watched; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectoryId(pub u32);

/// One thing that the kernel reports.
#[derive(Clone, Copy, Debug)]
pub enum BackendEvent<'n> {
    /// Something happened to an entry of a directory; an empty name is the directory itself.
    Entry {
        /// Which directory.
        directory: DirectoryId,
        /// The name in it.
        name: &'n [u8],
        /// It came, went or was replaced; else its content or attributes changed.
        structural: bool,
    },
    /// The watch is gone: the directory was removed or moved.
    Lost(DirectoryId),
    /// Events were lost, nobody knows which.
    Overflow,
    /// Nothing more will be reported, for the reason given.
    Broken(&'n str),
}

/// Who is told. Called by the thread of a backend; answers whether anybody waits for any of it.
pub type Sink = Box<dyn Fn(&[BackendEvent<'_>]) -> bool + Send + Sync>;

/// Why a directory cannot be watched.
#[derive(Debug, Error)]
pub enum Failure {
    /// It is not there any more.
    #[error("the path is gone")]
    Gone,
    /// A limit of the system.
    #[error("no inotify watch is free; raise the sysctl {0}")]
    Limit(&'static str),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// A source of file events. Its methods may block until the kernel has answered. They are called by the hub's own thread, and by
/// one that was given up while it waited for a file system, when that answers at last.
pub trait Backend: Send + Sync {
    /// Watches a directory; in place when it returns. Called again for a watch that may have been lost without notice, it renews
    /// it without a gap. `at` is open on the directory; where a backend goes by `path`, that may be another one by now, so the
    /// caller looks.
    fn watch(&self, directory: DirectoryId, path: &Path, at: &EntryHandle) -> Result<(), Failure>;

    /// Ends a watch; no error where there is none any more.
    fn unwatch(&self, directory: DirectoryId);
}
