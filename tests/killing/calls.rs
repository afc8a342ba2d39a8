//! Each call that changes something, from the first to the last.

use crate::kill_point::Strike;
use crate::scenario::Scenario;
use std::collections::BTreeMap;

/// How many calls in a row that were not made show that there are no more: their number differs a little from run to
/// run.
const MISSES: usize = 3;

/// Every call is struck where this is set; else some of them.
pub(crate) fn is_whole() -> bool {
    std::env::var_os("STEADFAST_KILLING").is_some_and(|value| value == "all")
}

/// A figure for the page on tests; seen with `--no-capture`.
pub(crate) fn report(words: &str) {
    std::io::Write::write_all(&mut std::io::stderr(), format!("{words}\n").as_bytes())
        .expect("written");
}

/// Kills at each call, once before it and once after it; or at every few, in turn before and after. Once the daemon
/// dies alone, and once with all that it has started.
#[track_caller]
fn killed_at_each(scenario: Scenario) {
    const FEW: usize = 7;
    let mut struck: BTreeMap<&str, usize> = BTreeMap::new();
    // From a number on that is another one for each.
    let (step, mut number) = if is_whole() { (1, 1) } else { (FEW, 1 + scenario as usize % FEW) };
    let (mut misses, mut turn) = (0, 0_usize);
    while misses < MISSES {
        let before = Strike { with_children: turn / 2 % 2 == 1, ..Strike::at(number) };
        let after = Strike { after: true, with_children: turn % 3 == 1, ..before };
        let both = [before, after];
        let strikes = if is_whole() { &both[..] } else { &both[turn % 2..=turn % 2] };
        misses += 1;
        for strike in strikes {
            if let Some(call) = scenario.play(&[*strike], "each call").call {
                misses = 0;
                *struck.entry(call.name).or_default() += 1;
            }
        }
        turn += 1;
        number += step;
    }
    let kills: usize = struck.values().sum();
    report(&format!("{scenario:?}: {kills} kills, the last at call {}: {struck:?}", number - 1));
    let least = if is_whole() { 40 } else { 5 };
    assert!(kills >= least, "{scenario:?}: {kills} kills only: {struck:?}");
}

/// F-1, B-10: the first start.
#[test]
fn during_the_first_start() {
    killed_at_each(Scenario::FirstStart);
}

/// F-1, B-10: a new graph.
#[test]
fn during_a_reload() {
    killed_at_each(Scenario::Reload);
}

/// F-1, B-10: a repair.
#[test]
fn during_a_repair() {
    killed_at_each(Scenario::Drift);
}

/// F-1, E-15: a pause and a resume.
#[test]
fn during_a_pause() {
    killed_at_each(Scenario::Pause);
}

/// F-1: a stop.
#[test]
fn during_a_stop() {
    killed_at_each(Scenario::Stop);
}

/// F-1, B-12: a restart that has something to pay.
#[test]
fn during_recovery() {
    killed_at_each(Scenario::Recovery);
}

/// F-1, B-10, B-17: removals: what stays declared stays, what was begun is done to its end, what was not waits for the
/// operator, and all of it can be put back.
#[test]
fn during_removals() {
    killed_at_each(Scenario::Removal);
}

/// F-1, B-10: an operator's undo.
#[test]
fn during_an_undo() {
    killed_at_each(Scenario::Undo);
}

/// F-1, B-24: another state is taken in.
#[test]
fn during_an_import() {
    killed_at_each(Scenario::Import);
}

/// F-1, B-10, B-24: a state that cannot be used is repaired: it is the damaged one still, which stays beside, or the
/// repaired one.
#[test]
fn during_a_repair_of_the_state() {
    killed_at_each(Scenario::Repair);
}
