//! The watch of one vertex: its places in the index, the state of its tasks, and its last report.

use super::route::{Name, RouteId};
use std::sync::Arc;
use steadfast_engine::VertexId;
use steadfast_resources::host::systemd::Bus;

/// One place of the index at which a vertex waits.
#[derive(Clone, Debug)]
pub(in crate::watch) enum Placed {
    Leaf(RouteId, Name),
    Below(RouteId),
    Unit(Bus, Arc<str>),
}

/// The watch of one vertex.
#[derive(Debug)]
pub(in crate::watch) struct Armed {
    /// A number that distinguishes this arming of the vertex from later ones.
    pub(in crate::watch) serial: u64,
    pub(in crate::watch) placed: Box<[Placed]>,
    pub(in crate::watch) reported: Reported,
}

/// The last report about the watch of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::watch) enum Reported {
    /// The watch is not placed in the index yet.
    Never,
    Nothing,
    Established,
    Absent,
}

/// The state of a watch source other than a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::watch) enum Running {
    Starting,
    Yes,
    Failed(String),
}

/// The owner of a task: a vertex, and the serial number of its arming.
#[derive(Clone, Copy, Debug)]
pub(in crate::watch) struct SourceOwner {
    pub(in crate::watch) vertex: VertexId,
    pub(in crate::watch) serial: u64,
}
