//! Active runs: checks and applies on threads or as tasks, their results, and their cancellation.
//!
//! Purpose: start a run, take its result back into the loop, and report the result to the engine. Invariants: no apply
//! starts without a permit, and a panic of a kind never ends the driver. Reading order: this file (the component),
//! `check.rs`, `record_begin.rs` (recorded before the apply), `apply.rs`, `end.rs`, `failures.rs` (the last failures),
//! `thread_pool.rs` (the threads), `echo_filter.rs` (events of the daemon's own writes).

pub(super) mod apply;
pub(super) mod check;
pub(super) mod echo_filter;
pub(super) mod end;
pub(super) mod failures;
pub(super) mod record_begin;
pub(super) mod thread_pool;

use super::groups::run::{MemberRun, MemberStates};
use super::groups::split::SplitMembers;
use super::queries::metrics::RunMetrics;
use super::queries::statistics::ResourceStatistics;
use super::values::source_changes::RecentApplies;
pub(super) use check::check;
use echo_filter::EchoFilter;
use failures::LastFailures;
use futures_util::FutureExt as _;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use steadfast_engine::{Class, RunId, VertexId};
use steadfast_resources::{
    Answer, BuiltResource, Change, CopyDigest, CopyDigestSlot, Difference, Failure, KeyedHash,
    Outcome, Resource, SentSlot,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A run, from its start until its result has been reported.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct ActiveRun {
    pub(super) vertex: VertexId,
    /// The identity of the vertex: the vertex may be gone when the end of the run is reported.
    pub(super) identity: Arc<str>,
    /// The failure of the run.
    pub(super) failure: Option<Failure>,
    pub(super) look: bool,
    /// The cause of the run, in one word.
    pub(super) cause: &'static str,
    /// True if the run includes a refresh.
    refresh: bool,
    pub(super) started: Instant,
    pub(super) cancel: CancellationToken,
    /// The resource as declared. A receiver runs the resource in `made` instead.
    pub(super) resource: Arc<dyn Resource>,
    /// The resource built with received values.
    pub(super) made: Arc<OnceLock<BuiltResource>>,
    /// The hash of the received values.
    pub(super) origins: Option<KeyedHash>,
    /// The slot for the digest of a copied source, filled by the check.
    pub(super) copies: Option<Arc<CopyDigestSlot>>,
    /// The slot for values that other resources receive, filled after the check or the apply.
    pub(super) sent: Option<Arc<SentSlot>>,
    pub(super) change: Option<Change>,
    /// The members of a group run; empty for a single resource.
    pub(super) parts: Vec<MemberRun>,
    pub(super) differences: Vec<Difference>,
    pub(super) destructive: bool,
    /// True if the object does not exist yet.
    pub(super) creates: bool,
    pub(super) notes: Vec<String>,
    pub(super) took: Duration,
    /// True if the begin of this run was recorded or is being recorded.
    pub(super) begun: bool,
    /// The cause of the change.
    pub(super) class: Class,
    /// True if the resource is contended.
    pub(super) is_contended: bool,
    /// True while the end of the run is being recorded; the result is reported when the record is durable.
    pub(super) closing: bool,
}

/// The active runs, and the results of past ones.
#[derive(Debug)]
pub(super) struct RunManager {
    /// All active runs by number.
    pub(super) active: BTreeMap<RunId, ActiveRun>,
    /// Events that the driver's own applies may have caused.
    pub(super) echo: EchoFilter,
    /// Recent applies that may have changed a source that other resources copy.
    pub(super) recent_applies: RecentApplies,
    /// The last failure of each resource that is not as declared.
    pub(super) failures: LastFailures,
    /// The status of each group member at its last check.
    pub(super) members: HashMap<VertexId, MemberStates>,
    /// Resources that are temporarily split from their groups.
    pub(super) split: SplitMembers,
    /// Times and counts of checks, changes and events.
    pub(super) statistics: ResourceStatistics,
    /// Counters and durations for metrics.
    pub(super) metrics: RunMetrics,
    /// The last run that was examined for a late answer.
    examined: RunId,
}

/// The time after which a check without an answer is late.
const LATE: Duration = Duration::from_mins(1);

impl RunManager {
    pub(super) fn new() -> Self {
        Self {
            active: BTreeMap::new(),
            echo: EchoFilter::default(),
            recent_applies: RecentApplies::default(),
            failures: LastFailures::default(),
            members: HashMap::new(),
            split: SplitMembers::default(),
            statistics: ResourceStatistics::new(Instant::now()),
            metrics: RunMetrics::default(),
            examined: RunId(0),
        }
    }

    /// Returns the first run that was not examined for a late answer, with the time at which it is late.
    fn next_late(&self) -> Option<(RunId, Instant)> {
        let later = (Bound::Excluded(self.examined), Bound::Unbounded);
        self.active.range(later).next().map(|(run, live)| (*run, live.started + LATE))
    }

    /// Returns the time at which the next run is late.
    pub(super) fn late_at(&self) -> Option<Instant> {
        self.next_late().map(|(_, at)| at)
    }

    /// Returns a run that is late now, once.
    pub(super) fn take_late(&mut self, now: Instant) -> Option<RunId> {
        let (run, _) = self.next_late().filter(|(_, at)| *at <= now)?;
        self.examined = run;
        Some(run)
    }

    /// Cancels a run.
    pub(super) fn cancel(&self, run: RunId) {
        if let Some(live) = self.active.get(&run) {
            live.cancel.cancel();
        }
    }

    /// Drops a run whose end is not being recorded.
    pub(super) fn drop_unless_closing(&mut self, run: RunId) {
        if self.active.get(&run).is_some_and(|live| !live.closing) {
            self.active.remove(&run);
        }
    }

    /// Forgets a vertex that has left the graph.
    pub(super) fn forget(&mut self, id: VertexId) {
        self.members.remove(&id);
        self.split.forget(id);
        self.failures.remove(id);
        self.statistics.forget(id);
        self.metrics.forget(id);
    }
}

/// A dropped driver cancels its runs, so that they change nothing more.
impl Drop for RunManager {
    fn drop(&mut self) {
        for live in self.active.values() {
            live.cancel.cancel();
        }
    }
}

impl ActiveRun {
    /// Returns true if the run creates the object of this vertex.
    pub(super) fn creates(&self, id: VertexId) -> bool {
        match self.parts.iter().find(|part| part.id == id) {
            Some(part) => part.creates,
            None => self.creates && self.parts.is_empty(),
        }
    }

    /// Returns the outcome for one member of a group run.
    pub(super) fn outcome(&self, id: VertexId) -> Option<steadfast_engine::Outcome> {
        let part = self.parts.iter().find(|part| part.id == id)?;
        Some(match part.outcome.as_ref()? {
            Outcome::Unchanged => steadfast_engine::Outcome::Unchanged,
            Outcome::Changed(_) => steadfast_engine::Outcome::Changed,
            Outcome::Failed { touched, .. } => {
                steadfast_engine::Outcome::Failed { touched: *touched }
            }
            Outcome::Interrupted => steadfast_engine::Outcome::Interrupted,
        })
    }

    /// Returns the digest of the copied source, if the check has recorded one.
    pub(super) fn copied(&self) -> Option<CopyDigest> {
        self.copies.as_ref()?.now()
    }

    /// Returns the resource that this run checks and applies.
    pub(super) fn resource(&self) -> Arc<dyn Resource> {
        Arc::clone(self.made.get().map_or(&self.resource, |made| &made.resource))
    }
}

/// Turns a panic of a kind into a failure of its run.
pub(super) async fn guarded<T>(answer: Answer<'_, T>) -> Result<T, Failure> {
    std::panic::AssertUnwindSafe(answer).catch_unwind().await.map_err(|panic| {
        let said = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Failure::new(format!("the kind panicked: {said}"))
            .hint("this is a bug of steadfast: please report it")
    })
}
