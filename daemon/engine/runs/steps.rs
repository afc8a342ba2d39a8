//! The stations of a run: Checked, Ended, Durable, and the transitions between them; `begin` has the station Begun.

use crate::engine::Engine;
use crate::interface::action::{Action, HeldReason, Intent, Notice, Record};
use crate::interface::event::{Outcome, RunVerdict};
use crate::interface::ids::{RunId, Stamp, VertexId};
use crate::state::vertex::{Cancelled, Causes, Phase, Run, RunKind, Station, Vertex};
use std::time::Duration;

/// The time in which a cancelled run must return before it counts as stuck.
pub(crate) const RETURN: Duration = Duration::from_secs(1);

/// The time in which a cancelled command must return: its processes are asked to end first, and killed two seconds
/// later.
pub(crate) const RETURN_OF_COMMAND: Duration = Duration::from_secs(3);

impl Engine {
    /// Returns the vertex of a run in progress, and the run.
    pub(crate) fn run_of(&mut self, run: RunId) -> Option<(VertexId, &mut Run)> {
        let id = *self.in_flight.get(&run)?;
        let found = self.vertices.get_mut(id.0 as usize)?.as_mut()?.run_mut()?;
        (found.id == run).then_some((id, found))
    }

    pub(crate) fn checked(&mut self, run: RunId, verdict: RunVerdict) {
        let Some((id, now)) = self.run_of(run) else { return };
        if now.station != Station::Checking {
            return;
        }
        if now.cancelled.is_some() || now.obsolete {
            // The result crossed the cancel: the check has returned, and nothing was begun.
            self.ended(run, Outcome::Interrupted);
            return;
        }
        let (kind, noop) = (now.kind, now.noop);
        match kind {
            RunKind::Look(held) => self.looked(id, verdict, held),
            RunKind::Process if noop && verdict != RunVerdict::Same && self.is_freed(id) => {
                self.release(id);
                self.diverge(id);
                self.mark(id, Causes::AGAIN);
            }
            RunKind::Process => match verdict {
                RunVerdict::Same => self.same(id),
                RunVerdict::Differs => self.differs(id),
                RunVerdict::Unknown => self.unknown(id),
            },
        }
    }

    /// Marks a run whose inputs differ from those of the last good run: a difference that it finds is intentional,
    /// since nobody undid anything. The run still counts for contention and the repair limit, which bound an endless
    /// repetition.
    pub(crate) fn remade(&mut self, run: RunId) {
        if let Some((_, run)) = self.run_of(run) {
            run.remade = true;
        }
    }

    /// Marks a run that copies a source that others have changed: our own runs cause no loop here, so the run does not
    /// count for contention.
    pub(crate) fn supplied(&mut self, run: RunId) {
        if let Some((_, run)) = self.run_of(run) {
            run.supplied = true;
        }
    }

    /// Returns true if a swap has ended the noop of a vertex during its check: the vertex is run again (E-11).
    fn is_freed(&self, id: VertexId) -> bool {
        self.vertex(id).is_some_and(|vertex| !vertex.meta.noop)
    }

    fn same(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex(id) else { return };
        if vertex.meta.noop && vertex.owed > Stamp::NEVER {
            self.hold(id, HeldReason::WouldRefresh);
            self.ask_those_below(id);
        } else {
            self.run_succeeded(id, Outcome::Unchanged);
        }
    }

    fn differs(&mut self, id: VertexId) {
        self.diverge(id);
        let stamp = self.tick_stamp();
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.moved = stamp;
        if self.hold_if_dry_run(id) {
            return;
        }
        if !self.is_allowed(id) {
            self.hold_for_window(id);
            return;
        }
        let class = self.class_of(id);
        if self.suspended_until(id).is_some() && self.is_repair(id) {
            self.release(id);
            self.mark(id, Causes::LOOK);
            return;
        }
        let owes = self.notified(id);
        let Some(run) = self.vertex_mut(id).and_then(Vertex::run_mut) else { return };
        run.class = class;
        run.station = Station::Beginning;
        run.quiet = false;
        run.owes.clone_from(&owes);
        run.begun = Some(stamp);
        let (run, definition, pays) = (run.id, run.definition, run.pays);
        let intent = Intent { run, vertex: id, definition, stamp, class, owes, pays };
        self.out.push(Action::Begin(intent));
        self.touch(id);
    }

    fn unknown(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex(id) else { return };
        let Some(run) = vertex.run().map(|r| r.id) else { return };
        let is_noop = vertex.meta.noop;
        let is_certain = self.certain.remove(&id);
        if is_noop
            && !is_certain
            && let Some(above) = self.would_change_above(id)
        {
            self.hold_until(id, above);
            self.assume_possible_refresh(id);
            return;
        }
        self.diverge(id);
        self.note_moved(id);
        let Some(released) = self.release(id) else { return };
        if self.must_ask(id, released.stamp) {
            let asking = self.ask(id, &released, false);
            self.notify_in_order(id, asking);
            self.notify_in_order(id, Notice::CheckFailed(id, run));
            return;
        }
        self.notify_in_order(id, Notice::CheckFailed(id, run));
        let later = self.fail(id);
        self.notify_in_order(id, later);
    }

    fn looked(&mut self, id: VertexId, verdict: RunVerdict, held: Option<HeldReason>) {
        let start = self.release(id).map_or(Stamp::NEVER, |run| run.stamp);
        let owed = self.vertex(id).is_some_and(|v| v.owed > Stamp::NEVER);
        if verdict == RunVerdict::Same
            && let Some(vertex) = self.vertex_mut(id)
        {
            vertex.seen = start;
        }
        match (verdict, held) {
            // In noop nothing owed is ever done, so an owed refresh holds the vertex.
            (RunVerdict::Same, held) if held.is_none() || !owed => self.found_right(id),
            (RunVerdict::Same | RunVerdict::Differs | RunVerdict::Unknown, Some(holding)) => {
                if let Some(vertex) = self.vertex_mut(id) {
                    vertex.phase = Phase::Held(holding);
                }
                if verdict == RunVerdict::Differs && matches!(holding, HeldReason::UnknownUntil(_))
                {
                    // The check can decide now.
                    self.mark(id, Causes::LOOK);
                }
            }
            (RunVerdict::Same | RunVerdict::Differs | RunVerdict::Unknown, None) => {
                self.diverge(id);
                self.note_moved(id);
                self.mark(id, Causes::LOOK);
            }
        }
    }

    /// Handles a look that found a vertex as declared, including a vertex that had failed and that its window held
    /// since.
    fn found_right(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        if std::mem::take(&mut vertex.failing) {
            vertex.doublings = 0;
            if vertex.meta.retryreset {
                vertex.retries = 0;
            }
            self.notify_in_order(id, Notice::Recovered(id));
        }
        self.ask_those_below(id);
        self.end_if_quiet(id);
    }

    /// Records that a check found a difference, or could not decide.
    fn note_moved(&mut self, id: VertexId) {
        let stamp = self.tick_stamp();
        if let Some(vertex) = self.vertex_mut(id) {
            vertex.moved = stamp;
        }
    }

    pub(crate) fn ended(&mut self, run: RunId, outcome: Outcome) {
        let Some((id, now)) = self.run_of(run) else { return };
        if now.station == Station::Applying && outcome != Outcome::Unchanged {
            self.note_write(id);
        }
        let Some((id, now)) = self.run_of(run) else { return };
        let (station, cancelled, kind) = (now.station, now.cancelled, now.kind);
        if now.obsolete {
            let proven = matches!(outcome, Outcome::Unchanged | Outcome::Failed { touched: false });
            self.cut_off(id, station, !proven);
            self.leave(id);
            return;
        }
        if let RunKind::Look(held) = kind {
            self.looked(id, RunVerdict::Unknown, held);
            return;
        }
        let applied = station == Station::Applying;
        match outcome {
            Outcome::Unchanged | Outcome::Changed => self.run_succeeded(id, outcome),
            Outcome::Interrupted if cancelled == Some(Cancelled::Withdrawn) => {
                self.cut_off(id, station, true);
            }
            Outcome::Failed { .. } if cancelled == Some(Cancelled::Withdrawn) && !applied => {
                self.cut_off(id, station, true);
            }
            Outcome::Failed { touched } => self.failed(id, touched && applied),
            Outcome::Interrupted => self.failed(id, applied),
        }
    }

    /// Ends a run that was successful: refreshes owed at its start are done, its children are owed refreshes for its
    /// change, and `retryreset` refills its budget.
    fn run_succeeded(&mut self, id: VertexId, outcome: Outcome) {
        let Some(run) = self.release(id) else { return };
        let stamp = self.tick_stamp();
        let Some(vertex) = self.vertex_mut(id) else { return };
        (vertex.seen, vertex.excused) = (run.stamp, 0);
        vertex.right = run.stamp;
        vertex.doublings = 0;
        if vertex.meta.retryreset {
            vertex.retries = 0;
        }
        let recovered = std::mem::take(&mut vertex.failing);
        let paid = self.pay(id, &run);
        let changed = outcome == Outcome::Changed;
        let owes = if changed { self.debts(id, &run) } else { Vec::new() };
        let record = Record { owes: owes.clone(), paid, ..record(id, &run, (outcome, stamp)) };
        let mut notices = Vec::new();
        if run.station != Station::Checking {
            notices.push(Notice::Ran(id, run.id, outcome));
        }
        if recovered {
            notices.push(Notice::Recovered(id));
        }
        notices.extend(self.record_outcome(id, &run, changed));
        if let Some(vertex) = self.vertex_mut(id) {
            vertex.done = true;
        }
        self.close(record, run.station, notices);
        self.owe(id, &owes, stamp, run.station);
        self.ask_those_below(id);
        if changed {
            self.encourage_children(id);
        }
    }

    /// Ends a run that failed. Possible changes are still owed to its children as refreshes (E-9).
    fn failed(&mut self, id: VertexId, touched: bool) {
        let Some(run) = self.release(id) else { return };
        let stamp = self.tick_stamp();
        self.diverge(id);
        let owes = if touched { self.debts(id, &run) } else { Vec::new() };
        let outcome = Outcome::Failed { touched };
        // Owed refreshes come before the failure: they must not back-poke the vertex that has just failed.
        self.owe(id, &owes, stamp, run.station);
        let (permitted, station) = (run.station == Station::Applying, run.station);
        // A failed retry repairs nothing. Events of an adversary count, and those that the command itself made do not.
        let counts = permitted && run.causes.has(Causes::EVENT) && !self.is_own_echo(id);
        let mut notices: Vec<Notice> =
            permitted.then_some(Notice::Ran(id, run.id, outcome)).into_iter().collect();
        let record = Record { owes, ..record(id, &run, (outcome, stamp)) };
        if self.must_ask(id, run.stamp) {
            notices.insert(0, self.ask(id, &run, counts));
        } else {
            if counts {
                // The change was undone during the run; its failure does not make that less of a contention.
                notices.extend(self.record_outcome(id, &run, true));
            }
            notices.push(self.fail(id));
        }
        self.close(record, station, notices);
    }

    /// Ends a run that was cut off by a stop or a swap. The run is repeated, here or after the next start.
    pub(super) fn cut_off(&mut self, id: VertexId, station: Station, unproven: bool) {
        let Some(run) = self.release(id) else { return };
        let stamp = self.tick_stamp();
        let applied = station == Station::Applying;
        let touched = applied && unproven;
        let owes = if touched { self.debts(id, &run) } else { Vec::new() };
        let outcome = if touched { Outcome::Interrupted } else { Outcome::Failed { touched } };
        let record = Record { owes: owes.clone(), ..record(id, &run, (outcome, stamp)) };
        let notices = applied.then_some(Notice::Ran(id, run.id, outcome)).into_iter().collect();
        self.close(record, station, notices);
        self.owe(id, &owes, stamp, station);
        if !run.obsolete || self.vertex(id).is_some_and(Vertex::is_checkable) {
            // An operation is not repeated because a run of its vertex's former definition did not return.
            self.mark(id, Causes::AGAIN);
        }
        if touched && let Some(stop) = &mut self.stop {
            stop.cut_off.push(id);
        }
    }

    /// Records the end if a begin was recorded or an owed refresh is done. Otherwise the notices are sent at once.
    fn close(&mut self, record: Record, station: Station, notices: Vec<Notice>) {
        if station == Station::Checking && record.paid.is_none() {
            for notice in notices {
                self.notify_in_order(record.vertex, notice);
            }
            return;
        }
        self.closing.insert(record.run, (record.vertex, notices));
        self.out.push(Action::End(record));
    }

    pub(crate) fn durable(&mut self, run: RunId) {
        let Some((id, notices)) = self.closing.remove(&run) else { return };
        let mut earlier = self.closing.range_mut(..run).rev();
        match earlier.find(|(_, (vertex, _))| *vertex == id) {
            Some((_, (_, earlier))) => earlier.extend(notices),
            None => self.out.extend(notices.into_iter().map(Action::Notify)),
        }
    }

    /// Lets a vertex rest in a held phase although it is not as declared (E-11).
    pub(crate) fn hold(&mut self, id: VertexId, holding: HeldReason) {
        let Some(run) = self.release(id) else { return };
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.phase = Phase::Held(holding);
        // A held vertex counts as settled for the order, also for descendants that became dirty before it was held
        // again.
        vertex.right = run.stamp;
        vertex.failing = false;
        vertex.excused = 0;
        vertex.retries = 0;
        vertex.doublings = 0;
        self.diverge(id);
        self.notify(Notice::Held(id, holding));
    }

    /// Holds a vertex that differs outside of its window: neither converged nor failed.
    fn hold_for_window(&mut self, id: VertexId) {
        let Some(window) = self.vertex(id).and_then(|vertex| vertex.meta.window) else { return };
        if self.release(id).is_none() {
            return;
        }
        let Some(vertex) = self.vertex_mut(id) else { return };
        let again = std::mem::replace(&mut vertex.phase, Phase::Held(HeldReason::Window(window)));
        debug_assert_eq!(again, Phase::Resting, "it has just been released");
        self.notify(Notice::Held(id, HeldReason::Window(window)));
    }

    /// Reports that the host is not as declared, once until it is converged again.
    pub(crate) fn diverge(&mut self, id: VertexId) {
        if std::mem::take(&mut self.said_converged) {
            self.notify(Notice::Diverged(id));
        }
    }
}

/// Returns the record of a run that owes nothing and completes no owed refresh.
fn record(vertex: VertexId, run: &Run, (outcome, stamp): (Outcome, Stamp)) -> Record {
    let (owes, paid, definition) = (Vec::new(), None, run.definition);
    Record { run: run.id, vertex, definition, outcome, begun: run.begun, stamp, owes, paid }
}
