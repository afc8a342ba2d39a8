//! The tests over many runs: they end as declared, replay identically, and together reach every situation.
//!
//! The fast tier plays a quarter of all runs; `STEADFAST_SIMULATION=all` plays all of them.

use crate::judgement::coverage::{MADE_FIRST, Sights};
use crate::run::{Played, play, play_realizing};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Plays a seed; an error holds the complaints and the command that replays the run.
fn try_to_play(seed: u64, keep: bool, folder: &Path) -> Result<Played, String> {
    let result = catch_unwind(AssertUnwindSafe(|| play(seed, keep, folder)));
    let wrong = match result {
        Ok(played) if played.wrong.is_empty() => return Ok(played),
        Ok(played) => {
            show(&played.lines);
            played.wrong
        }
        Err(_) => vec!["it panicked".to_owned()],
    };
    Err(format!("seed {seed}: {}\n{}", wrong.join("\n"), again(seed)))
}

fn played(seed: u64, keep: bool, folder: &Path) -> Played {
    try_to_play(seed, keep, folder).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn again(seed: u64) -> String {
    format!(
        "see it: STEADFAST_SEED={seed} cargo nextest run --test simulation one_seed --no-capture"
    )
}

#[expect(clippy::print_stdout, reason = "asked for by whoever looks at one run")]
fn show(lines: &[String]) {
    for line in lines {
        println!("{line}");
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// Plays and prints the run of `STEADFAST_SEED`, or `STEADFAST_SEEDS` runs from that seed on.
#[test]
fn one_seed() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = number("STEADFAST_SEED").unwrap_or(1);
    let Some(count) = number("STEADFAST_SEEDS") else {
        let asked = std::env::var_os("STEADFAST_SEED").is_some();
        let played = played(first, asked, folder.path());
        show(&played.lines);
        return;
    };
    let (mut sights, mut wrong) = (Sights::default(), Vec::new());
    for seed in first..first + count {
        match try_to_play(seed, false, folder.path()) {
            Ok(played) => sights.add(&played.sights),
            Err(what) => wrong.push(what),
        }
        if wrong.len() >= 20 {
            break;
        }
    }
    show(&[sights.table()]);
    show(&wrong);
    assert!(wrong.is_empty(), "{} of {count} runs", wrong.len());
}

/// The number of all runs; each of two tests plays a half of those that are played.
const RUNS: u64 = 6000;

/// The number of all runs that set `realize` for every resource.
const REALIZING: u64 = 500;

/// The number of all runs that are played twice.
const REPLAYED: u64 = 300;

/// Returns the part of a number of runs that is played: a quarter, or all with `STEADFAST_SIMULATION=all`.
pub(crate) fn share(all: u64) -> u64 {
    if std::env::var_os("STEADFAST_SIMULATION").is_some_and(|value| value == "all") {
        all
    } else {
        all / 4
    }
}

/// F-15, E-4, E-6, E-9, E-18: plays a half of the runs. Each ends as declared, and together they reach every
/// situation.
fn half(number: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut sights, mut wrong) = (Sights::default(), Vec::new());
    for seed in (number..share(RUNS)).step_by(2) {
        match try_to_play(seed, false, folder.path()) {
            Ok(played) => sights.add(&played.sights),
            Err(what) => wrong.push(what),
        }
        if wrong.len() >= 5 {
            break;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let missing = sights.missing();
    assert!(missing.is_empty(), "never seen: {missing:?}\n{}", sights.table());
}

#[test]
fn first_half() {
    half(0);
}

#[test]
fn second_half() {
    half(1);
}

/// E-17: a resource with `realize` that a swap removes before its first run is applied while the swap waits.
#[test]
fn a_resource_removed_by_a_swap_is_made_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sights = Sights::default();
    for seed in 0..share(REALIZING) {
        let played = play_realizing(seed, folder.path());
        assert!(played.wrong.is_empty(), "seed {seed}: {}", played.wrong.join("\n"));
        sights.add(&played.sights);
    }
    assert!(sights.has(MADE_FIRST), "never seen: {MADE_FIRST}\n{}", sights.table());
}

/// One seed replays a run bit for bit.
#[test]
fn a_seed_replays_its_run() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..share(REPLAYED) {
        let (one, other) = (played(seed, false, folder.path()), played(seed, false, folder.path()));
        assert_eq!(one.sum, other.sum, "seed {seed} plays two runs\n{}", again(seed));
        assert!(one.sum.1 > 10, "seed {seed}: next to nothing happened");
    }
}
