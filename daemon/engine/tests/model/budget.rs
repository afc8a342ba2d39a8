//! How often each kind of thing may happen in one history.

use steadfast_engine::{Outcome, RunVerdict};

use crate::step::Step;

/// What is left. All of it together bounds every history, so that the states are finitely many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(super) struct Budget {
    /// Change events of one vertex.
    pub(super) events: u8,
    /// Change events and looks of all.
    pub(super) total_events: u8,
    pub(super) looks: u8,
    pub(super) failures: u8,
    /// Pauses, stops, swaps and crashes together.
    pub(super) turns: u8,
    pub(super) pauses: u8,
    pub(super) stops: u8,
    pub(super) crashes: u8,
    pub(super) swaps: u8,
    /// Openings and closings of the window.
    pub(super) toggles: u8,
    /// Values that are received.
    pub(super) values: u8,
    /// Runs that are made of something else than the last good one.
    pub(super) remakes: u8,
    /// Doubts of what a plan has found.
    pub(super) doubts_left: u8,
    /// Whether it is a plan: a one-shot command that only asks.
    pub(super) plans: bool,
    /// Suspicions: a source that lost events.
    pub(super) suspects: u8,
    /// Watches that are lost once they stood, and stand again.
    pub(super) losses: u8,
    /// Runs that the operator asks for.
    pub(super) redos: u8,
    /// Beginnings and ends of the pause of one vertex.
    pub(super) parks: u8,
    /// Begins that cannot be kept.
    pub(super) refusals: u8,
    /// Whether pauses are short, so that they end by themselves.
    pub(super) lapses: bool,
    /// How often each vertex was repaired before it begins: one less than a fight takes, where fights are explored.
    pub(super) repaired: u8,
    /// Whether the next repeated repair is one too many for the brake.
    pub(super) braked: bool,
    /// Moments at which something is due while something else is in flight.
    pub(super) ticks: u8,
    /// Whether time passes at all (but for a stop).
    pub(super) timed: bool,
    pub(super) one_slot: bool,
    /// Whether it begins with everything as declared, or with the load.
    pub(super) settled: bool,
    /// Whether watches are answered in any order, or at once.
    pub(super) watches: bool,
    /// Whether an apply may end in each of its ways, or only change or fail.
    pub(super) thorough: bool,
}

impl Budget {
    pub(super) const NONE: Self = Self {
        events: 0,
        total_events: u8::MAX,
        looks: 0,
        failures: 0,
        turns: u8::MAX,
        pauses: 0,
        stops: 0,
        crashes: 0,
        swaps: 0,
        toggles: 0,
        values: 0,
        remakes: 0,
        doubts_left: 0,
        plans: false,
        suspects: 0,
        losses: 0,
        redos: 0,
        parks: 0,
        refusals: 0,
        lapses: false,
        repaired: 0,
        braked: false,
        ticks: 0,
        timed: false,
        one_slot: false,
        settled: false,
        watches: false,
        thorough: false,
    };

    /// With one more event, and time that passes, also while something is in flight.
    pub(super) fn with_drift(self) -> Self {
        let total_events = match self.total_events {
            u8::MAX => u8::MAX,
            total => total.max(2),
        };
        let (events, ticks) = (self.events.max(2), self.ticks.max(1));
        Self { timed: true, settled: true, events, total_events, ticks, ..self }
    }

    /// What remains after that step; `tick`: it was a moment that had to be paid for.
    pub(super) fn spend(&mut self, step: &Step, tick: bool) {
        match step {
            Step::Changed(_) if self.total_events < u8::MAX => self.total_events -= 1,
            Step::Look(_) => {
                self.looks -= 1;
                self.total_events = self.total_events.saturating_sub(1);
            }
            Step::Checked(_, RunVerdict::Unknown) | Step::Ended(_, Outcome::Failed { .. }) => {
                self.failures = self.failures.saturating_sub(1);
            }
            Step::Pause { .. } => (self.pauses, self.turns) = (self.pauses - 1, self.turns - 1),
            Step::Stop { .. } => (self.stops, self.turns) = (self.stops - 1, self.turns - 1),
            Step::Swap { .. } => (self.swaps, self.turns) = (self.swaps - 1, self.turns - 1),
            Step::Crash { .. } => (self.crashes, self.turns) = (self.crashes - 1, self.turns - 1),
            Step::Window { .. } => self.toggles -= 1,
            Step::Received(_) => self.values -= 1,
            Step::Remade(_) => self.remakes -= 1,
            Step::Doubt { .. } => self.doubts_left -= 1,
            Step::Suspect(_) => self.suspects -= 1,
            // None is left where watches are answered in any order: those are no losses.
            Step::Watching(_) | Step::Unwatched(_) => self.losses = self.losses.saturating_sub(1),
            Step::Redo(_) => self.redos -= 1,
            Step::Park { .. } => self.parks -= 1,
            Step::Refuse => self.refusals -= 1,
            Step::Wake if tick => self.ticks -= 1,
            _ => {}
        }
        if self.turns == 0 {
            // What cannot happen any more need not be told apart.
            (self.pauses, self.stops, self.swaps, self.crashes) = (0, 0, 0, 0);
        }
        if self.total_events == 0 {
            (self.events, self.looks) = (0, 0);
        }
    }
}
