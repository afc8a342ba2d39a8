//! The values of all metrics at one moment.

use super::Histogram;
use std::sync::Arc;
use std::time::Duration;

/// The state of a resource, as metrics show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceState {
    /// As declared, as far as is known.
    Converged = 0,
    /// A check or an apply is in progress.
    Running,
    /// Waits for other resources, its watch, a limit or a slot.
    Waiting,
    /// Not as declared, and waits for a permission.
    Held,
    /// Paused on its own.
    Paused,
    /// Repairs are undone again and again.
    Contended,
    /// Has failed, and a retry is due.
    Retrying,
    /// Has failed, and no retries are left.
    Failed,
    /// The run does not return.
    Stuck,
}

impl ResourceState {
    /// All states, with their label values.
    pub(super) const NAMES: [(Self, &'static str); 9] = [
        (Self::Converged, "converged"),
        (Self::Running, "running"),
        (Self::Waiting, "waiting"),
        (Self::Held, "held"),
        (Self::Paused, "paused"),
        (Self::Contended, "contended"),
        (Self::Retrying, "retrying"),
        (Self::Failed, "failed"),
        (Self::Stuck, "stuck"),
    ];

    /// Returns the label value of this state.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// The number of resources of one kind in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceCounts([u32; ResourceState::NAMES.len()]);

impl ResourceCounts {
    /// Adds a number of resources in this state.
    pub fn add(&mut self, state: ResourceState, count: u32) {
        let sum = &mut self.0[state as usize];
        *sum = sum.saturating_add(count);
    }

    /// Returns the number of resources in this state.
    #[must_use]
    pub fn get(&self, state: ResourceState) -> u32 {
        self.0[state as usize]
    }
}

/// The number of changes for each class, in the order of [`Classes::NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(pub [u64; 4]);

impl Classes {
    /// The label values of the classes.
    pub const NAMES: [&'static str; 4] =
        ["intentional", "corrective", "not_idempotent", "contended"];
}

/// The number of watches for each source of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchCounts {
    /// Directories that the kernel watches.
    pub directories: usize,
    /// Units of systemd.
    pub units: usize,
    /// Resources with timers or watch commands.
    pub timers_and_commands: usize,
    /// Lost events: overflows of the kernel's queue.
    pub overflows: u64,
}

/// The values that only a driver knows.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a metric of its own")]
pub struct DriverValues {
    /// The name of the running graph.
    pub graph: String,
    /// True if all resources are converged.
    pub converged: bool,
    /// The time since 1970 of the last convergence.
    pub last_convergence: Option<Duration>,
    /// True if the daemon is read-only.
    pub read_only: bool,
    /// True if the daemon is paused.
    pub paused: bool,
    /// True if the graph file is rejected.
    pub graph_rejected: bool,
    /// The number of resources by kind and state.
    pub resources: Vec<(Arc<str>, ResourceCounts)>,
    /// The number of contended resources.
    pub contended: u32,
    /// The number of resources that are owed a refresh.
    pub refreshes_owed: u32,
    /// The number of resources that are paused on their own.
    pub paused_resources: usize,
    /// The number of resources without a working watch.
    pub unwatched: usize,
    /// The number of resources with a source that is only polled.
    pub polled: usize,
    /// The number of changes by kind and class.
    pub changes: Vec<(Arc<str>, Classes)>,
    /// The number of failed runs by kind.
    pub failures: Vec<(Arc<str>, u64)>,
    /// The times from the start of a run to the end of its check.
    pub checks: Histogram,
    /// The times from the start of a run to the end of its apply.
    pub repairs: Histogram,
    /// The times from an event to the start of the run that it causes.
    pub reactions: Histogram,
    /// The times of commits to the state.
    pub commits: Histogram,
    /// The number of entries that wait for a commit.
    pub journal_queue: usize,
    /// The number of inputs that wait for the driver.
    pub inbox: usize,
    /// The number of runs in progress.
    pub runs: usize,
    /// The watches; `None` without watches.
    pub watches: Option<WatchCounts>,
    /// Resources that are not converged, at most as many as asked for.
    pub listed: Vec<(String, ResourceState)>,
    /// The number of resources that `listed` leaves out.
    pub omitted: usize,
}

/// The values of one worker.
#[derive(Clone, Debug, Default)]
pub struct WorkerValues {
    /// The name of the worker.
    pub name: String,
    /// True if the worker runs.
    pub running: bool,
    /// The number of restarts.
    pub restarts: u64,
}

/// The connection of this host to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorldValues {
    /// True if the values of the world are up to date.
    pub connected: bool,
    /// The time for which the values may be out of date; zero if they are up to date.
    pub stale: Duration,
}

/// The values of all metrics at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The version of the program.
    pub version: &'static str,
    /// The time since 1970 of the start of the daemon.
    pub started: Duration,
    /// The values of the driver; `None` if it does not answer.
    pub driver: Option<DriverValues>,
    /// The workers.
    pub workers: Vec<WorkerValues>,
    /// True if the daemon has the lease.
    pub has_lease: bool,
    /// The time until the lease ends unless it is renewed; `None` for a lease without an end.
    pub lease_left: Option<Duration>,
    /// The world that hosts share; `None` if this host uses none.
    pub world: Option<WorldValues>,
    /// The number of log lines that were dropped.
    pub dropped_lines: u64,
    /// The number of recorders whose destination does not take events now.
    pub failing_recorders: usize,
    /// True if metrics list single resources.
    pub lists_resources: bool,
}
