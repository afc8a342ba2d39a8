//! The check of a run: its start, and the processing of its result.

use super::{ActiveRun, guarded};
use crate::config::Vertex;
use crate::driver::plan::overlaps::check_step;
use crate::driver::queries::statistics::Moment;
use crate::driver::values::ReceiverInputs;
use crate::driver::{Driver, DriverEvent, Notification};
use crate::store::{Entry, Origin};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use steadfast_engine::{Class, Event, RunId, Start, VertexId, Why};
use steadfast_resources::{
    BuiltResource, CheckRequest, CheckResult, CopyDigestSlot, Failure, Host, Outcome, Resource,
    SentSlot,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

impl Driver {
    fn ask(&self, start: Start, entry: &Vertex, cancel: &CancellationToken) -> CheckRequest {
        // Plain checks and noop resources record nothing.
        let keeps = !start.look && !entry.meta.noop && self.journal.exists();
        let copies =
            keeps.then(|| Arc::new(CopyDigestSlot::since(self.values.copied(&entry.identity))));
        let sent = self.values.is_wanted(&entry.identity, false).then(Arc::default);
        let (refresh, run) = (start.refresh, !start.look);
        CheckRequest { refresh, run, cancel: cancel.clone(), copies, sent }
    }

    /// Starts the check of a vertex.
    pub(in crate::driver) fn start(&mut self, start: Start) {
        let Some(entry) = self.graph.get(start.vertex) else {
            let failure = Failure::new("the resource is no longer in the graph");
            self.runtime
                .inbox()
                .put(DriverEvent::Checked(start.run, CheckResult::Unknown(failure)));
            return;
        };
        let cancel = CancellationToken::new();
        let ask = self.ask(start, entry, &cancel);
        let executor = entry.resource.traits().executor;
        let recipe = entry.recipe.as_ref();
        let inputs =
            recipe.map(|recipe| self.values.receiver_inputs(&entry.identity, recipe)).transpose();
        let inputs = match inputs {
            Ok(inputs) => inputs,
            Err(failure) => {
                self.runtime
                    .inbox()
                    .put(DriverEvent::Checked(start.run, CheckResult::Unknown(failure)));
                None
            }
        };
        let kept = self.values.stored_value(&entry.identity, entry.definition);
        let resource = kept.and_then(|kept| entry.resource.with_sent(kept));
        let resource = resource.unwrap_or_else(|| Arc::clone(&entry.resource));
        let is_missing = recipe.is_some() && inputs.is_none();
        let group = self.graph.groups().get(start.vertex);
        let transaction = group.map(|group| Arc::clone(&group.transaction));
        let live = ActiveRun {
            parts: self.parts(start.vertex),
            vertex: start.vertex,
            identity: Arc::clone(&entry.identity),
            failure: None,
            look: start.look,
            cause: self.cause(start.vertex),
            refresh: start.refresh,
            started: Instant::now(),
            cancel,
            resource: Arc::clone(&resource),
            made: Arc::default(),
            origins: inputs.as_ref().map(|inputs| inputs.origins.clone()),
            copies: ask.copies.clone(),
            sent: ask.sent.clone(),
            change: None,
            differences: Vec::new(),
            destructive: false,
            creates: false,
            notes: Vec::new(),
            took: Duration::ZERO,
            begun: false,
            class: Class::Intentional,
            is_contended: false,
            closing: false,
        };
        let executor_and_count = (executor, live.parts.len());
        let made = Arc::clone(&live.made);
        self.runs.active.insert(start.run, live);
        self.values.rotation.runs(start.vertex);
        if is_missing {
            return;
        }
        if let Some(transaction) = transaction {
            self.check_parts(transaction, executor_and_count, ask, start.run);
            return;
        }
        let (host, run) = (self.runtime.host.clone(), start.run);
        let step = self.planned_step(start, &ask.cancel);
        let work = async move {
            let verdict = check_step(step, &host, (resource, inputs, &made), ask).await;
            DriverEvent::Checked(run, verdict)
        };
        let span = self.span(run);
        self.runtime.start_run((executor, false), span, work);
    }

    /// Returns the span for all log lines of a run.
    pub(in crate::driver) fn span(&self, run: RunId) -> tracing::Span {
        let Some(live) = self.runs.active.get(&run) else { return tracing::Span::none() };
        // The highest level passes every log filter.
        tracing::error_span!("run", resource = &*live.identity, run = run.0, cause = live.cause)
    }

    /// Returns the cause of a run in one word.
    pub(in crate::driver) fn cause(&self, id: VertexId) -> &'static str {
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

    /// Processes the result of a check of one resource.
    pub(in crate::driver) fn checked(&mut self, run: RunId, verdict: CheckResult) {
        let Some(live) = self.runs.active.get_mut(&run) else { return };
        let (id, look) = (live.vertex, live.look);
        self.runs.metrics.checks.observe(live.started.elapsed());
        self.runs.statistics.note(id, Moment::Checked);
        let verdict = if look && self.one_shot.is_final_check {
            self.look_back(id, verdict)
        } else {
            verdict
        };
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
    pub(in crate::driver) fn found(&mut self, run: RunId, verdict: CheckResult) {
        let foresees = self.is_plan();
        let Some(live) = self.runs.active.get_mut(&run) else { return };
        let (id, look, refreshed) = (live.vertex, live.look, live.refresh);
        self.watches.states.polled.note_verdict(id, &verdict);
        let verdict = match verdict {
            CheckResult::Same => {
                if refreshed {
                    self.restart_intervals(id);
                }
                if !look {
                    for member in self.graph.groups().members(&id) {
                        self.runs.failures.remove(*member);
                        self.notifier.notify(&Notification::Unchanged(self.graph.name(*member)));
                    }
                    self.found_same(id);
                }
                steadfast_engine::RunVerdict::Same
            }
            CheckResult::Differs(change) => {
                live.differences.clone_from(&change.differences);
                (live.destructive, live.creates) = (change.destructive, change.creates);
                if foresees {
                    self.one_shot.overlaps.note(id, change.replaces);
                }
                live.change = Some(change);
                if live.parts.is_empty() {
                    // This check has succeeded: an earlier failure is obsolete.
                    self.runs.failures.remove(id);
                }
                steadfast_engine::RunVerdict::Differs
            }
            CheckResult::Unknown(failure) => {
                if live.parts.is_empty() {
                    self.runs.failures.insert(id, failure);
                }
                self.note_failure(id);
                steadfast_engine::RunVerdict::Unknown
            }
        };
        self.note_deadline(run);
        self.turn(Event::Checked(run, verdict));
        if self.runs.active.get(&run).is_some_and(|live| !live.begun) {
            self.runs.active.remove(&run);
        }
    }

    /// Records the ownership of resources found as declared, and finishes removals whose object is already gone.
    fn found_same(&mut self, id: VertexId) {
        for id in self.graph.groups().members(&id).to_vec() {
            let removes = self.graph.get(id).is_some_and(|entry| entry.removes);
            if !removes {
                let entry = self.ownership.note_owned(&self.graph, id, Origin::Adopted);
                self.journal.record_all(entry);
                continue;
            }
            let identity = self.graph.identity(id);
            self.journal.record_soon(Entry::Forget(identity));
            self.mark_removed(id);
            self.notify_removed(id, false);
        }
    }
}

/// Checks a resource; a receiver is built from its inputs first.
pub(in crate::driver) async fn check(
    host: &Host,
    resource: Arc<dyn Resource>,
    (inputs, made): (Option<ReceiverInputs>, &OnceLock<BuiltResource>),
    ask: CheckRequest,
) -> CheckResult {
    let (slot, cancel) = (ask.sent.clone(), ask.cancel.clone());
    let Some(inputs) = inputs else {
        let verdict = resource.check(host, ask).await;
        return send_after_check(verdict, (host, &resource), (slot, &cancel)).await;
    };
    let new = match inputs.make(host, &ask.cancel).await {
        Ok(new) => new,
        Err(failure) => return CheckResult::Unknown(failure),
    };
    let (resource, blind) = (Arc::clone(&new.resource), new.blind);
    drop(made.set(new));
    match resource.check(host, ask).await {
        // Placeholders for values that are not stored cannot be applied.
        CheckResult::Differs(_) if blind => CheckResult::Unknown(
            Failure::new("the received secret is not stored, and the resource must run again")
                .hint(
                    "`steadfast forget` of its sender makes a new secret; `saved: true` stores it",
                ),
        ),
        verdict if blind => verdict,
        verdict => send_after_check(verdict, (host, &resource), (slot, &cancel)).await,
    }
}

/// Reads the values for other resources if nothing is to be done.
async fn send_after_check(
    verdict: CheckResult,
    (host, resource): (&Host, &Arc<dyn Resource>),
    (slot, cancel): (Option<Arc<SentSlot>>, &CancellationToken),
) -> CheckResult {
    let (CheckResult::Same, Some(slot)) = (&verdict, slot) else { return verdict };
    match fill_slot((host, resource), &slot, cancel).await {
        Ok(()) => verdict,
        Err(failure) => CheckResult::Unknown(failure),
    }
}

/// Reads the values for other resources after an apply; a failure to read them is a failure of the run.
pub(in crate::driver) async fn send_after_apply(
    outcome: Outcome,
    (host, resource): (&Host, &Arc<dyn Resource>),
    slot: Option<Arc<SentSlot>>,
) -> Outcome {
    let touched = match &outcome {
        Outcome::Unchanged => false,
        Outcome::Changed(_) => true,
        Outcome::Failed { .. } | Outcome::Interrupted => return outcome,
    };
    let Some(slot) = slot else { return outcome };
    match fill_slot((host, resource), &slot, &CancellationToken::new()).await {
        Ok(()) => outcome,
        Err(failure) => Outcome::Failed { failure, touched },
    }
}

async fn fill_slot(
    (host, resource): (&Host, &Arc<dyn Resource>),
    slot: &SentSlot,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    if let Some(read) = resource.read_sent(host, cancel) {
        slot.fill(guarded(read).await??);
    }
    Ok(())
}
