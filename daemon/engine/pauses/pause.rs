//! Pause and resume (E-15): the begin, the completion and the end of a pause.

use crate::engine::Engine;
use crate::interface::action::{Action, Notice};
use crate::interface::event::Pause;
use crate::interface::ids::{Stamp, Tick, VertexId};
use crate::interface::query_replies::Mode;
use crate::state::vertex::Place;
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
    pub(crate) unsaved: u32,
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
            self.notify(Notice::Pausing(running));
        }
    }

    /// Completes a pause: nothing runs, and every end and the pause itself are durable. A drain becomes a pause when
    /// its vertices have finished.
    pub(crate) fn complete_pause(&mut self) {
        if self.mode == Mode::Draining && self.in_flight.is_empty() && self.queued == 0 {
            self.mode = Mode::Pausing;
            self.shelve_queues();
        }
        let is_quiet = self.in_flight.is_empty() && self.closing.is_empty();
        if self.mode == Mode::Pausing && is_quiet && self.pause.unsaved == 0 {
            self.mode = Mode::Paused;
            self.said_converged = false;
            self.notify(Notice::Paused);
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
    pub(crate) fn shelve_queues(&mut self) {
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
            self.notify(Notice::Resumed);
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
            self.notify(Notice::PauseEnds(self.pause.until));
        }
        if self.pause.until <= self.now {
            self.resume();
        }
    }
}
