//! Random walks through configurations that are too large to be explored (docs/model.md, *Walks*).
//!
//! Each walk follows from the numbers of its configuration and of itself, so that each run of the tests gives the same
//! result. `STEADFAST_WALKS` is the number of walks for each configuration, `STEADFAST_WALKS_FROM` the number of the
//! first of them; `STEADFAST_WALK=1234:5` takes walk 5 of configuration 1234 alone. A violation is reported with the
//! command that replays its walk.

use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::{
    Configuration, FEATURES, Feature, HAPPENING, HOLDING, configurations, graphs,
};
use crate::model::exploration::explorer::{Explorer, Found};
use crate::model::exploration::sights;
use crate::model::exploration::walking::{Seed, Walker};
use crate::model::{SETTLED, documented, happening, must_have_seen, remaking, report, turns};
use std::collections::BTreeMap;
use std::time::Instant;

/// Two events of each vertex, a failure, a pause, a stop, a swap and a crash, and every outcome.
const LITERAL: Budget = Budget {
    events: 2,
    total_events: u8::MAX,
    turns: u8::MAX,
    crashes: 1,
    thorough: true,
    ..SETTLED
};
/// `LITERAL` from the load on.
const LOADED: Budget = Budget { settled: false, ..LITERAL };
/// `LOADED`, with watches that are answered in any order.
const ANSWERED: Budget = Budget { watches: true, ..LOADED };

/// Many configurations, made one after the other: all of them at once would need gigabytes.
type Configurations = Box<dyn Iterator<Item = Configuration>>;

/// The default number of walks for each configuration.
const WALKS: u64 = 1;

/// A set of configurations that is walked together.
struct Family {
    /// The name of the test that walks through all of them.
    test: &'static str,
    name: &'static str,
    all: fn() -> Configurations,
    wanted: &'static [&'static [&'static str]],
    /// In CI one of this number of configurations gets one walk.
    share: usize,
}

/// Returns the features to combine. Every history has a swap and a crash in addition.
fn features() -> Vec<Feature> {
    let others = FEATURES.iter().filter(|it| !matches!(it, Feature::Swap | Feature::Crash));
    others.chain([&Feature::Group]).copied().collect()
}

/// Returns the features to combine, with those that delay changes.
fn all_features() -> Vec<Feature> {
    let holding = HOLDING.into_iter().filter(|it| *it != Feature::Group);
    features().into_iter().chain(holding).collect()
}

/// Adds a crash and a swap to a set; with groups, the swap that makes or separates them.
fn turned(mut set: Vec<Feature>) -> Vec<Feature> {
    if !set.contains(&Feature::Group) {
        set.push(Feature::Swap);
    }
    set.push(Feature::Crash);
    set
}

/// Returns each of these sets on each graph of these numbers of vertices.
fn each(counts: &[u32], sets: Vec<Vec<Feature>>, budgets: &'static [Budget]) -> Configurations {
    let graphs: Vec<_> = counts.iter().flat_map(|count| graphs(*count)).collect();
    let sets: Vec<_> = sets.into_iter().map(turned).collect();
    let pairs = graphs.into_iter().flat_map(move |graph| {
        let with = move |set| (graph.clone(), set);
        sets.clone().into_iter().map(with)
    });
    Box::new(pairs.flat_map(move |(graph, set)| {
        let with = |budget: &Budget| configurations(&graph, &set, *budget);
        budgets.iter().flat_map(with).collect::<Vec<_>>()
    }))
}

/// Returns the empty set, each feature, and each two.
fn up_to_two(features: &[Feature]) -> Vec<Vec<Feature>> {
    let mut sets = vec![Vec::new()];
    for (at, one) in features.iter().enumerate() {
        sets.push(vec![*one]);
        sets.extend(features[at + 1..].iter().map(|other| vec![*one, *other]));
    }
    sets
}

/// Returns all rare events in one history, alone and with each feature; and with pauses that end by themselves.
fn happening() -> Vec<Vec<Feature>> {
    let (lapse, long): (Vec<_>, Vec<_>) =
        HAPPENING.into_iter().partition(|it| *it == Feature::Lapse);
    let others = all_features().into_iter().map(|feature| vec![feature]);
    let sets = others.chain([Vec::new()]).map(|set| [set, long.clone()].concat());
    sets.flat_map(|set| [set.clone(), [set, lapse.clone()].concat()]).collect()
}

/// Returns each delaying feature with each other one, and two neighbouring vertices with `realize`.
fn holding() -> Vec<Vec<Feature>> {
    let all = all_features();
    let pairs = up_to_two(&all).into_iter();
    let held = pairs.filter(|set| set.iter().any(|it| HOLDING.contains(it)));
    let realized = [Feature::Realize, Feature::Realize];
    held.chain(all.iter().map(|other| [&realized[..], &[*other]].concat())).collect()
}

/// Returns the empty set, and each feature alone.
fn up_to_one(features: Vec<Feature>) -> Vec<Vec<Feature>> {
    let each = features.into_iter().map(|feature| vec![feature]);
    each.chain([Vec::new()]).collect()
}

/// The situations that every large set of walks shows.
const USUAL: [&str; 18] = [
    sights::CONVERGED,
    sights::REFRESHED,
    sights::FAILED,
    sights::DELAYED,
    sights::WAITS_FOR_PARENT,
    sights::LIMITED,
    sights::NO_SEMAPHORE,
    sights::NO_SLOT,
    sights::WOULD_CHANGE,
    sights::UNKNOWN,
    sights::STUCK,
    sights::SUSPENDED,
    sights::CANCELLED,
    sights::LOOKED,
    sights::STOPPED,
    sights::AT_ONCE,
    sights::UNSAVED,
    sights::OWING,
];

/// The full bound: up to three vertices, each feature and each two, two events of each vertex, and each turn once.
const BOUND: Family = Family {
    test: "explore_walks_through_pairs_of_features",
    name: "walks: 1 to 3 vertices, each two features, 2 events of each, all turns",
    all: || each(&[1, 2, 3], up_to_two(&features()), &[LITERAL, LOADED]),
    wanted: &[&USUAL, &turns::WITHIN, &[sights::WOULD_REFRESH, sights::DRAINING, sights::PAUSED]],
    share: 25,
};

/// Watches that are answered late, or never.
const WATCHES: Family = Family {
    test: "explore_walks_through_watches",
    name: "walks: 3 vertices, each feature, watches answered in any order, all turns",
    all: || each(&[3], up_to_one(all_features()), &[ANSWERED]),
    wanted: &[&USUAL, &turns::WITHIN, &[sights::NO_WATCH, sights::ABSENT]],
    share: 2,
};

/// All rare events of single vertices in one history.
const HAPPENS: Family = Family {
    test: "explore_walks_through_what_happens",
    name: "walks: 3 vertices, each feature, all that happens to them, 2 events of each, all turns",
    all: || each(&[3], happening(), &[LITERAL, LOADED]),
    wanted: &[&USUAL, &turns::WITHIN, &happening::ALL, &remaking::SEEN],
    share: 9,
};

/// The features that delay changes, with each feature and each other.
const HOLDS: Family = Family {
    test: "explore_walks_through_what_holds",
    name: "walks: 3 vertices, each that holds with each feature, 2 events of each, all turns",
    all: || each(&[3], holding(), &[LITERAL, LOADED]),
    wanted: &[
        &USUAL,
        &turns::WITHIN,
        &sights::CONTENTIONS,
        &sights::REPAIR_LIMIT,
        &sights::WINDOW,
        &sights::REALIZE,
        &[sights::RECEIVED],
    ],
    share: 60,
};

/// Four vertices, also with groups, and with failures.
const FOUR: Family = Family {
    test: "explore_walks_through_four_vertices",
    name: "walks: 4 vertices, all 31 graphs, each feature, 2 events of each, all turns",
    all: || each(&[4], up_to_one(all_features()), &[LITERAL, LOADED]),
    wanted: &[&USUAL, &turns::WITHIN],
    share: 50,
};

/// Returns a number from the environment variables.
fn given(name: &str) -> Option<u64> {
    let text = std::env::var_os(name)?.into_string().expect("a number in ASCII");
    Some(text.parse().unwrap_or_else(|_| panic!("{name}: expected a number, found {text:?}")))
}

/// Returns the walk that is to be taken alone.
fn only() -> Option<Seed> {
    let text = std::env::var_os("STEADFAST_WALK")?.into_string().expect("numbers in ASCII");
    let numbers = text.split_once(':').and_then(|(one, other)| {
        Some(Seed { configuration: one.parse().ok()?, walk: other.parse().ok()? })
    });
    Some(numbers.unwrap_or_else(|| panic!("STEADFAST_WALK: expected 1234:5, found {text:?}")))
}

impl Family {
    /// Walks through all configurations, or through those of the environment variables.
    fn walk(&self) {
        if let Some(seed) = only() {
            let at = usize::try_from(seed.configuration).expect("small");
            let all = (self.all)().enumerate().skip(at).take(1);
            drop(self.through(all, seed.walk..seed.walk + 1));
            return;
        }
        let begun = now();
        let from = given("STEADFAST_WALKS_FROM").unwrap_or(0);
        let walks = given("STEADFAST_WALKS").unwrap_or(WALKS);
        let found = self.through((self.all)().enumerate(), from..from + walks);
        let name = format!("{}; {walks} through each", self.name);
        report(&name, &found, begun);
        must_have_seen(&name, &found.sights, &self.wanted.concat());
    }

    /// Takes one walk through each configuration of a share.
    fn walk_through_a_share(&self) {
        let begun = now();
        let found = self.through((self.all)().enumerate().step_by(self.share), 0..1);
        let name = format!("{}; 1 through one in {}", self.name, self.share);
        report(&name, &found, begun);
        must_have_seen(&name, &found.sights, &self.wanted.concat());
        documented::compare(&name, &found);
    }

    fn through(
        &self,
        all: impl Iterator<Item = (usize, Configuration)>,
        walks: std::ops::Range<u64>,
    ) -> Found {
        let mut found = Found::default();
        let mut wrong = BTreeMap::new();
        for (at, configuration) in all {
            let mut walker = Walker::new(&configuration);
            for walk in walks.clone() {
                let seed = Seed { configuration: at as u64, walk };
                let Err(told) = walker.walk(seed) else { continue };
                let rule = told.lines().next().unwrap_or_default().to_owned();
                wrong.entry(rule).or_insert_with(|| {
                    let (test, budget) = (self.test, configuration.budget);
                    format!(
                        "{told}{budget:?}\nreplay it by: STEADFAST_WALK={at}:{walk} cargo test -p \
                         steadfast-engine --release --test engine {test} -- --ignored --nocapture"
                    )
                });
            }
            found.add(walker.found());
        }
        // One walk for each rule: a defect breaks many at once.
        let wrong: Vec<String> = wrong.into_values().collect();
        assert!(wrong.is_empty(), "{}:\n{}", self.name, wrong.join("\n\n"));
        found
    }
}

#[expect(clippy::disallowed_methods, reason = "how long it took is told, and matters to nothing")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn model_walks_through_pairs_of_features() {
    BOUND.walk_through_a_share();
}

#[test]
fn model_walks_through_watches() {
    WATCHES.walk_through_a_share();
}

#[test]
fn model_walks_through_what_happens() {
    HAPPENS.walk_through_a_share();
}

#[test]
fn model_walks_through_what_holds() {
    HOLDS.walk_through_a_share();
}

#[test]
fn model_walks_through_four_vertices() {
    FOUR.walk_through_a_share();
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_walks_through_pairs_of_features() {
    BOUND.walk();
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_walks_through_watches() {
    WATCHES.walk();
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_walks_through_what_happens() {
    HAPPENS.walk();
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_walks_through_what_holds() {
    HOLDS.walk();
}

#[test]
#[ignore = "part of the larger exploration: docs/model.md"]
fn explore_walks_through_four_vertices() {
    FOUR.walk();
}

/// Measures the size of the full bound: some of its configurations of three vertices, each up to a number of steps.
#[test]
#[ignore = "a quarter of an hour, for the figures of docs/model.md: STEADFAST_STEPS=8000000"]
fn measure_the_bound() {
    let most = usize::try_from(given("STEADFAST_STEPS").unwrap_or(8_000_000)).expect("small");
    let sets: [&[Feature]; 3] =
        [&[], &[Feature::Notify, Feature::Semaphore(1)], &[Feature::Limit, Feature::Retry]];
    let graphs = graphs(3);
    for (set, graph) in sets.into_iter().zip([&graphs[0], &graphs[5], &graphs[3]]) {
        let set = turned(set.to_vec());
        let all = configurations(graph, &set, Budget { thorough: false, ..LITERAL });
        let configuration = all.first().expect("one at least");
        let found = Explorer::new(configuration).explore_up_to(most);
        let found = found.map(|found| (found.states, found.transitions));
        print_line(&format!("{set:?}: {found:?}"));
    }
}

#[expect(clippy::print_stdout, reason = "what was measured is for whoever started it by hand")]
fn print_line(line: &str) {
    println!("{line}");
}
