//! The turn of the hub's thread: the work since the last turn, done in steps.

use super::route::{Name, Reason, RouteId};
use super::work::Work;
use crate::watch::backend::DirectoryId;
use crate::watch::signal::Signal;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use steadfast_engine::VertexId;
use tokio::time::Instant;

/// The next step of the hub's thread.
#[derive(Clone, Debug)]
pub(in crate::watch) enum WorkStep {
    /// Takes the accumulated work.
    Begin,
    /// Walks a route.
    Walk(RouteId, Reason),
    /// Resolves the symbolic link at a path.
    Look(RouteId, Name),
    /// Lists the subdirectories of a directory in a recursive watch.
    Grow(VertexId, RouteId),
    /// Reports the status of the affected vertices.
    End,
}

/// The state of the current turn.
#[derive(Debug, Default)]
pub(in crate::watch) struct Turn {
    /// The number of the working thread; threads with other numbers are abandoned.
    pub(in crate::watch) thread: u64,
    pub(in crate::watch) work: Work,
    /// Signals to report at the end of the turn.
    pub(in crate::watch) signals: Vec<Signal>,
    /// The directories whose watches were renewed after an overflow; `None` if no overflow happened.
    pub(in crate::watch) renewed: Option<HashSet<DirectoryId>>,
    /// True while a task monitors the thread.
    pub(in crate::watch) guarded: bool,
    pub(super) open: bool,
    pub(super) step: Option<(WorkStep, Instant)>,
    pub(super) place: Option<Looking>,
    pub(super) silent: HashMap<PathBuf, Silence>,
    /// The number of abandoned threads that have not returned.
    pub(super) waiting: usize,
}

/// The object that a step accesses.
#[derive(Debug)]
pub(super) enum Looking {
    At(PathBuf),
    /// An entry of a watched directory, whose path is computed on demand.
    In(DirectoryId, Name),
}

/// A path whose file system hangs.
#[derive(Debug, Default)]
pub(super) struct Silence {
    /// The abandoned thread that waits for the path.
    pub(super) thread: u64,
    /// Work to repeat when the path responds.
    pub(super) routes: BTreeSet<RouteId>,
    pub(super) looks: BTreeSet<(RouteId, Name)>,
}
