//! What the journal answers: what is durable goes on, and what could not be kept is tried once more when it can.

use super::keeper::Keeper;
use super::{Driver, Input, News};
use crate::store::Deed;
use steadfast_engine::{Event, Standing, VertexId};
use tokio::time::Instant;

impl Driver {
    pub(super) fn kept(&mut self, tickets: &[u64], refused: Option<&str>) {
        let Some(keeper) = &mut self.keeper else { return };
        let was_sound = keeper.is_sound();
        let events = keeper.answered(tickets, refused);
        let (sound, done) = (keeper.is_sound(), keeper.take_done());
        if let Some(why) = refused
            && was_sound
        {
            self.audience.hear(&News::Unkept(why));
            self.unkept = Some((Instant::now(), why.to_owned()));
        }
        if sound {
            self.unkept = None;
        }
        self.tell_done(&done);
        for event in events {
            self.turn(event);
        }
        if sound && !was_sound {
            self.try_failed_again();
        }
    }

    /// Who ordered it may have gone: that it is done is an event all the same.
    pub(super) fn tell_done(&mut self, done: &[Deed]) {
        for deed in done {
            self.audience.hear(&News::Done(deed));
        }
    }

    /// Waits for all that was to be kept, when the engine has come to its end: an order that was given in the last moment is done and
    /// answered, too.
    pub(super) fn close_keeper(&mut self, mut keeper: Keeper) {
        for is_last in [false, true] {
            if is_last {
                keeper.try_last();
            }
            keeper.flush();
            let mut batch = Vec::new();
            self.inbox.take(&mut batch);
            for input in batch {
                match input {
                    Input::Kept(tickets, refused) => {
                        drop(keeper.answered(&tickets, refused.as_deref()));
                    }
                    other => self.left.push(other),
                }
            }
        }
        self.tell_done(&keeper.take_done());
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
