//! The properties of the model: E-1 to E-20, with the sentences of their invariants.

use crate::invariants::{
    E1_ORDER, E2_POKE, E3_ASKING, E3_BACK_POKE, E4_EVENT, E4_VALUE, E5_COALESCE, E6_ONCE, E7_GRANT,
    E8_COST, E9_REFRESH, E10_FAILURE, E10_RECOVERED, E11_DOUBT, E11_NOOP, E12_LIMIT, E13_POLL,
    E14_SEMAPHORE, E15_PAUSE, E16_STOP, E17_REALIZE, E17_SWAP, E18_CONVERGED, E19_GROUPS,
    E20_CONTENTION, E20_NEIGHBOURS, E20_REMADE, E20_REPAIR_LIMIT, E20_WINDOW, HANDSHAKE,
};
use crate::model::exploration::explorer::{Explorer, State};
use stateright::Property;

fn holds(state: &State, rule: &str) -> bool {
    !state.world.oracle.books.violations.iter().any(|broken| broken.starts_with(rule))
}

macro_rules! each {
    ($($rule:ident),* $(,)?) => {
        vec![$(Property::always($rule, |_, state: &State| holds(state, $rule))),*]
    };
}

/// Returns all properties. Groups are made outside of the engine (E-19); the property here is that a group acts for all
/// its members.
pub(in crate::model) fn properties() -> Vec<Property<Explorer>> {
    let mut all = each![
        HANDSHAKE,
        E1_ORDER,
        E2_POKE,
        E3_BACK_POKE,
        E3_ASKING,
        E4_EVENT,
        E5_COALESCE,
        E6_ONCE,
        E7_GRANT,
        E8_COST,
        E9_REFRESH,
        E10_FAILURE,
        E10_RECOVERED,
        E11_NOOP,
        E11_DOUBT,
        E12_LIMIT,
        E13_POLL,
        E14_SEMAPHORE,
        E15_PAUSE,
        E16_STOP,
        E17_SWAP,
        E18_CONVERGED,
        E19_GROUPS,
        E20_CONTENTION,
        E20_REMADE,
        E20_NEIGHBOURS,
        E20_REPAIR_LIMIT,
        E20_WINDOW,
        E17_REALIZE,
        E4_VALUE,
    ];
    // Violations without a property above, such as a limit on steps.
    all.push(Property::always("nothing else is broken", |_, state: &State| {
        state.world.oracle.books.violations.is_empty()
    }));
    all
}
