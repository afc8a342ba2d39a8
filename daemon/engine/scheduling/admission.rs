//! Admission of vertices that are ready to run (E-1, E-6, E-7, E-12, E-14): limiter, semaphores, slot, start.

use crate::engine::Engine;
use crate::interface::action::{Action, Start};
use crate::interface::ids::{RunId, SemaphoreId, Tick, VertexId};
use crate::scheduling::queues::Priority;
use crate::scheduling::rate_limit;
use crate::state::deadlines::Timer;
use crate::state::vertex::{Causes, Phase, Place, Run, RunKind, Station, Vertex};
use std::sync::Arc;
use std::time::Duration;
use steadfast_traits::ExecutorKind;

/// The longest time that a run may occupy a thread before its slot is written off and replaced.
const PATIENCE: Duration = Duration::from_secs(10);

impl Engine {
    /// Puts a ready vertex into its first queue: the contention back-off and the repair limit, then the limiter. The
    /// limiter's token is taken only at the start.
    pub(crate) fn enqueue(&mut self, id: VertexId) {
        let now = self.now;
        self.must_listen(id);
        let held_back = self.is_delayed(id);
        if let Some((at, vertex)) = held_back.zip(self.vertex_mut(id)) {
            vertex.place = Place::Backoff(at);
            self.timers.set(at, id, Timer::Backoff);
            self.touch(id);
            return;
        }
        let Some(vertex) = self.vertex_mut(id) else { return };
        if let Some(Err(at)) = vertex.meta.pace.map(|p| rate_limit::take(p, vertex.pace, now)) {
            vertex.place = Place::Limit(at);
            self.timers.set(at, id, Timer::Limit);
            self.touch(id);
            return;
        }
        self.line_up(id);
    }

    /// Takes one ticket in the queues of all semaphores of a vertex: the second stage of admission.
    fn line_up(&mut self, id: VertexId) {
        let ticket = self.next_ticket;
        let Some(vertex) = self.vertex_mut(id) else { return };
        let meta = Arc::clone(&vertex.meta);
        if meta.semaphores.is_empty() {
            self.queued += 1;
            self.push_slot(id);
            return;
        }
        vertex.ticket = ticket;
        vertex.place = Place::Semaphores;
        self.queued += 1;
        self.next_ticket += 1;
        self.semaphores.enqueue(&meta.semaphores, ticket, id);
        if self.semaphores.admit(&meta.semaphores, ticket) {
            self.push_slot(id);
        }
    }

    /// Puts a vertex into the queue for a slot: the third stage of admission.
    pub(crate) fn push_slot(&mut self, id: VertexId) {
        let number = self.next_entry;
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.place = Place::Slot(number);
        let priority = if vertex.causes.can_wait() { Priority::Load } else { Priority::Drift };
        let class = vertex.traits.executor;
        self.next_entry += 1;
        self.lanes.of(class).push(priority, number, id);
    }

    pub(crate) fn enqueue_look(&mut self, id: VertexId) {
        let number = self.next_entry;
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.place = Place::Look(number);
        let class = vertex.traits.executor;
        self.next_entry += 1;
        self.queued += 1;
        self.lanes.of(class).push(Priority::Look, number, id);
    }

    /// Removes a vertex from the queue that holds it. Entries of the slot queues remain; their number no longer matches
    /// the vertex.
    pub(crate) fn withdraw(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        let place = std::mem::replace(&mut vertex.place, Place::Nowhere);
        let ticket = std::mem::replace(&mut vertex.ticket, 0);
        let meta = Arc::clone(&vertex.meta);
        match place {
            Place::Nowhere | Place::Shelf => {}
            Place::Limit(at) => {
                self.timers.clear(at, id, Timer::Limit);
                self.touch(id);
            }
            Place::Backoff(at) => {
                self.timers.clear(at, id, Timer::Backoff);
                self.touch(id);
            }
            Place::Look(_) => self.queued -= 1,
            Place::Semaphores | Place::Slot(_) => {
                self.queued -= 1;
                if ticket != 0 {
                    self.semaphores.withdraw(&meta.semaphores, ticket);
                    self.admit_waiting(&meta.semaphores);
                }
            }
        }
    }

    /// Moves the vertices at the front of these semaphore queues on to the queue for slots.
    pub(crate) fn admit_waiting(&mut self, ids: &[SemaphoreId]) {
        for id in self.semaphores.front(ids) {
            let Some(vertex) = self.vertex(id).filter(|v| v.place == Place::Semaphores) else {
                continue;
            };
            let (meta, ticket) = (Arc::clone(&vertex.meta), vertex.ticket);
            if self.semaphores.admit(&meta.semaphores, ticket) {
                self.push_slot(id);
            }
        }
    }

    /// Assigns free slots in the order of priority. Returns true if any run was started.
    pub(crate) fn dispatch(&mut self) -> bool {
        let mut started = false;
        for class in [ExecutorKind::Thread, ExecutorKind::Command] {
            while let Some((number, id)) = self.lanes.of(class).pop() {
                started |= self.grant(number, id);
            }
        }
        started
    }

    /// Starts the vertex of a live entry, unless a semaphore has shrunk since the vertex was admitted.
    fn grant(&mut self, number: u64, id: VertexId) -> bool {
        let Some(vertex) = self.vertices.get_mut(id.0 as usize).and_then(Option::as_mut) else {
            return false;
        };
        match vertex.place {
            Place::Look(live) if live == number => self.start(id, true),
            Place::Slot(live) if live == number => {
                let ticket = vertex.ticket;
                if ticket != 0 && !self.semaphores.hold(&vertex.meta.semaphores, ticket, id) {
                    vertex.place = Place::Semaphores;
                    return false;
                }
                self.start(id, false);
            }
            Place::Slot(_) | Place::Look(_) | Place::Nowhere => return false,
            Place::Shelf | Place::Limit(_) | Place::Backoff(_) | Place::Semaphores => return false,
        }
        true
    }

    fn start(&mut self, id: VertexId, look: bool) {
        if self.vertex(id).is_some_and(|vertex| vertex.contended) {
            self.listen(id);
        }
        let (now, stamp, run) = (self.now, self.tick_stamp(), RunId(self.next_run));
        let Some(vertex) = self.vertices.get_mut(id.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        self.next_run += 1;
        self.queued -= 1;
        vertex.place = Place::Nowhere;
        vertex.look = false;
        vertex.ticket = 0;
        let supposed = vertex.meta.noop && vertex.causes.has(Causes::SUPPOSED);
        let refresh = !look && (vertex.owed.0 > 0 || supposed);
        let begun = new_run(vertex, (run, stamp, now), look, refresh);
        let deadline = begun.deadline;
        vertex.phase = Phase::Running(Box::new(begun));
        let noop = vertex.meta.noop;
        let class = vertex.traits.executor;
        self.lanes.of(class).used += 1;
        self.in_flight.insert(run, id);
        if let Some(at) = deadline {
            self.timers.set(at, id, Timer::Deadline);
        }
        if class == ExecutorKind::Thread {
            self.patience.push_back((now.after(PATIENCE), run, id));
        }
        self.out.push(Action::Start(Start { run, vertex: id, look, refresh, noop }));
        self.touch(id);
    }

    /// Ends the slots, semaphores and timers of a run and lets the vertex rest. The caller handles the result of the
    /// run.
    pub(crate) fn release(&mut self, id: VertexId) -> Option<Run> {
        let vertex = self.vertices.get_mut(id.0 as usize).and_then(Option::as_mut)?;
        let Phase::Running(run) = std::mem::replace(&mut vertex.phase, Phase::Resting) else {
            return None;
        };
        let lane = self.lanes.of(run.executor);
        if run.written_off {
            lane.written_off -= 1;
        } else {
            lane.used -= 1;
        }
        for (at, timer) in [(run.deadline, Timer::Deadline), (run.returns, Timer::Return)] {
            if let Some(at) = at {
                self.timers.clear(at, id, timer);
            }
        }
        self.in_flight.remove(&run.id);
        while self.patience.front().is_some_and(|(_, run, _)| !self.in_flight.contains_key(run)) {
            self.patience.pop_front();
        }
        let meta = Arc::clone(&vertex.meta);
        if run.written_off {
            // There is a replacement slot again, for a run that has held its slot too long at the limit.
            self.write_off();
        }
        if run.kind == RunKind::Process && !meta.semaphores.is_empty() {
            self.semaphores.release(&meta.semaphores);
            self.admit_waiting(&meta.semaphores);
        }
        self.touch(id);
        self.answer_askers(id, run.stamp);
        Some(*run)
    }

    /// Returns the moment at which the next slot is written off; none while no replacement is left.
    pub(crate) fn next_write_off(&self) -> Option<Tick> {
        let is_spare = self.lanes.threads.written_off < self.replaceable;
        self.patience.front().map(|(at, ..)| *at).filter(|_| is_spare)
    }

    /// Writes off the slots of runs that do not return, as long as replacements are left (E-6). Runs beyond the limit
    /// stay in the queue.
    pub(crate) fn write_off(&mut self) {
        while self.next_write_off().is_some_and(|at| at <= self.now) {
            let Some((_, run, id)) = self.patience.pop_front() else { return };
            let lane = &mut self.lanes.threads;
            let slot = self.vertices.get_mut(id.0 as usize).and_then(Option::as_mut);
            if let Some(mine) = slot.and_then(Vertex::run_mut).filter(|r| r.id == run) {
                mine.written_off = true;
                lane.used -= 1;
                lane.written_off += 1;
            }
        }
    }
}

fn new_run(
    vertex: &mut Vertex,
    (id, stamp, now): (RunId, crate::Stamp, Tick),
    look: bool,
    refresh: bool,
) -> Run {
    let timeout = vertex.meta.timeout.or(vertex.traits.timeout);
    let kind = if look {
        RunKind::Look(match vertex.phase {
            Phase::Held(holding) => Some(holding),
            Phase::Resting
            | Phase::Running(_)
            | Phase::Delayed(_)
            | Phase::Failed { .. }
            | Phase::Asking(_) => None,
        })
    } else {
        RunKind::Process
    };
    let (mut pays, mut quiet, mut causes) = (crate::Stamp::NEVER, true, Causes::default());
    if !look {
        causes = vertex.causes.take();
        quiet = causes.only(Causes::POLL);
        vertex.drains = false;
        if let Some(pace) = vertex.meta.pace {
            vertex.pace = rate_limit::take(pace, vertex.pace, now).unwrap_or(vertex.pace);
        }
        if !vertex.meta.noop {
            pays = vertex.owed;
        }
    }
    Run {
        id,
        since: now,
        definition: vertex.definition,
        stamp,
        pays,
        station: Station::Checking,
        kind,
        noop: vertex.meta.noop,
        quiet,
        causes,
        class: crate::Class::Intentional,
        refresh,
        cancelled: None,
        returns: None,
        stuck: false,
        written_off: false,
        obsolete: false,
        deadline: timeout.map(|t| now.after(t)),
        begun: None,
        executor: vertex.traits.executor,
        remade: false,
        supplied: false,
        cancellable: vertex.traits.cancellable,
        owes: Vec::new(),
    }
}
