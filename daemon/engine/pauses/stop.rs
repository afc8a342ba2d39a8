//! The stop of the engine (E-16): runs get a grace, are cancelled, and the watches are closed in topological order.

use crate::engine::Engine;
use crate::interface::action::{Action, Notice};
use crate::interface::ids::{Tick, VertexId};
use crate::interface::query_replies::Mode;
use crate::state::vertex::{Cancelled, Run, Watch};
use std::time::Duration;

/// The state of a stop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StopState {
    /// The time at which runs are cancelled.
    pub(crate) cancel_at: Option<Tick>,
    /// The vertices whose runs were cut off.
    pub(crate) cut_off: Vec<VertexId>,
}

impl Engine {
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
                self.notify(Notice::Stopping(running));
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

    /// Returns true if the grace is over and every cancelled run has exceeded its time to return.
    pub(crate) fn is_left_behind(&self) -> bool {
        let over = self.stop.as_ref().is_some_and(|stop| stop.cancel_at.is_none());
        let is_late = |run: &Run| run.returns.is_some_and(|at| at <= self.now);
        over && self
            .in_flight
            .values()
            .all(|id| self.vertex(*id).is_some_and(|vertex| vertex.run().is_some_and(is_late)))
    }

    /// Closes the watches in topological order and completes the stop (E-16).
    pub(crate) fn close_watches(&mut self) {
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
        self.notify(Notice::Stopped(cut_off));
    }
}
