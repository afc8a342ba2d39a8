//! Triggers that make a vertex dirty: watches, looks, polls, the operator, timers.

use crate::engine::Engine;
use crate::interface::action::{Action, Notice};
use crate::interface::ids::{RunId, Stamp, Tick, VertexId};
use crate::interface::metaparams::Poll;
use crate::runs::steps::{RETURN, RETURN_OF_COMMAND};
use crate::state::deadlines::Timer;
use crate::state::vertex::{Cancelled, Causes, Phase, Place, RunKind, Station, Vertex, Watch};
use steadfast_traits::ExecutorKind;

impl Engine {
    pub(crate) fn watch_answered(&mut self, id: VertexId, established: bool) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        if vertex.watch == Watch::None {
            return;
        }
        vertex.watch = if established { Watch::Established } else { Watch::Absent };
        self.touch(id);
    }

    /// Handles a change by somebody else. The budget is refilled, unless our own run may have caused the event (E-10).
    pub(crate) fn changed(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        let own = vertex.run().is_some_and(|run| run.kind == RunKind::Process);
        if !own {
            vertex.retries = 0;
            self.attempt(id);
        }
        self.mark(id, Causes::EVENT);
        self.witness(id, true);
    }

    /// Handles a new value. A run in progress uses the old value, so the event is never the echo of that run.
    pub(crate) fn received(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.retries = 0;
        self.attempt(id);
        self.mark(id, Causes::VALUE);
    }

    /// Marks a vertex that may differ after lost events or a re-armed watch. A vertex without a state to check is not
    /// run.
    pub(crate) fn suspect(&mut self, id: VertexId) {
        if self.vertex(id).is_some_and(Vertex::is_checkable) {
            self.attempt(id);
            self.mark(id, Causes::EVENT);
        }
    }

    /// Requests a look. A vertex that has failed for good gets one attempt instead, once its back-off is over. This
    /// includes vertices without a state to check, since their one run has not been successful yet (E-10).
    pub(crate) fn look(&mut self, id: VertexId) {
        let now = self.now;
        let Some(vertex) = self.vertex_mut(id) else { return };
        let checkable = vertex.is_checkable();
        match vertex.phase {
            Phase::Failed { until } if until <= now => self.attempt(id),
            Phase::Failed { until } => {
                vertex.phase = Phase::Delayed(until);
                self.timers.set(until, id, Timer::Retry);
                self.mark(id, Causes::AGAIN);
            }
            Phase::Resting | Phase::Held(_) | Phase::Running(_) | Phase::Asking(_) if checkable => {
                vertex.look = true;
                self.touch(id);
                self.witness(id, false);
            }
            Phase::Delayed(_)
            | Phase::Resting
            | Phase::Held(_)
            | Phase::Running(_)
            | Phase::Asking(_) => {}
        }
    }

    /// Removes the causes of a vertex's former definition (load, retry, look, poll) from an operation that nobody has
    /// requested.
    pub(crate) fn forget_what_it_was(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex_mut(id).filter(|vertex| !vertex.is_checkable()) else {
            return;
        };
        let made = Causes::LOAD.and(Causes::AGAIN);
        vertex.causes.forget(made.and(Causes::LOOK).and(Causes::POLL));
        self.touch(id);
    }

    /// Handles the operator's request for a run: the budget is refilled, contention and the delay of a retry end, and a
    /// vertex that runs only once runs again.
    pub(crate) fn retry_now(&mut self, id: VertexId) {
        self.end_contention(id);
        let Some(vertex) = self.vertex_mut(id) else { return };
        vertex.retries = 0;
        if let Phase::Delayed(at) = vertex.phase {
            vertex.phase = Phase::Resting;
            self.timers.clear(at, id, Timer::Retry);
        }
        self.attempt(id);
        self.mark(id, Causes::OPERATOR);
    }

    /// Sets or clears the poll of a vertex according to its metaparams (E-13).
    pub(crate) fn set_poll(&mut self, id: VertexId) {
        let (now, one_shot) = (self.now, self.one_shot);
        let Some(vertex) = self.vertex_mut(id) else { return };
        let next = match vertex.meta.poll {
            Poll::Every(interval) if !one_shot => Some(now.after(interval)),
            Poll::Every(_) | Poll::Never | Poll::Once => None,
        };
        let before = std::mem::replace(&mut vertex.poll_at, next);
        if let Some(at) = before {
            self.timers.clear(at, id, Timer::Poll);
        }
        if let Some(at) = next {
            self.timers.set(at, id, Timer::Poll);
        }
    }

    /// Fires all timers that are due.
    pub(crate) fn fire(&mut self) {
        self.write_off();
        while let Some((at, id, timer)) = self.timers.pop_due(self.now) {
            match timer {
                Timer::Limit => self.limit_over(id, at),
                Timer::Retry => self.retry(id, at),
                Timer::Poll => self.poll(id),
                Timer::Deadline => self.deadline(id, at),
                Timer::Backoff => self.backoff_over(id, at),
                Timer::ContentionEnd => self.end_if_quiet(id),
                Timer::Return if self.is_due_back(id, at) => self.not_returned(id),
                Timer::Return => {}
            }
        }
        self.resume_repairs();
        self.fire_swap();
        self.fire_pause();
        self.fire_stop();
    }

    fn limit_over(&mut self, id: VertexId, at: Tick) {
        if let Some(vertex) = self.vertex_mut(id)
            && vertex.place == Place::Limit(at)
        {
            vertex.place = Place::Nowhere;
            self.touch(id);
        }
    }

    fn retry(&mut self, id: VertexId, at: Tick) {
        if let Some(vertex) = self.vertex_mut(id)
            && vertex.phase == Phase::Delayed(at)
        {
            vertex.phase = Phase::Resting;
            self.touch(id);
        }
    }

    fn poll(&mut self, id: VertexId) {
        if let Some(vertex) = self.vertex_mut(id) {
            vertex.poll_at = None;
            self.set_poll(id);
            self.attempt(id);
            self.mark(id, Causes::POLL);
        }
    }

    fn deadline(&mut self, id: VertexId, at: Tick) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        let Some(run) = vertex.run_mut().filter(|run| run.deadline == Some(at)) else { return };
        run.deadline = None;
        if run.cancellable {
            self.cancel(id, Cancelled::Deadline);
        } else {
            self.not_returned(id);
        }
    }

    /// Cancels the run of a vertex, once, if its kind allows.
    pub(crate) fn cancel(&mut self, id: VertexId, why: Cancelled) {
        let now = self.now;
        let Some(run) = self.vertex_mut(id).and_then(Vertex::run_mut) else { return };
        if !run.cancellable {
            return;
        }
        if run.cancelled.is_some() {
            return;
        }
        let at = now.after(match run.executor {
            ExecutorKind::Thread => RETURN,
            ExecutorKind::Command => RETURN_OF_COMMAND,
        });
        run.cancelled = Some(why);
        run.returns = Some(at);
        let run = run.id;
        self.timers.set(at, id, Timer::Return);
        self.out.push(Action::Cancel(run, id));
    }

    /// Returns true if the timer at `at` belongs to the run in progress, and not to an earlier one.
    fn is_due_back(&self, id: VertexId, at: Tick) -> bool {
        self.vertex(id).and_then(Vertex::run).is_some_and(|run| run.returns == Some(at))
    }

    /// Marks a run that does not return as stuck (E-6). The run counts as running, and is reported.
    fn not_returned(&mut self, id: VertexId) {
        let Some(run) = self.vertex_mut(id).and_then(Vertex::run_mut) else { return };
        if run.stuck || (run.cancellable && run.cancelled.is_none()) {
            return;
        }
        self.mark_stuck(id);
    }

    /// Marks a look or a poll whose check has not answered for long as stuck: until then, the vertex counts as settled.
    pub(crate) fn late(&mut self, run: RunId) {
        let Some((id, run)) = self.run_of(run) else { return };
        let is_silent = matches!(run.kind, RunKind::Look(_)) || run.quiet;
        if is_silent && !run.stuck && run.station == Station::Checking {
            self.mark_stuck(id);
        }
    }

    fn mark_stuck(&mut self, id: VertexId) {
        let Some(run) = self.vertex_mut(id).and_then(Vertex::run_mut) else { return };
        run.stuck = true;
        let run = run.id;
        self.diverge(id);
        self.notify(Notice::Stuck(id, run));
        self.touch(id);
        self.answer_askers(id, Stamp::CLEAR);
    }
}
