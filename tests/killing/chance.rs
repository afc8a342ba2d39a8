//! Kills at random system calls of any thread, in any scenario, and in the starts that follow.

use crate::calls::{is_whole, report};
use crate::kill_point::Strike;
use crate::scenario::{ALL, Scenario};
use crate::syscall_tracer::Scope;

/// A `SplitMix64` random number generator.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("it fits");
        usize::try_from(self.next() % bound).expect("it fits")
    }

    fn strike(&mut self, bound: usize) -> Strike {
        Strike {
            number: 1 + self.below(bound),
            name: None,
            scope: Scope::Everything,
            after: self.below(2) == 1,
            with_children: self.below(2) == 1,
        }
    }
}

/// Returns the approximate number of calls in a scenario. A kill point beyond the end kills at the end.
fn calls(scenario: Scenario) -> usize {
    match scenario {
        Scenario::FirstStart => 2500,
        Scenario::Recovery => RECOVERY,
        Scenario::Reload | Scenario::Drift | Scenario::Pause => 1000,
        Scenario::Stop | Scenario::Undo => 300,
        Scenario::Removal | Scenario::Import | Scenario::Repair => 1200,
    }
}

const RECOVERY: usize = 1700;

fn play(seed: u64) -> usize {
    let mut chance = Chance(seed);
    let scenario = ALL[chance.below(ALL.len())];
    let mut strikes = vec![chance.strike(calls(scenario))];
    // The next start is killed too with a probability of one third, and the one after it of one ninth.
    while strikes.len() < 4 && chance.below(3) == 0 {
        strikes.push(chance.strike(RECOVERY));
    }
    let struck = scenario.play(&strikes, &format!("STEADFAST_KILLING_SEED={seed}"));
    usize::from(struck.call.is_some())
}

/// F-1, B-10, B-12: plays random kills. `STEADFAST_KILLING_SEED` replays one.
fn killed_at_random(seeds: std::ops::Range<u64>) {
    let given = std::env::var("STEADFAST_KILLING_SEED").ok();
    if let Some(seed) = given.map(|seed| seed.parse().expect("a number")) {
        if seeds.contains(&seed) {
            play(seed);
        }
        return;
    }
    let (first, all) = (seeds.start, usize::try_from(seeds.end - seeds.start).expect("it fits"));
    let count = if is_whole() { all } else { all / 6 };
    let struck: usize = (first..).take(count).map(play).sum();
    report(&format!("{struck} of {count} were struck before they were through"));
    assert!(struck * 2 > count, "{struck} of {count}");
}

/// F-1, B-10, B-12: the first half of the seeds.
#[test]
fn at_random_instants() {
    killed_at_random(0..250);
}

/// F-1, B-10, B-12: the second half of the seeds, in parallel to the first.
#[test]
fn at_other_random_instants() {
    killed_at_random(250..500);
}
