//! The apply of a run: its start, the processing of its outcome, and runs without a result.

use super::check::send_after_apply;
use super::guarded;
use crate::api::ChangeClass;
use crate::config::Vertex;
use crate::driver::{Driver, DriverEvent};
use steadfast_engine::{Class, Event, RunId, VertexId};
use steadfast_resources::{Failure, Outcome};

/// Returns the cause of a run as the history records it, with the class of the change: `event, corrective`.
pub(in crate::driver) fn recorded_cause(cause: &str, class: Class) -> String {
    format!("{cause}, {}", ChangeClass::from(class).words())
}

impl Driver {
    /// Starts the apply of the change that the check of this run has found.
    pub(in crate::driver) fn apply(&mut self, run: RunId, id: VertexId) {
        if self.runs.active.get(&run).is_some_and(|live| !live.parts.is_empty()) {
            self.apply_parts(run, id);
            return;
        }
        let cause = self.cause(id);
        let Some((entry, live)) = self.graph.get(id).zip(self.runs.active.get_mut(&run)) else {
            return;
        };
        let Some(change) = live.change.take() else {
            let failure = Failure::new("the check of this run left nothing to apply");
            self.runtime
                .inbox()
                .put(DriverEvent::Ended(run, Outcome::Failed { failure, touched: false }));
            return;
        };
        let cause = recorded_cause(cause, live.class);
        let permit = self.permission.mint(&live.identity, &cause, live.cancel.clone());
        let (resource, executor) = (live.resource(), entry.resource.traits().executor);
        let (host, slot) = (self.runtime.host.clone(), live.sent.clone());
        self.runs.echo.applying(id);
        let work = async move {
            let outcome = guarded(resource.apply(&host, &permit, change))
                .await
                .unwrap_or_else(|failure| Outcome::Failed { failure, touched: true });
            let outcome = send_after_apply(outcome, (&host, &resource), slot).await;
            DriverEvent::Ended(run, outcome)
        };
        let span = self.span(run);
        self.runtime.start_run((executor, true), span, work);
    }

    /// Processes the outcome of an apply.
    pub(in crate::driver) fn ended(&mut self, run: RunId, outcome: Outcome) {
        let Some(live) = self.runs.active.get_mut(&run) else { return };
        let (id, refreshed) = (live.vertex, live.refresh);
        live.took = live.started.elapsed();
        self.runs.metrics.repairs.observe(live.took);
        let is_one = live.parts.is_empty();
        let (outcome, parcel) =
            self.values.packed(&self.graph, self.runs.active.get(&run), outcome);
        let freed = self.watches.states.polled.note_outcome(id, &outcome);
        let Some(live) = self.runs.active.get_mut(&run) else { return };
        let outcome = match outcome {
            Outcome::Unchanged => {
                if is_one {
                    self.runs.failures.remove(id);
                }
                steadfast_engine::Outcome::Unchanged
            }
            Outcome::Changed(notes) => {
                live.notes = notes;
                if is_one {
                    self.runs.failures.remove(id);
                }
                steadfast_engine::Outcome::Changed
            }
            Outcome::Failed { failure, touched } => {
                if is_one {
                    live.failure = Some(failure.clone());
                    self.runs.failures.insert(id, failure);
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
        self.runs.echo.applied(id);
        if well {
            self.exchange(run, parcel);
        }
        self.turn(Event::Ended(run, outcome));
        for id in freed {
            self.turn(Event::Look(id));
        }
        self.runs.drop_unless_closing(run);
    }

    /// Arms the sources of a refreshed vertex again.
    pub(in crate::driver) fn restart_intervals(&self, id: VertexId) {
        if let Some(entry) = self.graph.get(id) {
            self.watches.restart_intervals(id, entry.resource.footprint().watch);
        }
    }

    /// Handles a begin that could not be recorded: nothing was changed, and the vertex shows the reason (B-1).
    pub(in crate::driver) fn note_refusal(&mut self, run: RunId) {
        let Some(live) = self.runs.active.remove(&run) else { return };
        let failure = Failure::new("no changes made: the planned change could not be recorded")
            .hint("see `state_write_failed` in the log for the cause, such as a full disk");
        for id in self.graph.groups().members(&live.vertex) {
            self.runs.failures.insert_if_none(*id, &failure);
        }
        self.journal.record_all(self.ownership.unmark(&self.graph, live.vertex));
        self.runs.split.is_refused(live.vertex);
    }

    /// Records a failure for a run that was cancelled at its deadline.
    pub(in crate::driver) fn note_deadline(&mut self, run: RunId) {
        let Some(live) = self.runs.active.get_mut(&run) else { return };
        if !live.cancel.is_cancelled() || self.engine.mode() == steadfast_engine::Mode::Stopping {
            return;
        }
        let limit = self.graph.get(live.vertex).and_then(Vertex::timeout);
        let limit = limit.map_or_else(String::new, |t| format!(" of {} ms", t.as_millis()));
        let timeout = || {
            Failure::new(format!("the run exceeded its timeout{limit}"))
                .hint("`meta: { timeout: MS }` sets the timeout of a run")
        };
        // A run whose permit has ended is cancelled, too, and has its reason.
        let failure = live.failure.clone().unwrap_or_else(timeout);
        live.failure = Some(failure.clone());
        let id = live.vertex;
        for id in self.runs.concerned(self.graph.groups(), id) {
            self.runs.failures.insert(id, failure.clone());
        }
    }
}
