//! The end of a driver: the condition for its end, and its result.

use super::mode::DriverMode;
use super::{Driver, DriverExit, FinalStatus};
use steadfast_engine::{Mode, VertexStatus};

impl Driver {
    /// Returns true when the driver has come to its end.
    pub(super) fn is_over(&self) -> bool {
        let loaded = !self.mode.is_starting();
        let is_stopped = self.engine.mode() == Mode::Stopped && self.commands.undos.is_over();
        let is_at_rest = self.engine.is_at_rest()
            && !self.one_shot.overlaps.is_asked()
            && self.is_done_with_secrets();
        let ends = is_stopped || (self.settings.one_shot && loaded && is_at_rest);
        ends && self.permission.cleanup_until().is_none()
    }

    /// Closes the watches and the journal, and returns the result.
    pub(super) fn finish(mut self) -> DriverExit {
        let changed_after_apply = self.one_shot.take_differences();
        let changed = std::mem::take(&mut self.one_shot.changed);
        let final_statuses = self
            .graph
            .ids()
            .filter_map(|id| {
                let standing = self.current_status(id)?;
                let waits_for = match &standing {
                    VertexStatus::WaitingFor(ids) | VertexStatus::Asking(ids) => self.names(ids),
                    _ => Vec::new(),
                };
                let identity = self.graph.name(id).to_owned();
                let failure = self.runs.failures.get(id).cloned();
                Some(FinalStatus { identity, status: standing, failure, waits_for })
            })
            .collect();
        let converged = self.engine.is_converged();
        let rejection = self.one_shot.rejection.take();
        let (broken, mut leftover) = std::mem::replace(&mut self.mode, DriverMode::Running).end();
        let write_failure = self.journal.given_up();
        self.watches.end();
        let done = self.journal.close(&self.runtime.inbox(), &mut leftover);
        self.notify_done(&done);
        self.runtime.inbox().put_first(leftover);
        self.runtime.drop_presence();
        if broken.is_none() {
            leave_to_the_kernel(self);
        }
        DriverExit {
            final_statuses,
            changed_after_apply,
            changed: u32::try_from(changed.len()).unwrap_or(u32::MAX),
            rejection,
            write_failure,
            converged,
            broken,
        }
    }
}

/// Leaks the driver, since the process ends anyway: freeing a hundred thousand vertices would delay the exit.
#[expect(clippy::mem_forget, reason = "what must end well has been closed before")]
fn leave_to_the_kernel(driver: Driver) {
    std::mem::forget(driver);
}
