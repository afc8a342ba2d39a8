//! Fights, the brake, windows, what must be right once, groups and values: each alone, with each other, and with every other
//! feature (E-4, E-17, E-19, E-20).

use super::budget::Budget;
use super::features::{Configuration, FEATURES, Feature, HOLDING, configurations, graphs};
use super::{EVENT, SETTLED, explore, sights};

/// Each on each graph of that many vertices, alone.
fn alone(features: &[Feature], count: u32, budget: Budget) -> Vec<Configuration> {
    let all = graphs(count);
    let each = |graph| features.iter().map(move |feature| (graph, std::slice::from_ref(feature)));
    let each = all.iter().flat_map(each);
    each.flat_map(|(graph, feature)| configurations(graph, feature, budget)).collect()
}

/// Each with every feature that comes after it or is none of these, on each graph of that many vertices.
fn paired(features: &[Feature], count: u32, budget: Budget) -> Vec<Configuration> {
    let mut all = Vec::new();
    for graph in graphs(count) {
        for one in features {
            let later = HOLDING.iter().skip_while(|other| *other != one).skip(1);
            for other in FEATURES.iter().chain(later) {
                all.extend(configurations(&graph, &[*one, *other], budget));
            }
        }
    }
    all
}

const FIGHTS: [Feature; 4] = [HOLDING[0], HOLDING[1], HOLDING[2], HOLDING[3]];

/// One event, one failure, and one turn.
const ONE: Budget = Budget { events: 1, total_events: 1, ..SETTLED };
/// The same without failures.
const CALM: Budget = Budget { turns: 1, ..EVENT };

/// One makes a fight of it, one puts it off, and one moves its neighbour.
const THREE: Budget = Budget { events: 2, total_events: 3, failures: 0, ..CALM };
/// Nobody moves anything.
const QUIET: Budget = Budget { events: 0, total_events: 0, ..CALM };

/// All is still to be made as declared, and all of it goes well.
const UNSETTLED: Budget = Budget { settled: false, failures: 0, ..QUIET };

/// E-20: fights and the brake on one and two vertices.
#[test]
fn model_fights() {
    let mut all = alone(&FIGHTS, 1, ONE);
    all.extend(alone(&FIGHTS, 1, Budget { events: 3, total_events: 3, ..EVENT }));
    all.extend(alone(&FIGHTS, 2, CALM));
    all.extend(alone(&FIGHTS[..1], 2, THREE));
    let wanted = [
        sights::CONTENDED,
        sights::FOUGHT,
        sights::CALM,
        sights::REPAIRED,
        sights::DEAF,
        sights::PASSED,
        sights::BRAKED,
        sights::RELEASED,
    ];
    explore("fights and the brake", all, &wanted);
}

/// E-20, E-17, E-4: windows, what must be right once, groups and values on one and two vertices.
#[test]
fn model_windows_and_realize() {
    let rest = &HOLDING[4..];
    let mut all = alone(rest, 1, ONE);
    all.extend(alone(rest, 2, CALM));
    all.extend(alone(&[Feature::Realize], 3, QUIET));
    // What it waits for was never right, either.
    all.extend(alone(&[Feature::Realize], 3, UNSETTLED));
    let wanted = [
        sights::SHUT,
        sights::LET_IN,
        sights::CUT,
        sights::TO_REALIZE,
        sights::REALIZED,
        sights::UNREALIZED,
        sights::RECEIVED,
        sights::SWAPPED,
    ];
    explore("windows, realize, groups, values", all, &wanted);
}

/// E-20: each with every other feature on one vertex.
#[test]
fn model_what_holds_with_every_feature() {
    let wanted = [sights::CALM, sights::RELEASED, sights::LET_IN];
    explore("1 vertex, what holds with each", paired(&HOLDING, 1, CALM), &wanted);
}

/// E-20: each with every other feature on two vertices.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_fights_with_every_feature() {
    let three = Budget { failures: 1, ..THREE };
    explore("2 vertices, fights, 3 events", alone(&FIGHTS, 2, three), &[sights::PASSED]);
    for feature in FIGHTS {
        let name = format!("2 vertices, {feature:?} with each");
        explore(&name, paired(&[feature], 2, CALM), &[]);
    }
}

/// E-20, E-17, E-4: the same for windows, what must be right once, groups and values.
#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_windows_and_realize_with_every_feature() {
    for feature in &HOLDING[4..] {
        let name = format!("2 vertices, {feature:?} with each");
        explore(&name, paired(std::slice::from_ref(feature), 2, CALM), &[]);
    }
    let realize = paired(&[Feature::Realize], 3, Budget { failures: 0, ..CALM });
    explore("3 vertices, Realize with each", realize, &[sights::REALIZED]);
}
