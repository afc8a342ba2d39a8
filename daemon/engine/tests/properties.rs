//! F-15: random graphs, schedules, outcomes, pauses, swaps, stops and crashes against the oracle.
//!
//! The seed is fixed, so that each run of the tests gives the same result. More cases: `PROPTEST_CASES=200000
//! PROPTEST_RNG_SEED=7 cargo test -p steadfast-engine --release --test engine properties`. A failing schedule is shrunk
//! and written below target/tmp/. Moved to tests/schedules/, it is replayed by every run.

use crate::environment::World;
use crate::generate::{play, play_plan, smallest};
use crate::schedule::Schedule;
use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use std::path::Path;

/// The number of cases if the environment variable is not set.
const CASES: u32 = 6000;

fn config() -> Config {
    let given = Config::default();
    let cases = if given.cases == 256 { CASES } else { given.cases };
    let rng_seed = match given.rng_seed {
        RngSeed::Random => RngSeed::Fixed(20_261_121),
        fixed @ RngSeed::Fixed(_) => fixed,
    };
    Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: 0, ..given }
}

/// E-1 to E-18 and E-20 hold on random schedules; E-19 is tested in `groups.rs`.
#[test]
fn every_rule_holds_on_random_schedules() {
    every_rule_holds(play);
}

/// E-11: the rules hold for plans with uncertain findings.
#[test]
fn every_rule_holds_on_random_plans() {
    every_rule_holds(play_plan);
}

fn every_rule_holds(play: fn(&[u16]) -> (Schedule, World)) {
    let tapes = vec(any::<u16>(), 40..600);
    let found = TestRunner::new(config()).run(&tapes, |numbers| {
        let (schedule, world) = play(&numbers);
        match world.oracle.books.violations.first() {
            None => Ok(()),
            Some(broken) => Err(TestCaseError::fail(report(schedule, broken))),
        }
    });
    match found {
        Ok(()) => {}
        Err(TestError::Fail(reason, _)) => panic!("{reason}"),
        Err(TestError::Abort(reason)) => panic!("aborted: {reason}"),
    }
}

/// Returns the smallest schedule that breaks the same rule, and writes it to a file.
fn report(schedule: Schedule, broken: &str) -> String {
    let rule = broken.lines().next().unwrap_or_default().to_owned();
    let same = |candidate: &Schedule| {
        let world = candidate.play();
        world.oracle.books.violations.first().is_some_and(|found| found.starts_with(&rule))
    };
    let small = smallest(schedule, &same);
    let world = small.play();
    let broken = world.oracle.books.violations.join("\n");
    let comment: String = broken.lines().flat_map(|line| ["# ", line, "\n"]).collect();
    let text = format!("{comment}{}", small.to_text());
    let name = format!("found-{:016x}.txt", fingerprint(&text));
    // Below target/: a schedule is preserved when somebody moves it to tests/schedules/.
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let written = std::fs::write(&path, &text).is_ok();
    format!("{broken}\nwritten to {} ({written})\n{text}\n{}", path.display(), world.log.join("\n"))
}

fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
