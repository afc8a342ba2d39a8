//! The budget: the number of times that each kind of event may happen in one history.

use steadfast_engine::{Outcome, RunVerdict};

use crate::step::Step;

/// The remaining budget. Its parts together bound every history, so that the number of states is finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(super) struct Budget {
    /// Change events of one vertex.
    pub(super) events: u8,
    /// Change events and looks of all vertices.
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
    /// Received values.
    pub(super) values: u8,
    /// Runs whose inputs differ from those of the last good run.
    pub(super) remakes: u8,
    /// Findings of a plan that become uncertain.
    pub(super) doubts_left: u8,
    /// True for a plan: a one-shot command that applies nothing.
    pub(super) plans: bool,
    /// Suspicions: a source lost events.
    pub(super) suspects: u8,
    /// Watches that are lost after they were established, and established again.
    pub(super) losses: u8,
    /// Runs that the operator requests.
    pub(super) redos: u8,
    /// Beginnings and ends of the pause of one vertex.
    pub(super) parks: u8,
    /// Begins that cannot be stored.
    pub(super) refusals: u8,
    /// True if pauses are short, so that they end by themselves.
    pub(super) lapses: bool,
    /// The number of repairs of each vertex before the first state: one less than a contention needs, if contention is
    /// explored.
    pub(super) repaired: u8,
    /// True if the next repeated repair exceeds the limit of the brake.
    pub(super) braked: bool,
    /// Moments at which something is due while something else is in flight.
    pub(super) ticks: u8,
    /// True if time passes at all (except for a stop).
    pub(super) timed: bool,
    pub(super) one_slot: bool,
    /// True if the history begins with all vertices converged, false if it begins with the load.
    pub(super) settled: bool,
    /// True if watches are answered in any order, false if at once.
    pub(super) watches: bool,
    /// True if an apply may end with every outcome, false if it only changes or fails.
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

    /// Returns the budget with one more event, and with time that passes, also while something is in flight.
    pub(super) fn with_drift(self) -> Self {
        let total_events = match self.total_events {
            u8::MAX => u8::MAX,
            total => total.max(2),
        };
        let (events, ticks) = (self.events.max(2), self.ticks.max(1));
        Self { timed: true, settled: true, events, total_events, ticks, ..self }
    }

    /// Subtracts a step from the budget; `tick` also subtracts a moment.
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
            // The budget is zero if watches are answered in any order: those are no losses.
            Step::Watching(_) | Step::Unwatched(_) => self.losses = self.losses.saturating_sub(1),
            Step::Redo(_) => self.redos -= 1,
            Step::Park { .. } => self.parks -= 1,
            Step::Refuse => self.refusals -= 1,
            Step::Wake if tick => self.ticks -= 1,
            _ => {}
        }
        if self.turns == 0 {
            // Impossible events must not distinguish states.
            (self.pauses, self.stops, self.swaps, self.crashes) = (0, 0, 0, 0);
        }
        if self.total_events == 0 {
            (self.events, self.looks) = (0, 0);
        }
    }
}
