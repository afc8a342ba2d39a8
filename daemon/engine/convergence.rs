//! Convergence (E-18), and the end of each turn, which completes what is due: a swap, a pause, a stop, convergence.

use crate::engine::Engine;
use crate::interface::action::Notice;
use crate::interface::query_replies::Mode;

impl Engine {
    /// Returns true if every vertex is settled, no refresh is owed and all is durable, for the events delivered so far
    /// (E-18).
    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.disturbing == 0
            && self.closing.is_empty()
            && self.pending.is_none()
            && self.mode == Mode::Running
    }

    /// Completes a swap, a pause, a stop or convergence if it is due. Returns true if more vertices must be settled.
    pub(crate) fn conclude(&mut self) -> bool {
        if self.commit_when_quiet() {
            return true;
        }
        self.complete_pause();
        let quiet = self.in_flight.is_empty() && self.closing.is_empty();
        if self.mode == Mode::Stopping && (quiet || self.is_left_behind()) {
            self.close_watches();
        }
        if self.is_converged() && !self.said_converged {
            self.said_converged = true;
            self.notify(Notice::Converged);
        }
        false
    }
}
