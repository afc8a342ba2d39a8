//! The budget: the number of times that each kind of event may happen in one history.

use steadfast_engine::{Outcome, RunVerdict};

use crate::step::Step;

/// The remaining budget. Its parts together bound every history, so that the number of states is finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(in crate::model) struct Budget {
    /// Change events of one vertex.
    pub(in crate::model) events: u8,
    /// Change events and looks of all vertices.
    pub(in crate::model) total_events: u8,
    pub(in crate::model) looks: u8,
    pub(in crate::model) failures: u8,
    /// Pauses, stops, swaps and crashes together.
    pub(in crate::model) turns: u8,
    pub(in crate::model) pauses: u8,
    pub(in crate::model) stops: u8,
    pub(in crate::model) crashes: u8,
    pub(in crate::model) swaps: u8,
    /// Openings and closings of the window.
    pub(in crate::model) toggles: u8,
    /// Received values.
    pub(in crate::model) values: u8,
    /// Runs whose inputs differ from those of the last good run.
    pub(in crate::model) remakes: u8,
    /// Findings of a plan that become uncertain.
    pub(in crate::model) doubts_left: u8,
    /// True for a plan: a one-shot command that applies nothing.
    pub(in crate::model) plans: bool,
    /// Suspicions: a source lost events.
    pub(in crate::model) suspects: u8,
    /// Watches that are lost after they were established, and established again.
    pub(in crate::model) losses: u8,
    /// Runs that the operator requests.
    pub(in crate::model) retries_now: u8,
    /// Beginnings and ends of the pause of one vertex.
    pub(in crate::model) vertex_pauses: u8,
    /// Begins that cannot be stored.
    pub(in crate::model) refusals: u8,
    /// True if pauses are short, so that they end by themselves.
    pub(in crate::model) lapses: bool,
    /// The number of repairs of each vertex before the first state: one less than a contention needs, if contention is
    /// explored.
    pub(in crate::model) repaired: u8,
    /// True if the next repeated repair exceeds the limit of the repair limit.
    pub(in crate::model) repairs_suspended: bool,
    /// Moments at which something is due while something else is in flight.
    pub(in crate::model) ticks: u8,
    /// True if time passes at all (except for a stop).
    pub(in crate::model) timed: bool,
    pub(in crate::model) one_slot: bool,
    /// True if the history begins with all vertices converged, false if it begins with the load.
    pub(in crate::model) settled: bool,
    /// True if watches are answered in any order, false if at once.
    pub(in crate::model) watches: bool,
    /// True if an apply may end with every outcome, false if it only changes or fails.
    pub(in crate::model) thorough: bool,
}

impl Budget {
    pub(in crate::model) const NONE: Self = Self {
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
        retries_now: 0,
        vertex_pauses: 0,
        refusals: 0,
        lapses: false,
        repaired: 0,
        repairs_suspended: false,
        ticks: 0,
        timed: false,
        one_slot: false,
        settled: false,
        watches: false,
        thorough: false,
    };

    /// Returns the budget with one more event, and with time that passes, also while something is in flight.
    pub(in crate::model) fn with_drift(self) -> Self {
        let total_events = match self.total_events {
            u8::MAX => u8::MAX,
            total => total.max(2),
        };
        let (events, ticks) = (self.events.max(2), self.ticks.max(1));
        Self { timed: true, settled: true, events, total_events, ticks, ..self }
    }

    /// Subtracts a step from the budget; `tick` also subtracts a moment.
    pub(in crate::model) fn spend(&mut self, step: &Step, tick: bool) {
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
            Step::RetryNow(_) => self.retries_now -= 1,
            Step::PauseVertex { .. } => self.vertex_pauses -= 1,
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
