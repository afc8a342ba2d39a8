//! Kills at each changing system call, from the first to the last.

use crate::kill_point::Strike;
use crate::scenario::Scenario;
use std::collections::BTreeMap;

/// The number of missed calls in a row that ends a scenario: the number of calls differs slightly between runs.
const MISSES: usize = 3;

/// Returns true if every call is killed at (`STEADFAST_KILLING=all`), and not a sample.
pub(crate) fn is_whole() -> bool {
    std::env::var_os("STEADFAST_KILLING").is_some_and(|value| value == "all")
}

/// Prints a figure for docs on tests; visible with `--no-capture`.
pub(crate) fn report(words: &str) {
    std::io::Write::write_all(&mut std::io::stderr(), format!("{words}\n").as_bytes())
        .expect("written");
}

/// Kills the daemon before and after each call, or before or after every seventh call. Some kills include all its
/// child processes.
#[track_caller]
fn killed_at_each(scenario: Scenario) {
    const FEW: usize = 7;
    let mut struck: BTreeMap<&str, usize> = BTreeMap::new();
    // Each scenario samples from another first call.
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

/// F-1, B-10: kills during the first start.
#[test]
fn during_the_first_start() {
    killed_at_each(Scenario::FirstStart);
}

/// F-1, B-10: kills during a reload.
#[test]
fn during_a_reload() {
    killed_at_each(Scenario::Reload);
}

/// F-1, B-10: kills during a repair.
#[test]
fn during_a_repair() {
    killed_at_each(Scenario::Drift);
}

/// F-1, E-15: kills during a pause and a resume.
#[test]
fn during_a_pause() {
    killed_at_each(Scenario::Pause);
}

/// F-1: kills during a stop.
#[test]
fn during_a_stop() {
    killed_at_each(Scenario::Stop);
}

/// F-1, B-12: kills during a restart with an owed refresh.
#[test]
fn during_recovery() {
    killed_at_each(Scenario::Recovery);
}

/// F-1, B-10, B-17: kills during removals. Declared objects stay, a begun removal is completed, the others wait for
/// the operator, and each removal can be undone.
#[test]
fn during_removals() {
    killed_at_each(Scenario::Removal);
}

/// F-1, B-10: kills during an undo by the operator.
#[test]
fn during_an_undo() {
    killed_at_each(Scenario::Undo);
}

/// F-1, B-24: kills during an import of another state.
#[test]
fn during_an_import() {
    killed_at_each(Scenario::Import);
}

/// F-1, B-10, B-24: kills during a repair of the state. The state is still the damaged one or the repaired one; a
/// copy of the damaged one stays.
#[test]
fn during_a_repair_of_the_state() {
    killed_at_each(Scenario::Repair);
}
