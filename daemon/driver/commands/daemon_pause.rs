//! The pause of the daemon: stored, and restored at the next start.

use crate::driver::Driver;
use crate::store::Entry;
use steadfast_engine::Tick;
use steadfast_resources::LONGEST_SPAN;

impl Driver {
    /// Records the pause of the daemon until this time; `None` records its end.
    pub(in crate::driver) fn save_pause(&mut self, until: Option<Tick>) {
        let record = until.map(|at| {
            let left = self.runtime.until(at);
            self.commands.pause_record(left, self.runtime.wall())
        });
        self.next_events.extend(self.journal.save_pause(Entry::Pause(record)));
    }

    /// Continues the pause of the previous session until its old end.
    pub(in crate::driver) fn restore_pause(&mut self) {
        if self.settings.one_shot {
            return;
        }
        let Some(kept) = self.mode.stored().and_then(|stored| stored.pause.clone()) else { return };
        let left = kept.remaining(self.runtime.wall(), self.settings.pause_limit, LONGEST_SPAN);
        let until = self.now().after(left);
        let event = self.commands.pause((kept.reason, until), false, true);
        self.turn(event);
    }
}
