//! Pause and resume (E-15), stop (E-16), and the completion of pauses, swaps, stops and convergence after each turn.

use crate::action::{Action, Notice};
use crate::engine::Engine;
use crate::event::Pause;
use crate::ids::{Stamp, Tick, VertexId};
use crate::status::Mode;
use crate::vertex::{Cancelled, Place, Run, Watch};
use std::time::Duration;

/// The time before its end at which a pause is reported to end soon.
const WARNING: Duration = Duration::from_hours(1);

/// The state of a pause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct PauseState {
    /// The time at which the pause ends by itself.
    until: Tick,
    /// The engine's counter at the beginning of the pause: vertices that became dirty later have sent no back-poke.
    pub(crate) since: Stamp,
    /// The time of the notice that the pause ends soon; none if it was sent.
    warn_at: Option<Tick>,
    /// The number of requested records that are not durable yet.
    unsaved: u32,
    /// A resume waits to be reported until it is durable.
    resumed: bool,
}

impl PauseState {
    pub(crate) fn next(&self, mode: Mode) -> Option<Tick> {
        match mode {
            Mode::Draining | Mode::Pausing | Mode::Paused => {
                Some(self.warn_at.map_or(self.until, |at| at.min(self.until)))
            }
            Mode::Running | Mode::Stopping | Mode::Stopped => None,
        }
    }

    /// Maps every moment, for the comparison of states (see `ranked`).
    pub(crate) fn map(&mut self, f: impl Fn(Tick) -> Tick) {
        self.until = f(self.until);
        self.warn_at = self.warn_at.map(f);
    }
}

/// The state of a stop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StopState {
    /// The time at which runs are cancelled.
    pub(crate) cancel_at: Option<Tick>,
    /// The vertices whose runs were cut off.
    pub(crate) cut_off: Vec<VertexId>,
}

impl Engine {
    pub(crate) fn pause(&mut self, pause: Pause) {
        match self.mode {
            Mode::Stopping | Mode::Stopped => return,
            Mode::Running if pause.drain => {
                self.pause.since = self.stamp;
                self.drain();
            }
            // A repeated request: its end may have moved; vertices that were dirty at the first request are still
            // finished.
            Mode::Draining if pause.drain => {}
            Mode::Running | Mode::Draining => {
                if self.mode == Mode::Running {
                    self.pause.since = self.stamp;
                }
                self.mode = Mode::Pausing;
                self.shelve_queues();
            }
            // A repeated request: its end may have moved, and the caller waits for the notice again.
            Mode::Pausing | Mode::Paused => self.mode = Mode::Pausing,
        }
        self.pause.until = pause.until;
        let warn = Tick(pause.until.0.saturating_sub(Tick(0).after(WARNING).0));
        self.pause.warn_at = (warn > self.now).then_some(warn);
        self.pause.resumed = false;
        if !pause.recorded {
            self.pause.unsaved += 1;
            self.out.push(Action::SavePause(Some(pause.until)));
        }
        let running = self.running();
        if !running.is_empty() {
            self.tell(Notice::Pausing(running));
        }
    }

    /// Lets the vertices that are dirty now finish; all others wait.
    fn drain(&mut self) {
        self.mode = Mode::Draining;
        for slot in self.vertices.iter_mut().flatten() {
            slot.drains = slot.causes.any();
        }
        self.shelve_queues();
        self.unshelve();
    }

    /// Withdraws every queued vertex (E-7).
    fn shelve_queues(&mut self) {
        let ids: Vec<VertexId> = self
            .vertices
            .iter()
            .zip(0..)
            .filter(|(slot, _)| {
                slot.as_ref().is_some_and(|v| !matches!(v.place, Place::Nowhere | Place::Shelf))
            })
            .map(|(_, id)| VertexId(id))
            .collect();
        for id in ids {
            self.touch(id);
        }
        self.settle();
        self.purge_lanes();
    }

    /// Drops the queue entries of withdrawn vertices.
    pub(crate) fn purge_lanes(&mut self) {
        let vertices = &self.vertices;
        let live = |number: u64, id: VertexId| {
            let vertex = vertices.get(id.0 as usize).and_then(Option::as_ref);
            vertex.is_some_and(|v| v.place == Place::Slot(number) || v.place == Place::Look(number))
        };
        self.lanes.threads.retain(live);
        self.lanes.commands.retain(live);
    }

    pub(crate) fn pause_saved(&mut self) {
        self.pause.unsaved = self.pause.unsaved.saturating_sub(1);
        if self.pause.unsaved == 0 && std::mem::take(&mut self.pause.resumed) {
            self.tell(Notice::Resumed);
        }
    }

    /// Ends the pause in one step (E-15): vertices that could not start during the pause are queued. Ancestors that had
    /// failed for good get the attempt that a back-poke from newly dirty vertices would have given them (E-3).
    pub(crate) fn resume(&mut self) {
        match self.mode {
            Mode::Running | Mode::Stopping | Mode::Stopped => return,
            Mode::Draining | Mode::Pausing | Mode::Paused => self.mode = Mode::Running,
        }
        self.pause.resumed = true;
        self.pause.unsaved += 1;
        self.out.push(Action::SavePause(None));
        self.unshelve();
        if self.counts.failed > 0 {
            let since = self.pause.since;
            let late = self.all(|vertex| vertex.causes.any() && vertex.dirty_since > since);
            self.back_poke_all(late);
        }
        self.pause.since = Stamp::NEVER;
    }

    fn unshelve(&mut self) {
        for id in std::mem::take(&mut self.shelf) {
            if let Some(vertex) = self.vertex_mut(id)
                && vertex.place == Place::Shelf
            {
                vertex.place = Place::Nowhere;
                self.touch(id);
            }
        }
    }

    pub(crate) fn fire_pause(&mut self) {
        if !matches!(self.mode, Mode::Draining | Mode::Pausing | Mode::Paused) {
            return;
        }
        if self.pause.warn_at.is_some_and(|at| at <= self.now) {
            self.pause.warn_at = None;
            self.tell(Notice::PauseEnds(self.pause.until));
        }
        if self.pause.until <= self.now {
            self.resume();
        }
    }

    pub(crate) fn stop(&mut self, grace: Duration) {
        let at = self.now.after(grace);
        match &mut self.stop {
            Some(stop) => {
                stop.cancel_at = stop.cancel_at.map(|earlier| earlier.min(at));
            }
            None if self.mode != Mode::Stopped => {
                self.mode = Mode::Stopping;
                self.stop = Some(StopState { cancel_at: Some(at), cut_off: Vec::new() });
                self.drop_pending();
                self.shelve_queues();
                let running = self.running();
                self.tell(Notice::Stopping(running));
            }
            None => return,
        }
        self.fire_stop();
    }

    pub(crate) fn fire_stop(&mut self) {
        let now = self.now;
        let Some(stop) = &mut self.stop else { return };
        if stop.cancel_at.is_some_and(|at| at <= now) {
            stop.cancel_at = None;
            for id in self.running() {
                self.cancel(id, Cancelled::Withdrawn);
            }
        }
    }

    /// Completes a swap, a pause, a stop or convergence if it is due. Returns true if more vertices must be settled.
    pub(crate) fn conclude(&mut self) -> bool {
        if self.commit_when_quiet() {
            return true;
        }
        if self.mode == Mode::Draining && self.in_flight.is_empty() && self.queued == 0 {
            self.mode = Mode::Pausing;
            self.shelve_queues();
        }
        let quiet = self.in_flight.is_empty() && self.closing.is_empty();
        if self.mode == Mode::Pausing && quiet && self.pause.unsaved == 0 {
            self.mode = Mode::Paused;
            self.said_converged = false;
            self.tell(Notice::Paused);
        }
        if self.mode == Mode::Stopping && (quiet || self.is_left_behind()) {
            self.close_watches();
        }
        if self.is_converged() && !self.said_converged {
            self.said_converged = true;
            self.tell(Notice::Converged);
        }
        false
    }

    /// Returns true if the grace is over and every cancelled run has exceeded its time to return.
    fn is_left_behind(&self) -> bool {
        let over = self.stop.as_ref().is_some_and(|stop| stop.cancel_at.is_none());
        let is_late = |run: &Run| run.returns.is_some_and(|at| at <= self.now);
        over && self
            .in_flight
            .values()
            .all(|id| self.vertex(*id).is_some_and(|vertex| vertex.run().is_some_and(is_late)))
    }

    /// Closes the watches in topological order and completes the stop (E-16).
    fn close_watches(&mut self) {
        let topology = std::sync::Arc::clone(&self.topology);
        for id in topology.order() {
            if let Some(vertex) = self.vertex_mut(*id)
                && std::mem::replace(&mut vertex.watch, Watch::None) != Watch::None
            {
                self.out.push(Action::Unwatch(*id));
            }
        }
        self.mode = Mode::Stopped;
        let mut cut_off = self.running();
        if let Some(stop) = self.stop.take() {
            cut_off.extend(stop.cut_off);
        }
        cut_off.sort_unstable();
        self.tell(Notice::Stopped(cut_off));
    }
}
