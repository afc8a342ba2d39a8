//! The begin of a run: an apply starts only after its begin is durable.

use crate::engine::Engine;
use crate::interface::action::Action;
use crate::interface::event::Outcome;
use crate::interface::ids::RunId;
use crate::state::vertex::Station;

impl Engine {
    /// Starts the apply of a run: its begin is durable now. No other place starts an apply.
    pub(crate) fn begun(&mut self, run: RunId) {
        let Some((id, now)) = self.run_of(run) else { return };
        if now.station != Station::Beginning {
            return;
        }
        if now.cancelled.is_some() || now.obsolete {
            self.ended(run, Outcome::Failed { touched: false });
            return;
        }
        now.station = Station::Applying;
        self.out.push(Action::Apply(run, id));
    }

    /// Fails a run whose begin was rejected: nothing was recorded, and nothing is applied.
    pub(crate) fn refused(&mut self, run: RunId) {
        let Some((id, now)) = self.run_of(run) else { return };
        if now.station != Station::Beginning {
            return;
        }
        // Nothing was recorded, so there is nothing to end.
        if now.obsolete {
            self.cut_off(id, Station::Checking, false);
            self.leave(id);
            return;
        }
        self.release(id);
        let later = self.fail(id);
        self.notify_in_order(id, later);
    }
}
