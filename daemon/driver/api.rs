//! The public types of the driver: its events, its settings and dependencies, and its result.

use super::{LeaseLoss, LeaseValidity, LoadError, LocalMinute, Observer, Query};
use crate::config::LoadedGraph;
use crate::history::History;
use crate::store::AuditEntry;
use crate::store::{Journal, StoredState};
use crate::watch::Signal;
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{Counts, Mode, Slots, VertexId, VertexStatus};
use steadfast_resources::KindSet;
use steadfast_resources::host::world::{NumberedPermit, WorldKey};
use steadfast_resources::{
    BuiltResource, CheckResult, Difference, Failure, Host, MintKey, Outcome, RunPolicy,
};

/// An event for the driver, put into its inbox.
#[derive(Debug)]
pub enum DriverEvent {
    /// A check has ended.
    Checked(steadfast_engine::RunId, CheckResult),
    /// An apply, or a run that was cancelled, has ended.
    Ended(steadfast_engine::RunId, Outcome),
    /// A check of a group run has ended; one result for each member.
    MembersChecked(steadfast_engine::RunId, Vec<CheckResult>),
    /// An apply of a group run, or a group run that was cancelled, has ended; one outcome for each member.
    MembersEnded(steadfast_engine::RunId, Vec<Outcome>),
    /// The journal has answered the requests with these tickets. The string is the reason if it could not record them.
    JournalReplies(Vec<u64>, Option<String>),
    /// Result of the overlap search of a plan: each vertex whose result other steps may change, with those steps.
    OverlapsFound(Vec<(VertexId, Vec<VertexId>)>),
    /// The secrets of this resource were read: the resource built with them, or the failure.
    SecretsRead(VertexId, Arc<str>, Result<BuiltResource, Failure>),
    /// The cleanup of temporary files that killed runs left is done.
    CleanupDone,
    /// The undo of this resource has ended; with the audit entry of its changes, if any.
    Undone(String, Option<AuditEntry>),
    /// Signals of the watches.
    Watched(Vec<Signal>),
    /// These keys of the world have changed.
    WorldChanged(Vec<WorldKey>),
    /// The permits that the world grants to this host at present.
    WorldPermits(Vec<NumberedPermit>),
    /// A new graph, to replace the running one.
    Graph {
        /// The graph, or the reason for its rejection.
        graph: Result<Box<LoadedGraph>, LoadError>,
        /// True if the operator has requested this load.
        operator: bool,
    },
    /// The last accepted graph, for a driver that has rejected its first graph. A driver that has accepted a graph
    /// ignores it.
    LastGoodGraph(Box<LoadedGraph>),
    /// Pauses the daemon: no run starts until a resume.
    Pause {
        /// The reason, as shown in the status.
        reason: String,
        /// The time until the pause ends without a resume; `None` selects the configured limit.
        limit: Option<Duration>,
        /// True: work that is due now, and the work that follows from it, is done before the pause.
        drain: bool,
    },
    /// Ends the pause of the daemon.
    Resume,
    /// Stops the driver; active runs get this grace period, and zero interrupts them at once.
    Stop(Duration),
    /// The right to begin changes, or the reason for its absence.
    Lease(Result<LeaseValidity, LeaseLoss>),
    /// New values of the settings that can change at run time.
    Settings(Tuning),
    /// A ping of the watchdog; the loop answers it in one of its turns.
    Ping(PingReply),
    /// A query of the operator.
    Query(Query),
}

/// The callback that receives the reply to a ping.
pub struct PingReply(pub Box<dyn FnOnce(DriverHealth) + Send>);

impl std::fmt::Debug for PingReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answer")
    }
}

/// The reply to a ping: proof that the loop runs, and a summary of the status.
#[derive(Clone, Copy, Debug)]
pub struct DriverHealth {
    /// Counts over all vertices.
    pub counts: Counts,
    /// The mode of the engine.
    pub mode: Mode,
    /// True if all resources are converged.
    pub converged: bool,
    /// A condition that the counts do not show.
    pub caveat: Option<Caveat>,
    /// The number of vertices without a working watch.
    pub unwatched: usize,
}

/// A condition that the counts of a [`DriverHealth`] do not show. The first one that applies is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caveat {
    /// The state directory cannot be used: nothing is changed.
    ReadOnly,
    /// No graph is loaded yet.
    Starting,
    /// The graph file was rejected; the previous graph is still running.
    GraphRejected,
}

/// The settings of a driver.
#[derive(Clone, Debug)]
pub struct Settings {
    /// True for `apply` and `plan`: no watches, no sweeps; the driver ends when all vertices are at rest.
    pub one_shot: bool,
    /// The limits of runs at the same time.
    pub slots: Slots,
    /// The duration of one sweep over all resources; `None` turns sweeps off.
    pub sweep: Option<Duration>,
    /// The duration after which a pause ends without a resume.
    pub pause_limit: Duration,
    /// True if the first load also settles the records of resources that its graph does not declare.
    pub whole: bool,
    /// True if graphs are complete, not selections: resources that they leave out may be removed (B-16).
    pub removes: bool,
    /// The maximum of repeated repairs in one minute; at this number all repairs stop for one minute (E-20).
    pub repair_limit: Option<u32>,
    /// The clock for `when_allowed`.
    pub clock: fn() -> LocalMinute,
    /// The check that each change must pass first.
    pub guard: Option<Arc<dyn Guard>>,
}

/// The settings that a running driver can change; see [`Settings`].
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The duration of one sweep over all resources.
    pub sweep: Option<Duration>,
    /// The duration after which a pause ends without a resume.
    pub pause_limit: Duration,
    /// The maximum of repeated repairs in one minute.
    pub repair_limit: Option<u32>,
}

/// A gate in front of changes: `apply` of a saved plan admits only the changes of that plan.
pub trait Guard: std::fmt::Debug + Send + Sync {
    /// Returns the result to act on: the given one, or [`CheckResult::Unknown`] if this change is not allowed.
    fn admit(&self, identity: &str, repeat: RunPolicy, verdict: CheckResult) -> CheckResult;

    /// Returns the reason for which this resource must not run, whatever its check has found.
    fn holds(&self, identity: &str) -> Option<Failure>;
}

/// The time that a one-shot command waits for an end record that cannot be written (B-6).
pub const END_RECORD_PATIENCE: Duration = Duration::from_secs(30);

/// The result of a driver: the reason for its end and the final status of each vertex.
#[derive(Debug)]
pub struct DriverExit {
    /// The final status of each vertex.
    pub final_statuses: Vec<FinalStatus>,
    /// Differences that the final check found on resources that this driver had changed (one-shot only).
    pub changed_after_apply: Vec<(String, Vec<Difference>)>,
    /// The number of vertices that were changed.
    pub changed: u32,
    /// The reason for the rejection of the graph (one-shot only).
    pub rejection: Option<String>,
    /// The time waited for an end record that could not be written (at most [`END_RECORD_PATIENCE`]), and the reason,
    /// if the driver gave up for it (one-shot only).
    pub write_failure: Option<(Duration, String)>,
    /// True if all resources were converged.
    pub converged: bool,
    /// The reason for which the driver ended by itself: its event source had ended.
    pub broken: Option<String>,
}

/// The status of one vertex at the end of the driver.
#[derive(Debug)]
pub struct FinalStatus {
    /// `kind[name]`.
    pub identity: String,
    /// The status of the vertex in the engine.
    pub status: VertexStatus,
    /// The last failure.
    pub failure: Option<Failure>,
    /// Identities of the resources that this one waits for.
    pub waits_for: Vec<String>,
}

/// The dependencies of a driver.
pub struct DriverDeps {
    /// The host.
    pub host: Host,
    /// The only key that mints permits; a driver that replaces another one gets the same key.
    pub key: Arc<MintKey>,
    /// The journal; `None` if nothing will be changed (`plan`). It stays open when the driver ends.
    pub journal: Option<Journal>,
    /// The stored state, as read from the journal at the start.
    pub recalled: StoredState,
    /// The store of prior states; `None` if nothing will be changed.
    pub history: Option<Arc<History>>,
    /// The reason for the read-only mode: the state cannot be written (B-22).
    pub read_only: Option<Arc<str>>,
    /// The known kinds.
    pub kinds: KindSet,
    /// The receiver of notifications.
    pub observer: Box<dyn Observer>,
}

impl std::fmt::Debug for DriverDeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("recalled", &self.recalled).finish_non_exhaustive()
    }
}
