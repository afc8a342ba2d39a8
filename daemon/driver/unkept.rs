//! What the journal answers: what is durable goes on, and what could not be kept is tried once more when it can.

use super::{Driver, News};
use steadfast_engine::{Event, Standing, VertexId};
use tokio::time::Instant;

impl Driver {
    pub(super) fn kept(&mut self, tickets: &[u64], refused: Option<&str>) {
        let Some(keeper) = &mut self.keeper else { return };
        let was_sound = keeper.is_sound();
        let events = keeper.answered(tickets, refused);
        let sound = keeper.is_sound();
        if let Some(why) = refused
            && was_sound
        {
            self.audience.hear(&News::Unkept(why));
            self.unkept = Some((Instant::now(), why.to_owned()));
        }
        if sound {
            self.unkept = None;
        }
        for event in events {
            self.turn(event);
        }
        if sound && !was_sound {
            self.try_failed_again();
        }
    }

    /// State can be kept again: what was refused meanwhile gets one more attempt.
    pub(super) fn try_failed_again(&mut self) {
        let failed: Vec<VertexId> = self
            .table
            .ids()
            .filter(|id| self.engine.standing(*id) == Some(Standing::Failed))
            .collect();
        for id in failed {
            self.turn(Event::Look(id));
        }
    }
}
