//! Turns notices of the engine into notifications: vertex numbers become identities, and results of runs are added.
//!
//! Purpose: one place for all messages of the driver to its [`super::Observer`]. Invariants: a notification changes no
//! state of the engine, and sending one never blocks. Reading order: `notification.rs` (the types), `notifier.rs` (the
//! component), this file, `culprits.rs` (the culprit of a contention), `as_event.rs` (notifications as events).

mod as_event;
pub(super) mod culprits;
pub(super) mod notification;
pub(super) mod notifier;

use super::{ConflictCause, Driver, LoadError, Notification, Progress, RunRef};
use crate::api::{ChangeClass, Differing};
use std::time::Duration;
use steadfast_engine::{
    Class, Counts, Culprit, HeldReason, Notice, Outcome, RunId, Tick, VertexId, VertexStatus,
};
use steadfast_resources::{Difference, Failure};

/// The maximum number of waiting or running resources that a notification names.
const NAMED: usize = 5;

impl Driver {
    pub(super) fn notify(&mut self, notice: Notice) {
        match notice {
            Notice::Loaded { .. } => self.notify_loaded(),
            Notice::SwapWaits(_) if self.graph.is_regrouping() => {}
            Notice::SwapWaits(ids) => {
                self.note_taken(&ids);
                let ids = self.all_concerned(&ids);
                if let Some((_, change)) = self.graph.change() {
                    let waits = names(&self.graph, &ids);
                    self.notifier.notify(&Notification::Loading { waits, change });
                }
            }
            Notice::SwapRefused => {
                if self.graph.drop_groups() {
                    return;
                }
                self.graph.drop_pending();
                self.refuse(LoadError::Stopping);
            }
            Notice::Ran(id, run, outcome) => self.notify_run_ended(id, run, outcome),
            Notice::CheckFailed(id, run) => {
                let cause = self.runs.active.get(&run).map_or("", |live| live.cause);
                self.notify_run_failed(id, RunRef { number: run.0, cause });
            }
            Notice::Asking(id, _) => self.notify_asking(id),
            Notice::Excused(id, _) => self.notify_excused(id),
            Notice::Retrying(id, at) => self.notify_retrying(id, at),
            Notice::Failed(id) => self.notify_failed(id),
            Notice::Recovered(id) => self.notify_recovered(id),
            Notice::Held(id, holding) => self.notify_held(id, holding),
            Notice::Contended { .. }
            | Notice::StillContended { .. }
            | Notice::ContentionEnded(_)
            | Notice::RepairsSuspended { .. }
            | Notice::RepairsResumed => self.notify_contention(&notice),
            Notice::Stuck(id, _) => {
                for id in self.runs.concerned(self.graph.groups(), id) {
                    self.notifier.notify(&Notification::Stuck(self.graph.name(id)));
                }
            }
            Notice::Diverged(id) => self.notify_diverged(id),
            Notice::Converged => {
                self.runs.statistics.converged = Some(tokio::time::Instant::now());
                self.runs.metrics.note_convergence();
                let counts: Counts = self.counts();
                let is_contended = std::mem::take(&mut self.notifier.contended_drift);
                self.notifier.notify(&Notification::Converged { counts, is_contended });
            }
            Notice::Pausing(ids) => {
                let ids = self.all_concerned(&ids);
                self.notifier.notify(&Notification::Pausing(names(&self.graph, &ids)));
            }
            Notice::Paused => {
                let ends_in = self.runtime.until(self.commands.pause_until);
                self.notifier
                    .notify(&Notification::Paused { reason: &self.commands.pause_reason, ends_in });
            }
            Notice::Resumed => self.notifier.notify(&Notification::Resumed),
            Notice::PauseEnds(at) => {
                let left = self.runtime.until(at);
                self.notifier.notify(&Notification::PauseEnds(left));
            }
            Notice::Stopping(ids) => {
                let ids = self.all_concerned(&ids);
                self.notifier.notify(&Notification::Stopping(names(&self.graph, &ids)));
            }
            Notice::Stopped(ids) => {
                let ids = self.all_concerned(&ids);
                self.notifier.notify(&Notification::Stopped(names(&self.graph, &ids)));
            }
        }
    }

    fn notify_loaded(&mut self) {
        // No change: the same graph with other groups. Arrivals and removals were reported before.
        let Some(change) = self.graph.loads.change.take() else { return };
        self.watches.search_missed(self.settings.sweep.is_some());
        // A later convergence belongs to the new graph.
        self.notifier.contended_drift = false;
        let graph = self.graph.graph();
        self.notifier.notify(&Notification::Loaded { graph, change: &change });
    }

    /// Reports the first drift since convergence. Contended resources drift after each repair; the flag marks them.
    fn notify_diverged(&mut self, id: VertexId) {
        self.runs.statistics.converged = None;
        self.notifier.contended_drift = self.engine.is_contended(id);
        let first = self.runs.concerned(self.graph.groups(), id).first().copied().unwrap_or(id);
        let (identity, is_contended) = (self.graph.name(first), self.notifier.contended_drift);
        self.notifier.notify(&Notification::Diverged { identity, is_contended });
    }

    fn notify_contention(&mut self, notice: &Notice) {
        match *notice {
            Notice::Contended { vertex, party, repairs } => {
                let by = match party {
                    Culprit::Foreign => ConflictCause::Another,
                    Culprit::Itself => ConflictCause::Itself,
                    Culprit::Ours(other) => match self.culprit(other, vertex) {
                        Some(other) => ConflictCause::Ours(self.graph.name(other)),
                        None => ConflictCause::Another,
                    },
                    Culprit::Unknown => ConflictCause::Unknown,
                };
                let identity = self.graph.name(self.runs.changed_last(self.graph.groups(), vertex));
                self.notifier.notify(&Notification::Contended { identity, by, repairs });
                self.split_contended(vertex);
            }
            Notice::StillContended { vertex, repairs, since } => {
                let next = match self.engine.vertex_status(vertex) {
                    Some(VertexStatus::Contended { next: Some(at), .. }) => {
                        Some(self.runtime.until(at))
                    }
                    _ => None,
                };
                let lasts = Duration::from_nanos(self.now().0.saturating_sub(since.0));
                let identity = self.graph.name(self.runs.changed_last(self.graph.groups(), vertex));
                self.notifier.notify(&Notification::StillContended {
                    identity,
                    repairs,
                    lasts,
                    next,
                });
            }
            Notice::ContentionEnded(id) => {
                let id = self.runs.changed_last(self.graph.groups(), id);
                self.notifier.notify(&Notification::ContentionEnded(self.graph.name(id)));
            }
            Notice::RepairsSuspended { repairs, until } => {
                let pause = self.runtime.until(until);
                self.notifier.notify(&Notification::RepairsSuspended { repairs, pause });
            }
            Notice::RepairsResumed => self.notifier.notify(&Notification::RepairsResumed),
            _ => {}
        }
    }

    fn all_concerned(&self, ids: &[VertexId]) -> Vec<VertexId> {
        ids.iter().flat_map(|id| self.runs.concerned(self.graph.groups(), *id)).collect()
    }

    fn notify_recovered(&mut self, id: VertexId) {
        self.runs.statistics.note_right(id);
        self.runs.split.recovered(id);
        let is_contended = self.engine.is_contended(id);
        for id in self.graph.groups().members(&id) {
            self.runs.failures.remove(*id);
            self.notifier
                .notify(&Notification::Recovered { identity: self.graph.name(*id), is_contended });
        }
    }

    fn notify_asking(&mut self, id: VertexId) {
        let above = match self.engine.vertex_status(id) {
            Some(VertexStatus::Asking(above)) => above,
            // The parents have answered already, or answered before the end was durable.
            _ => Vec::new(),
        };
        let above = names(&self.graph, &above);
        for id in self.runs.concerned(self.graph.groups(), id) {
            self.notifier
                .notify(&Notification::Asking { identity: self.graph.name(id), above: &above });
        }
    }

    fn notify_excused(&mut self, id: VertexId) {
        for id in self.runs.concerned(self.graph.groups(), id) {
            self.notifier.notify(&Notification::Excused(self.graph.name(id)));
        }
    }

    fn notify_retrying(&mut self, id: VertexId, at: Tick) {
        let (after, run) = (self.runtime.until(at), self.runs.statistics.failing(id));
        let is_contended = self.engine.is_contended(id);
        for id in self.runs.concerned(self.graph.groups(), id) {
            let (identity, failure) = (self.graph.name(id), self.runs.failures.get(id));
            let change = self.runs.failures.change(id);
            self.notifier.notify(&Notification::Retrying {
                identity,
                failure,
                change,
                after,
                run,
                is_contended,
            });
        }
        self.note_retry(id);
    }

    pub(super) fn notify_started(&mut self, id: VertexId) {
        for id in self.graph.groups().members(&id) {
            self.notifier.notify(&Notification::Started(self.graph.name(*id)));
        }
    }

    fn notify_unchanged(&mut self, id: VertexId) {
        self.notifier.notify(&Notification::Unchanged(self.graph.name(id)));
    }

    fn notify_run_ended(&mut self, id: VertexId, run: RunId, outcome: Outcome) {
        let mut live = self.runs.active.remove(&run);
        // A later run may have removed the record of this run.
        if let Some(live) = live.as_mut()
            && let Some(failure) = live.failure.take()
        {
            self.runs.failures.insert(id, failure);
            let differences = std::mem::take(&mut live.differences);
            self.runs.failures.note_change(id, live.class, differences);
        }
        let ran = RunRef { number: run.0, cause: live.as_ref().map_or("", |live| live.cause) };
        match outcome {
            Outcome::Changed | Outcome::Unchanged => self.runs.statistics.note_right(id),
            Outcome::Failed { .. } | Outcome::Interrupted => {
                self.runs.statistics.note_failing(id, ran);
            }
        }
        if let Some(live) = live.as_ref().filter(|live| !live.parts.is_empty()) {
            self.notify_members(run, live);
            return;
        }
        match outcome {
            Outcome::Changed => {
                let class = live.as_ref().map_or(Class::Intentional, |live| live.class);
                let is_contended = live.as_ref().is_some_and(|live| live.is_contended);
                self.note_changed(id, class);
                let identity = match &live {
                    Some(live) => &live.identity,
                    None => self.graph.name(id),
                };
                let (differences, notes, took) = match &live {
                    Some(live) => (live.differences.as_slice(), live.notes.as_slice(), live.took),
                    None => (&[][..], &[][..], Duration::ZERO),
                };
                self.notifier.notify(&Notification::Changed {
                    identity,
                    differences,
                    notes,
                    took,
                    class,
                    run: ran,
                    is_contended,
                });
                self.notify_removed(id, true);
            }
            Outcome::Unchanged => self.notify_unchanged(id),
            Outcome::Failed { .. } => self.notify_run_failed(id, ran),
            Outcome::Interrupted => {
                let identity = self.graph.name(id);
                self.notifier.notify(&Notification::Interrupted { identity, run: ran });
            }
        }
    }

    pub(super) fn note_changed(&mut self, id: VertexId, class: Class) {
        self.runs.statistics.note_change(id, class);
        self.runs.metrics.note_change(self.graph.name(id), class);
        if self.settings.one_shot {
            self.one_shot.changed.insert(id);
        }
    }

    fn notify_run_failed(&mut self, id: VertexId, run: RunRef) {
        self.runs.statistics.note_failing(id, run);
        let unknown = Failure::new("the run failed without a reason");
        for id in self.runs.concerned(self.graph.groups(), id) {
            let failure = self.runs.failures.get(id).unwrap_or(&unknown);
            let identity = self.graph.name(id);
            self.runs.metrics.note_failure(identity);
            self.notifier.notify(&Notification::RunFailed { identity, failure, run });
        }
        self.notify_stored_answer(id);
    }

    fn notify_failed(&mut self, id: VertexId) {
        let mut waiting = (Vec::new(), 0);
        // A scan of all vertices for each failure costs too much when many fail at once.
        let few = self.engine.counts().failed <= 20;
        for other in self.graph.ids().filter(|_| few) {
            if let Some(VertexStatus::WaitingFor(ids)) = self.current_status(other)
                && ids.contains(&id)
            {
                waiting.1 += 1;
                if waiting.0.len() < NAMED {
                    waiting.0.push(self.graph.name(other));
                }
            }
        }
        let run = self.runs.statistics.failing(id);
        for id in self.runs.concerned(self.graph.groups(), id) {
            let (identity, failure) = (self.graph.name(id), self.runs.failures.get(id));
            let (waiting, change) = (waiting.clone(), self.runs.failures.change(id));
            self.notifier.notify(&Notification::Failed { identity, failure, change, waiting, run });
        }
        self.part_who_failed(id);
    }

    /// Reports the progress: some running resources, and some waiting ones with one resource that each waits for.
    pub(super) fn notify_progress(&mut self) {
        const SCANNED: usize = 2000;
        let live = self.runs.active.values().filter(|live| !live.look && !live.closing);
        let running = live.take(NAMED).map(|live| self.graph.name(live.vertex)).collect();
        let mut waiting = Vec::new();
        for id in self.graph.ids().take(SCANNED) {
            if let Some(VertexStatus::WaitingFor(whom) | VertexStatus::Asking(whom)) =
                self.current_status(id)
                && let Some(first) = whom.first()
            {
                waiting.push((self.graph.name(id), self.graph.name(*first)));
                if waiting.len() == NAMED {
                    break;
                }
            }
        }
        let counts = self.counts();
        self.notifier.notify(&Notification::Progress(Progress { counts, running, waiting }));
    }

    fn notify_held(&mut self, id: VertexId, holding: HeldReason) {
        if holding == HeldReason::Operator {
            self.runs.statistics.note_undecided(id);
        }
        let (run, live) = self.runs.run_of_vertex(id).unzip();
        let until = match holding {
            HeldReason::UnknownUntil(above) => Some(self.graph.name(above)),
            HeldReason::Window(window) => {
                let windows = self.graph.windows();
                windows.get(window.0 as usize).map(|(text, _)| text.as_str())
            }
            HeldReason::WouldChange | HeldReason::WouldRefresh | HeldReason::Operator => None,
        };
        let parts = live.map_or(&[][..], |live| live.parts.as_slice());
        for part in parts {
            let above = self.above_failed_member(id, part.id, holding);
            let (holding, until) = match above {
                Some(above) => (HeldReason::UnknownUntil(above), Some(self.graph.name(above))),
                None => (holding, until),
            };
            if matches!(holding, HeldReason::WouldChange | HeldReason::Window(_))
                && part.differences.is_empty()
            {
                continue;
            }
            self.notifier.notify(&Notification::Held {
                identity: &part.identity,
                holding,
                until,
                differences: &part.differences,
                destructive: part.destructive,
                creates: part.creates,
                premise_digest: part.premise_digest(),
                follows: false,
                failure: self.runs.failures.get(part.id),
                run,
            });
        }
        if !parts.is_empty() {
            return;
        }
        self.notifier.notify(&Notification::Held {
            identity: self.graph.name(id),
            holding,
            until,
            differences: live.map_or(&[], |live| &live.differences),
            destructive: live.is_some_and(|live| live.destructive),
            creates: live.is_some_and(|live| live.creates),
            premise_digest: live
                .and_then(|live| live.change.as_ref())
                .map_or(0, |change| change.premise_digest),
            follows: self.one_shot.overlaps.follows(id),
            failure: self.runs.failures.get(id),
            run,
        });
    }
}

fn names<'a>(table: &'a super::graph::registry::GraphRegistry, ids: &[VertexId]) -> Vec<&'a str> {
    ids.iter().map(|id| table.name(*id)).collect()
}

impl From<Class> for ChangeClass {
    fn from(class: Class) -> Self {
        match class {
            Class::Intentional => Self::Intentional,
            Class::Corrective => Self::Corrective,
            Class::NotIdempotent => Self::NotIdempotent,
            Class::Contended => Self::Contended,
        }
    }
}

impl From<&Difference> for Differing {
    fn from(one: &Difference) -> Self {
        let (from, to, diff) = (one.from.clone(), one.to.clone(), one.diff.clone());
        Self { aspect: one.aspect.to_owned(), from, to, diff }
    }
}
