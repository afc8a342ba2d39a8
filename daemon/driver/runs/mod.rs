//! Active runs: checks and applies on threads or as tasks, their results, and their cancellation.
//!
//! Purpose: start a run, take its result back into the loop, and report the result to the engine. Invariants: no apply
//! starts without a permit, and a panic of a kind never ends the driver. Reading order: this file, `thread_pool.rs`
//! (the threads), `echo_filter.rs` (events of the daemon's own writes).

pub(super) mod echo_filter;
pub(super) mod thread_pool;

use super::groups::run::MemberRun;
use super::plan::overlaps::check_step;
use super::queries::statistics::Moment;
use super::values::ReceiverInputs;
use super::{Driver, DriverEvent, Notification};
use crate::config::Vertex;
use crate::store::{Entry, Origin};
use futures_util::FutureExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use steadfast_engine::{Class, Event, RunId, Start, VertexId, Why};
use steadfast_resources::{
    Answer, BuiltResource, Change, CheckRequest, CheckResult, CopyDigest, CopyDigestSlot,
    Difference, Failure, Host, KeyedHash, Outcome, Resource, WatchSource,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// A run, from its start until its result has been reported.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct ActiveRun {
    pub(super) vertex: VertexId,
    /// The identity of the vertex: the vertex may be gone when the end of the run is reported.
    pub(super) identity: Arc<str>,
    /// The failure of the run.
    pub(super) trouble: Option<Failure>,
    pub(super) look: bool,
    /// The cause of the run, in one word.
    pub(super) cause: &'static str,
    /// True if the run includes a refresh.
    refresh: bool,
    started: Instant,
    pub(super) cancel: CancellationToken,
    /// The resource as declared. A receiver runs the resource in `made` instead.
    pub(super) resource: Arc<dyn Resource>,
    /// The resource built with received values.
    pub(super) made: Arc<OnceLock<BuiltResource>>,
    /// The hash of the received values.
    pub(super) origins: Option<KeyedHash>,
    /// The slot for the digest of a copied source, filled by the check.
    pub(super) copies: Option<Arc<CopyDigestSlot>>,
    pub(super) change: Option<Change>,
    /// The members of a group run; empty for a single resource.
    pub(super) parts: Vec<MemberRun>,
    pub(super) differences: Vec<Difference>,
    pub(super) destructive: bool,
    /// True if the object does not exist yet.
    creates: bool,
    pub(super) notes: Vec<String>,
    pub(super) took: Duration,
    /// True if the begin of this run was recorded or is being recorded.
    pub(super) begun: bool,
    /// The cause of the change.
    pub(super) class: Class,
    /// True if the resource is contended.
    pub(super) in_fight: bool,
    /// True while the end of the run is being recorded; the result is reported when the record is durable.
    pub(super) closing: bool,
}

/// All active runs by number.
#[derive(Debug, Default)]
pub(super) struct ActiveRuns(pub(super) BTreeMap<RunId, ActiveRun>);

/// A dropped driver cancels its runs, so that they change nothing more.
impl Drop for ActiveRuns {
    fn drop(&mut self) {
        for live in self.0.values() {
            live.cancel.cancel();
        }
    }
}

impl Driver {
    fn ask(&self, start: Start, entry: &Vertex, cancel: &CancellationToken) -> CheckRequest {
        // Plain checks and noop resources record nothing.
        let keeps = !start.look && !entry.meta.noop && self.keeper.is_some();
        let copies =
            keeps.then(|| Arc::new(CopyDigestSlot::since(self.values.copied(&entry.identity))));
        CheckRequest { refresh: start.refresh, run: !start.look, cancel: cancel.clone(), copies }
    }

    /// Starts the check of a vertex.
    pub(super) fn start(&mut self, start: Start) {
        let Some(entry) = self.table.get(start.vertex) else {
            let trouble = Failure::new("the resource is no longer in the graph");
            self.inbox.put(DriverEvent::Checked(start.run, CheckResult::Unknown(trouble)));
            return;
        };
        let cancel = CancellationToken::new();
        let ask = self.ask(start, entry, &cancel);
        let seat = entry.resource.traits().seat;
        let recipe = entry.recipe.as_ref();
        let meal = recipe.map(|recipe| self.values.meal(&entry.identity, recipe)).transpose();
        let meal = match meal {
            Ok(meal) => meal,
            Err(trouble) => {
                self.inbox.put(DriverEvent::Checked(start.run, CheckResult::Unknown(trouble)));
                None
            }
        };
        let kept = self.values.stored_value(&entry.identity, entry.definition);
        let resource = kept.and_then(|kept| entry.resource.with_sent(kept));
        let resource = resource.unwrap_or_else(|| Arc::clone(&entry.resource));
        let is_missing = recipe.is_some() && meal.is_none();
        let group = self.table.groups().get(start.vertex);
        let transaction = group.map(|group| Arc::clone(&group.transaction));
        let live = ActiveRun {
            parts: self.parts(start.vertex),
            vertex: start.vertex,
            identity: Arc::clone(&entry.identity),
            trouble: None,
            look: start.look,
            cause: self.cause(start.vertex),
            refresh: start.refresh,
            started: Instant::now(),
            cancel,
            resource: Arc::clone(&resource),
            made: Arc::default(),
            origins: meal.as_ref().map(|meal| meal.origins.clone()),
            copies: ask.copies.clone(),
            change: None,
            differences: Vec::new(),
            destructive: false,
            creates: false,
            notes: Vec::new(),
            took: Duration::ZERO,
            begun: false,
            class: Class::Intentional,
            in_fight: false,
            closing: false,
        };
        let seat_and_count = (seat, live.parts.len());
        let made = Arc::clone(&live.made);
        self.runs.0.insert(start.run, live);
        self.rotated.runs(start.vertex);
        if is_missing {
            return;
        }
        if let Some(transaction) = transaction {
            self.check_parts(transaction, seat_and_count, ask, start.run);
            return;
        }
        let (host, run, presence) = (self.host.clone(), start.run, Arc::clone(&self.presence));
        let step = self.planned_step(start, &ask.cancel);
        let work = async move {
            let verdict = check_step(step, &host, (resource, meal, &made), ask).await;
            drop(presence);
            DriverEvent::Checked(run, verdict)
        };
        let span = self.span(run);
        self.hands.run(seat, false, Box::pin(work.instrument(span)));
    }

    /// Returns the span for all log lines of a run.
    pub(super) fn span(&self, run: RunId) -> tracing::Span {
        let Some(live) = self.runs.0.get(&run) else { return tracing::Span::none() };
        // The highest level passes every log filter.
        tracing::error_span!("run", resource = &*live.identity, run = run.0, cause = live.cause)
    }

    /// Returns the cause of a run in one word.
    pub(super) fn cause(&self, id: VertexId) -> &'static str {
        match self.engine.why(id) {
            Some(Why::Operator) => "operator",
            Some(Why::Event) => "event",
            Some(Why::Value) => "value",
            Some(Why::Refresh) => "refresh",
            Some(Why::Again) => "again",
            Some(Why::Load) => "load",
            Some(Why::Poll) => "poll",
            Some(Why::Look) | None => "look",
        }
    }

    /// Starts the apply of the change that the check of this run has found.
    pub(super) fn apply(&mut self, run: RunId, id: VertexId) {
        if self.runs.0.get(&run).is_some_and(|live| !live.parts.is_empty()) {
            self.apply_parts(run, id);
            return;
        }
        let cause = self.cause(id);
        let Some((entry, live)) = self.table.get(id).zip(self.runs.0.get_mut(&run)) else { return };
        let Some(change) = live.change.take() else {
            let trouble = Failure::new("the check of this run left nothing to apply");
            self.inbox.put(DriverEvent::Ended(run, Outcome::Failed { trouble, touched: false }));
            return;
        };
        let history = self.history.as_ref();
        let keeper = history.and_then(|history| history.keeper(&live.identity, cause));
        let permit = self.key.mint(live.cancel.clone()).kept_by(keeper);
        let (resource, seat) = (live.resource(), entry.resource.traits().seat);
        let host = self.host.clone();
        self.echo.applying(id);
        let presence = Arc::clone(&self.presence);
        let work = async move {
            let outcome = guarded(resource.apply(&host, &permit, change))
                .await
                .unwrap_or_else(|trouble| Outcome::Failed { trouble, touched: true });
            drop(presence);
            DriverEvent::Ended(run, outcome)
        };
        let span = self.span(run);
        self.hands.run(seat, true, Box::pin(work.instrument(span)));
    }

    pub(super) fn checked(&mut self, run: RunId, verdict: CheckResult) {
        let Some(live) = self.runs.0.get_mut(&run) else { return };
        let (id, look) = (live.vertex, live.look);
        self.times.note(id, Moment::Checked);
        let verdict = if look && self.looks_back { self.look_back(id, verdict) } else { verdict };
        let verdict = match (look, verdict) {
            (false, CheckResult::Same) => self.same(run),
            (_, other) => other,
        };
        let verdict = if look { verdict } else { self.admit(id, verdict) };
        if matches!(verdict, CheckResult::Differs(_)) {
            self.turn_remade(run);
        }
        self.found(run, verdict);
    }

    /// Reports the result of a check to the engine.
    pub(super) fn found(&mut self, run: RunId, verdict: CheckResult) {
        let foresees = self.is_plan();
        let Some(live) = self.runs.0.get_mut(&run) else { return };
        let (id, look, refreshed) = (live.vertex, live.look, live.refresh);
        self.watches.note_verdict(id, &verdict);
        let verdict = match verdict {
            CheckResult::Same => {
                if refreshed {
                    self.restart_intervals(id);
                }
                if !look {
                    for member in self.table.groups().members(&id) {
                        self.troubles.remove(member);
                        self.audience.hear(&Notification::Same(self.table.name(*member)));
                    }
                    self.found_same(id);
                }
                steadfast_engine::RunVerdict::Same
            }
            CheckResult::Differs(change) => {
                live.differences.clone_from(&change.differences);
                (live.destructive, live.creates) = (change.destructive, change.creates);
                if foresees {
                    self.foresight.note(id, change.replaces);
                }
                live.change = Some(change);
                if live.parts.is_empty() {
                    // This check has succeeded: an earlier failure is obsolete.
                    self.troubles.remove(&id);
                }
                steadfast_engine::RunVerdict::Differs
            }
            CheckResult::Unknown(trouble) => {
                if live.parts.is_empty() {
                    self.troubles.insert(id, trouble);
                }
                self.note_failure(id);
                steadfast_engine::RunVerdict::Unknown
            }
        };
        self.note_deadline(run);
        self.turn(Event::Checked(run, verdict));
        if self.runs.0.get(&run).is_some_and(|live| !live.begun) {
            self.runs.0.remove(&run);
        }
    }

    /// Records the ownership of resources found as declared, and finishes removals whose object is already gone.
    fn found_same(&mut self, id: VertexId) {
        for id in self.table.groups().members(&id).to_vec() {
            let removes = self.table.get(id).is_some_and(|entry| entry.removes);
            if !removes {
                self.note_owned(id, Origin::Adopted);
                continue;
            }
            let identity = self.identity(id);
            if let Some(keeper) = &mut self.keeper {
                keeper.soon(Entry::Forget(identity));
            }
            self.mark_removed(id);
            self.tell_removed(id, false);
        }
    }

    pub(super) fn ended(&mut self, run: RunId, outcome: Outcome) {
        let Some(live) = self.runs.0.get_mut(&run) else { return };
        let (id, refreshed) = (live.vertex, live.refresh);
        live.took = live.started.elapsed();
        let is_one = live.parts.is_empty();
        let (outcome, parcel) = self.packed(run, outcome);
        let freed = self.watches.note_outcome(id, &outcome);
        let Some(live) = self.runs.0.get_mut(&run) else { return };
        let outcome = match outcome {
            Outcome::Unchanged => {
                if is_one {
                    self.troubles.remove(&id);
                }
                steadfast_engine::Outcome::Unchanged
            }
            Outcome::Changed(notes) => {
                live.notes = notes;
                if is_one {
                    self.troubles.remove(&id);
                }
                steadfast_engine::Outcome::Changed
            }
            Outcome::Failed { trouble, touched } => {
                if is_one {
                    live.trouble = Some(trouble.clone());
                    self.troubles.insert(id, trouble);
                }
                steadfast_engine::Outcome::Failed { touched }
            }
            Outcome::Interrupted => {
                self.note_deadline(run);
                steadfast_engine::Outcome::Interrupted
            }
        };
        let well = matches!(
            outcome,
            steadfast_engine::Outcome::Unchanged | steadfast_engine::Outcome::Changed
        );
        if refreshed && well {
            self.restart_intervals(id);
        }
        self.echo.applied(id);
        if well {
            self.exchange(run, parcel);
        }
        self.turn(Event::Ended(run, outcome));
        freed.into_iter().for_each(|id| self.turn(Event::Look(id)));
        self.drop_unless_closing(run);
    }

    /// Arms the sources of a refreshed vertex again: a refresh restarts the interval of a timer.
    fn restart_intervals(&self, id: VertexId) {
        let Some((hub, entry)) = self.hub.as_ref().zip(self.table.get(id)) else { return };
        let sources = entry.resource.footprint().watch;
        if sources.iter().any(|source| matches!(source, WatchSource::Every(_))) {
            hub.arm(id, sources);
        }
    }

    /// Drops a run whose end is not being recorded.
    pub(super) fn drop_unless_closing(&mut self, run: RunId) {
        if self.runs.0.get(&run).is_some_and(|live| !live.closing) {
            self.runs.0.remove(&run);
        }
    }

    /// Checks all changed resources once more (one-shot): a difference means that someone has undone the change, or
    /// that the resource is not idempotent. Returns true if checks were started.
    pub(super) fn look_once_more(&mut self) -> bool {
        let stopped = self.engine.mode() == steadfast_engine::Mode::Stopped;
        if !self.settings.one_shot || stopped || std::mem::replace(&mut self.looks_back, true) {
            return false;
        }
        let changed: BTreeSet<VertexId> =
            self.changed.iter().map(|id| self.table.groups().leader(*id)).collect();
        for id in changed {
            self.turn(Event::Look(id));
        }
        true
    }

    /// Collects the differences of a final check; they are reported at the end and not repaired.
    pub(super) fn look_back(&mut self, id: VertexId, verdict: CheckResult) -> CheckResult {
        if let Some(found) = differences(verdict) {
            self.moved.push((self.table.name(id).to_owned(), found));
        }
        CheckResult::Same
    }

    /// Handles a begin that could not be recorded: nothing was changed, and the vertex shows the reason (B-1).
    pub(super) fn note_refusal(&mut self, run: RunId) {
        let Some(live) = self.runs.0.remove(&run) else { return };
        let trouble = Failure::new("no changes made: the planned change could not be recorded")
            .hint("see `state_write_failed` in the log; check whether the disk of the state directory is full");
        for id in self.table.groups().members(&live.vertex) {
            self.troubles.entry(*id).or_insert_with(|| trouble.clone());
        }
        self.unmark(live.vertex);
        self.apart.is_refused(live.vertex);
    }

    /// Records a failure for a run that was cancelled at its deadline.
    fn note_deadline(&mut self, run: RunId) {
        let Some(live) = self.runs.0.get_mut(&run) else { return };
        if !live.cancel.is_cancelled() || self.engine.mode() == steadfast_engine::Mode::Stopping {
            return;
        }
        let limit = self.table.get(live.vertex).and_then(Vertex::timeout);
        let limit = limit.map_or_else(String::new, |t| format!(" of {} ms", t.as_millis()));
        let trouble = Failure::new(format!("the run exceeded its timeout{limit}"))
            .hint("`meta: { timeout: MS }` sets the timeout of a run");
        live.trouble = Some(trouble.clone());
        let id = live.vertex;
        for id in self.concerned(id) {
            self.troubles.insert(id, trouble.clone());
        }
    }
}

/// Checks a resource; a receiver is built from its inputs first.
pub(super) async fn check(
    host: &Host,
    resource: Arc<dyn Resource>,
    (meal, made): (Option<ReceiverInputs>, &OnceLock<BuiltResource>),
    ask: CheckRequest,
) -> CheckResult {
    let Some(meal) = meal else { return resource.check(host, ask).await };
    let new = match meal.make(host, &ask.cancel).await {
        Ok(new) => new,
        Err(trouble) => return CheckResult::Unknown(trouble),
    };
    let (resource, blind) = (Arc::clone(&new.resource), new.blind);
    drop(made.set(new));
    match resource.check(host, ask).await {
        // Placeholders for values that are not stored cannot be applied.
        CheckResult::Differs(_) if blind => CheckResult::Unknown(
            Failure::new("the received secret is not stored, and the resource must run again")
                .hint("refresh the sender to create a new secret, or store it with `saved: true`"),
        ),
        verdict => verdict,
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

fn differences(verdict: CheckResult) -> Option<Vec<Difference>> {
    match verdict {
        CheckResult::Same => None,
        CheckResult::Differs(change) => Some(change.differences),
        CheckResult::Unknown(trouble) => Some(vec![Difference {
            aspect: "unknown",
            from: trouble.what,
            to: String::new(),
            diff: None,
        }]),
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
