//! The global brake (E-20): when repairs are undone all over, changing stops for a while. Watching goes on, and it is said.
//!
//! What counts is a repair of a vertex that was repaired already within the last minute: that a whole tree is put back once is work, that
//! it is put back again and again is a storm.

use crate::action::Notice;
use crate::engine::Engine;
use crate::ids::{Tick, VertexId};
use std::collections::VecDeque;
use std::time::Duration;

/// Over which time repairs are counted, and how long the brake holds.
pub(crate) const MINUTE: Duration = Duration::from_mins(1);

/// Repairs of the last minute, and whether they were too many.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Brake {
    /// The most repeated repairs in a minute; none for no brake.
    pub(crate) limit: Option<u32>,
    /// When each was, whose, and whether it was not the first.
    pub(crate) recent: VecDeque<(Tick, VertexId, bool)>,
    repeated: u32,
    /// Nothing is repaired before.
    pub(crate) until: Option<Tick>,
}

impl Default for Brake {
    fn default() -> Self {
        Self { limit: Some(600), recent: VecDeque::new(), repeated: 0, until: None }
    }
}

impl Brake {
    /// Moves every moment that is over, for comparison of states (see `ranked`).
    pub(crate) fn map_past(&mut self, f: impl Fn(Tick) -> Tick) {
        for (at, _, _) in &mut self.recent {
            *at = f(*at);
        }
        // Those of one moment are forgotten together.
        self.recent.make_contiguous().sort_unstable();
    }
}

impl Engine {
    /// The same engine with another bound on repeated repairs in a minute; none for no brake. 600 where nothing is said.
    #[must_use]
    pub fn with_brake(mut self, limit: Option<u32>) -> Self {
        self.brake.limit = limit;
        self
    }

    /// Changes the bound on repeated repairs in a minute; none for no brake. A brake that holds goes on to its end.
    pub fn set_brake(&mut self, limit: Option<u32>) {
        self.brake.limit = limit;
    }

    /// Until when nothing is repaired, if the brake holds.
    #[must_use]
    pub fn braked_until(&self) -> Option<Tick> {
        self.brake.until
    }

    /// One more repair. Repairs of which nothing followed within the minute are forgotten.
    pub(crate) fn count_repair(&mut self, id: VertexId) {
        let now = self.now;
        while let Some((at, other, again)) = self.brake.recent.front().copied() {
            if at.after(MINUTE) > now {
                break;
            }
            self.brake.recent.pop_front();
            self.brake.repeated -= u32::from(again);
            self.forget_old_rounds(other);
        }
        let last = self.fights.get(&id).and_then(|fight| fight.rounds.back());
        let again = last.is_some_and(|round| round.at.after(MINUTE) > now);
        self.brake.recent.push_back((now, id, again));
        self.brake.repeated += u32::from(again);
        let repairs = self.brake.repeated;
        if self.brake.limit.is_none_or(|limit| repairs <= limit) {
            return;
        }
        let until = now.after(MINUTE);
        let newly = self.brake.until.replace(until).is_none();
        self.brake.recent.clear();
        self.brake.repeated = 0;
        if newly {
            self.tell(Notice::Braked { repairs, until });
        }
    }

    fn forget_old_rounds(&mut self, id: VertexId) {
        let now = self.now;
        let old = self.fights.get(&id).is_some_and(|fight| {
            fight.since.is_none()
                && fight.rounds.back().is_none_or(|round| round.at.after(MINUTE) <= now)
        });
        if old {
            self.fights.remove(&id);
        }
    }

    pub(crate) fn fire_brake(&mut self) {
        if self.brake.until.is_some_and(|until| until <= self.now) {
            self.brake.until = None;
            self.tell(Notice::Released);
        }
    }
}
