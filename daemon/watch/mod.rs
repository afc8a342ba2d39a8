//! Watches: one hub with the events of all resources, from inotify, timers, watch commands and one connection to each
//! systemd.
//!
//! Purpose: report a [`Signal`] soon after something that a vertex watches has changed. A file event becomes `Changed`
//! in the thread that reads the kernel's events. A change on the path to a file is the work of the hub's own thread,
//! which renews the watches and then reports `Changed` or `Suspect`. An armed vertex costs a few table entries; only
//! timers and watch commands have a task of their own.
//!
//! Invariants: no call into the hub blocks the driver, a hanging file system stops no watch on another one, and no
//! change after `Established` goes unreported.
//!
//! Reading order: `hub.rs` (the interface), `index.rs` (the data), `index_places.rs` (the places of vertices),
//! `worker.rs` and `work_state.rs` (the hub's thread), `path_walk.rs` and `filesystem.rs` (walks), `backend/` and
//! `batch.rs` (kernel events), `status.rs` (established or absent), `retry.rs`, `recursive.rs`, `systemd.rs`,
//! `timer_and_command_sources.rs`, `mounts.rs`, `kernel_files.rs`.

mod backend;
mod batch;
mod filesystem;
mod hub;
mod index;
mod index_places;
mod kernel_files;
mod mounts;
mod path_walk;
#[cfg(test)]
mod path_walk_tests;
mod recursive;
mod retry;
mod status;
#[cfg(test)]
mod stepped_tests;
mod systemd;
mod timer_and_command_sources;
mod work_state;
mod worker;

pub use backend::{Backend, BackendEvent, DirectoryId, Failure, Sink};
pub use filesystem::{EntryHandle, FileSystem, Found, Identity};
pub use hub::{ExternalSources, SteppedWorker, WatchHub};
pub use systemd::{UnitSource, UnitStream};
pub use timer_and_command_sources::{LineSource, LineStream, SourceError, SourceFuture};

use hub::Shared;
use index::WatchIndex;
use steadfast_engine::VertexId;

/// A report of the watch hub about a vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// All sources of the vertex are watched: every later change is reported.
    Established(VertexId),
    /// A source cannot be watched, for the given reason: only checks are sure to find a change. Other sources stay
    /// watched.
    Absent(VertexId, String),
    /// A watched object may have changed.
    Changed(VertexId),
    /// A file with an input of the vertex (a secret) has changed.
    Supplied(VertexId),
    /// Events may have been lost, or a watch was renewed: the object may have changed.
    Suspect(VertexId),
    /// The event source has ended, for the given reason: another hub must replace this one.
    Broken(String),
}

impl Signal {
    /// Returns the vertex of the signal; `None` for [`Signal::Broken`].
    pub fn vertex(&self) -> Option<VertexId> {
        match self {
            Self::Established(id)
            | Self::Absent(id, _)
            | Self::Changed(id)
            | Self::Supplied(id)
            | Self::Suspect(id) => Some(*id),
            Self::Broken(_) => None,
        }
    }
}
