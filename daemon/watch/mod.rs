//! Where events come from: one hub for all resources, over one inotify instance, the runtime's timers,
//! watch commands, and one connection to each systemd.
//!
//! A vertex that is armed costs a few entries in tables, and no thread, task or channel of its own (but for timers and watch commands).
//! An event of a file becomes `Changed` right in the thread that reads the kernel's events; whatever bears on the way to a file is
//! looked at by the hub's own thread, which re-arms and then says `Changed` or `Suspect`. Who brings the events stands
//! behind one small trait: inotify itself, or for the graph's own files the crate `notify`.

mod arm;
mod backend;
mod batch;
mod filesystem;
mod hub;
mod index;
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
pub use timer_and_command_sources::{LineSource, LineStream, SourceFuture};

use hub::Shared;
use index::WatchIndex;
use steadfast_engine::VertexId;

/// What the hub tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// All sources of the vertex are in place: what changes from now on is told.
    Established(VertexId),
    /// Some source cannot be had, for the reason given: only looks are sure to find a change. What can be watched still is.
    Absent(VertexId, String),
    /// Something happened.
    Changed(VertexId),
    /// Something happened to a file of which something is made that it receives.
    Supplied(VertexId),
    /// Something may have happened: events were lost, or a watch was put in place anew.
    Suspect(VertexId),
    /// What brings the events has ended, for the reason given: nothing more can be relied on, and another hub must take its place.
    Broken(String),
}

impl Signal {
    /// The vertex that it is about.
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
