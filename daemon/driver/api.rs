//! What goes into a driver and what comes out at its end.

use super::{LeaseValidity, LocalMinute, Observer, Query};
use crate::config::LoadedGraph;
use crate::history::History;
use crate::store::AuditEntry;
use crate::store::{Journal, StoredState};
use crate::watch::Signal;
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{Counts, Mode, Slots, VertexId, VertexStatus};
use steadfast_resources::{
    BuiltResource, CheckResult, Difference, Failure, Host, MintKey, Outcome, RunPolicy,
};

/// Something for the driver.
#[derive(Debug)]
pub enum DriverEvent {
    /// A check has ended.
    Checked(steadfast_engine::RunId, CheckResult),
    /// An apply, or a run that was cancelled, has ended.
    Ended(steadfast_engine::RunId, Outcome),
    /// As `Checked`, of a run of several: a verdict for each.
    CheckedParts(steadfast_engine::RunId, Vec<CheckResult>),
    /// As `Ended`, of a run of several.
    EndedParts(steadfast_engine::RunId, Vec<Outcome>),
    /// The journal has answered these tickets; with the reason where it could not keep them.
    Kept(Vec<u64>, Option<String>),
    /// In a plan: of whom something else may be found by then, each with those that come in between.
    Foreseen(Vec<(VertexId, Vec<VertexId>)>),
    /// What the secrets of a deed make of it now.
    Rotated(VertexId, Arc<str>, Result<BuiltResource, Failure>),
    /// What was left by whom was cut off is seen to.
    Swept,
    /// The undo of this resource is over; with what was done by it.
    Undone(String, Option<AuditEntry>),
    /// Sources of events.
    Watched(Vec<Signal>),
    /// A graph to run instead of the one that runs.
    Graph {
        /// It, or why it was refused.
        graph: Result<Box<LoadedGraph>, String>,
        /// The operator asked for it.
        operator: bool,
    },
    /// The graph that was taken last, for a driver that has refused its first one; one that has taken any leaves it.
    Again(Box<LoadedGraph>),
    /// Come to rest.
    Pause {
        /// Shown in status.
        reason: String,
        /// When it ends by itself; the usual time where none is given.
        limit: Option<Duration>,
        /// What is to be done at this moment, and what that leads to, is done first.
        drain: bool,
    },
    /// Go on.
    Resume,
    /// Stop; with no grace: at once.
    Stop(Duration),
    /// Whether we may begin anything; why not.
    Lease(Result<LeaseValidity, String>),
    /// Settings that hold from now on.
    Tune(Tuning),
    /// A question that goes once round the loop (watchdog).
    Ping(PingReply),
    /// A question of the operator's.
    Ask(Query),
}

/// Where the answer to a ping goes.
pub struct PingReply(pub Box<dyn FnOnce(DriverHealth) + Send>);

impl std::fmt::Debug for PingReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answer")
    }
}

/// The answer to a ping: the loop is alive, and this is how it stands.
#[derive(Clone, Copy, Debug)]
pub struct DriverHealth {
    /// Counts over all vertices.
    pub counts: Counts,
    /// What the engine is doing.
    pub mode: Mode,
    /// Whether all is as declared.
    pub converged: bool,
    /// A reason why the counts do not tell everything.
    pub caveat: Option<Caveat>,
    /// For so many there are no events.
    pub unwatched: usize,
}

/// A reason why the counts of a [`DriverHealth`] do not tell everything; the first that holds is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caveat {
    /// The state cannot be used: nothing is changed.
    ReadOnly,
    /// No graph is loaded yet.
    Starting,
    /// The graph file was rejected; the previous graph is still running.
    GraphRejected,
}

/// How a driver is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// For `apply` and `plan`: no watches, no sweeps; ends when it is at rest.
    pub one_shot: bool,
    /// How many runs at once.
    pub slots: Slots,
    /// How long a sweep over everything takes; none without it.
    pub sweep: Option<Duration>,
    /// How long a pause lasts that nobody ends.
    pub pause_limit: Duration,
    /// A removal of the whole graph's records: identities that are not in the first graph are forgotten.
    pub whole: bool,
    /// The graphs are whole ones, not selections: what they leave out may be removed (B-16).
    pub removes: bool,
    /// The most repairs in a minute of what was repaired in that minute already, before nothing is repaired for a minute (E-20).
    pub brake: Option<u32>,
    /// The clock that `when_allowed` goes by.
    pub clock: fn() -> LocalMinute,
    /// Asked before anything is changed.
    pub guard: Option<Arc<dyn Guard>>,
}

/// The settings that a running driver can change; see [`Settings`].
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// The time for one sweep.
    pub sweep: Option<Duration>,
    /// The length of a pause that nobody ends.
    pub pause_limit: Duration,
    /// The bound on repeated repairs in a minute.
    pub brake: Option<u32>,
}

/// Whether what a check has found may be done.
pub trait Guard: std::fmt::Debug + Send + Sync {
    /// What counts as found of this resource: the verdict itself, or [`CheckResult::Unknown`] where it may not be done.
    fn admit(&self, identity: &str, repeat: RunPolicy, verdict: CheckResult) -> CheckResult;

    /// Why it may not be begun, whatever was found of it.
    fn holds(&self, identity: &str) -> Option<Failure>;
}

/// How long a one-shot command waits for an end that cannot be kept (B-6).
pub const UNKEPT: Duration = Duration::from_secs(30);

/// How it ended, and how all stood then.
#[derive(Debug)]
pub struct DriverExit {
    /// How each vertex stands.
    pub standings: Vec<FinalStatus>,
    /// What a last look found on what this driver changed (one-shot only).
    pub moved: Vec<(String, Vec<Difference>)>,
    /// Vertices that were changed.
    pub changed: u32,
    /// Why the graph was not taken (one-shot only).
    pub refused: Option<String>,
    /// Why it was given up: state could not be kept for [`UNKEPT`] (one-shot only).
    pub unkept: Option<(Duration, String)>,
    /// All was as declared.
    pub converged: bool,
    /// It ended by itself, since there would have been no events any more; why.
    pub broken: Option<String>,
}

/// How one vertex stands at the end.
#[derive(Debug)]
pub struct FinalStatus {
    /// `kind[name]`.
    pub identity: String,
    /// How it stands.
    pub status: VertexStatus,
    /// The last trouble with it.
    pub trouble: Option<Failure>,
    /// Those it waits for.
    pub waits_for: Vec<String>,
}

/// What a driver works with.
pub struct DriverDeps {
    /// The machine.
    pub host: Host,
    /// The one key for permits; a driver that takes the place of another gets the same.
    pub key: Arc<MintKey>,
    /// Where state is kept; none where nothing will be changed (`plan`). It stays open when the driver has ended.
    pub journal: Option<Journal>,
    /// What it told back.
    pub recalled: StoredState,
    /// What keeps what is changed; none where nothing will be changed.
    pub history: Option<Arc<History>>,
    /// Why this driver only looks, whatever the graph says: its state cannot be kept (B-22).
    pub observing: Option<Arc<str>>,
    /// Who listens.
    pub audience: Box<dyn Observer>,
}

impl std::fmt::Debug for DriverDeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("recalled", &self.recalled).finish_non_exhaustive()
    }
}
