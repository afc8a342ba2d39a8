//! E-1 to E-18, each as one property of the model with the sentence of its invariant.

use super::explorer::{Explorer, State};
use crate::invariants::{
    E1_ORDER, E2_POKE, E4_EVENT, E6_ONCE, E8_COST, E9_REFRESH, E10_FAILURE, E11_NOOP, E12_LIMIT,
    E13_POLL, E14_SEMAPHORE, E15_PAUSE, E16_STOP, E17_SWAP, E18_CONVERGED, HANDSHAKE,
};
use stateright::Property;

fn holds(state: &State, rule: &str) -> bool {
    !state.world.oracle.books.violations.iter().any(|broken| broken.starts_with(rule))
}

macro_rules! each {
    ($($rule:ident),* $(,)?) => {
        vec![$(Property::always($rule, |_, state: &State| holds(state, $rule))),*]
    };
}

/// All; E-19 is checked where groups are made, before the engine.
pub(super) fn properties() -> Vec<Property<Explorer>> {
    let mut all = each![
        HANDSHAKE,
        E1_ORDER,
        E2_POKE,
        E4_EVENT,
        E6_ONCE,
        E8_COST,
        E9_REFRESH,
        E10_FAILURE,
        E11_NOOP,
        E12_LIMIT,
        E13_POLL,
        E14_SEMAPHORE,
        E15_PAUSE,
        E16_STOP,
        E17_SWAP,
        E18_CONVERGED,
    ];
    // Whatever has no sentence of its own above, such as a bound on steps.
    all.push(Property::always("nothing else is broken", |_, state: &State| {
        state.world.oracle.books.violations.is_empty()
    }));
    all
}
