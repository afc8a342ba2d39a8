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
//! Reading order: `signal.rs` (the reports), `hub.rs` (the interface), `sources.rs` (what the driver provides),
//! `index/` (the data), `shared.rs` (the lock and the tasks), `worker.rs` (the hub's thread), `path_walk.rs` and
//! `filesystem.rs` (walks), `backend/` (kernel events), `following/` (tasks of other sources), `proc_files.rs`.

mod backend;
mod filesystem;
mod following;
mod hub;
mod index;
mod path_walk;
#[cfg(test)]
mod path_walk_tests;
mod proc_files;
mod shared;
mod signal;
mod sources;
#[cfg(test)]
mod stepped_tests;
mod worker;

pub use backend::{Backend, BackendEvent, DirectoryId, Failure, Sink};
pub use filesystem::{EntryHandle, FileSystem, Found, Identity};
pub use hub::{SteppedWorker, WatchHub};
pub use signal::Signal;
pub use sources::{
    ExternalSources, LineSource, LineStream, SourceError, SourceFuture, UnitSource, UnitStream,
};
