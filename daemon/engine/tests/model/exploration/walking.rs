//! A random walk through one configuration: the states, steps and rules of the exploration, one path at a time.
//!
//! Walks are for configurations that are too large to be explored completely. A walk continues until nothing can happen
//! any more. All rules are checked at each state; the walk may not reach the same state twice (a livelock) or end too
//! early (a deadlock).

use crate::model::configurations::features::Configuration;
use crate::model::exploration::explorer::{Explorer, Found, State};
use crate::model::exploration::waiting::is_at_rest;
use crate::step::Step;
use stateright::Model as _;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// More steps than any walk has.
const MOST: usize = 2000;

/// Random numbers, the same in each run (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Removes one of the steps at random.
    fn take(&mut self, steps: &mut Vec<Step>) -> Option<Step> {
        let mut at = self.below(steps.iter().map(weight).sum());
        let heavy = |step: &Step| {
            let is_it = at < weight(step);
            at = at.saturating_sub(weight(step));
            is_it
        };
        let place = steps.iter().position(heavy)?;
        Some(steps.swap_remove(place))
    }
}

/// Returns the weight of a step in the choice: a step that can come once in a history should not always come at the
/// beginning.
fn weight(step: &Step) -> u64 {
    match step {
        Step::Stop { .. } => 1,
        Step::Crash { .. } => 2,
        Step::Pause { .. } | Step::Swap { .. } | Step::Refuse => 4,
        Step::Suspect(_) | Step::Look(_) | Step::RetryNow(_) | Step::Received(_) => 4,
        Step::Remade(_) | Step::Doubt { .. } => 4,
        Step::PauseVertex { .. } | Step::Window { .. } | Step::Unwatched(_) => 4,
        Step::Changed(_) | Step::Watching(_) | Step::Resume | Step::Wake => 8,
        Step::Checked(..) | Step::Ended(..) | Step::Commit => 16,
        Step::Wait(_) | Step::Lag(_) => 1,
    }
}

/// The configuration and number of a walk, from which all random choices follow.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct Seed {
    pub(in crate::model) configuration: u64,
    pub(in crate::model) walk: u64,
}

/// All walks through one configuration.
pub(in crate::model) struct Walker {
    explorer: Explorer,
    seen: BTreeSet<u64>,
    steps: usize,
    longest: usize,
}

impl Walker {
    pub(in crate::model) fn new(configuration: &Configuration) -> Self {
        let explorer = Explorer::new(configuration);
        Self { explorer, seen: BTreeSet::new(), steps: 0, longest: 0 }
    }

    /// Returns the coverage of all walks together; the depth is the length of the longest.
    pub(in crate::model) fn found(self) -> Found {
        Found {
            configurations: 1,
            states: self.seen.len(),
            transitions: self.steps,
            depth: self.longest,
            sights: self.explorer.sights(),
        }
    }

    /// Takes one walk.
    ///
    /// # Errors
    ///
    /// Returns the violation as text, with the shortest path to it that was found.
    pub(in crate::model) fn walk(&mut self, seed: Seed) -> Result<(), String> {
        let mut chance = Chance(seed.configuration);
        chance = Chance(chance.next() ^ seed.walk);
        let mut state = self.first();
        let mut passed = BTreeSet::from([state.number()]);
        let mut way = Vec::new();
        let found = loop {
            if let Some(rule) = broken(&state) {
                break Err(rule);
            }
            let mut offered = self.offered(&state);
            let none = offered.is_empty();
            let taken = loop {
                let Some(step) = chance.take(&mut offered) else { break None };
                let next = self.explorer.next_state(&state, step);
                if let Some(next) = next {
                    break Some((step, next));
                }
            };
            let Some((step, next)) = taken else {
                let ends = none && (is_at_rest(&state) || state.world.stopped);
                break if ends { Ok(()) } else { Err(DEADLOCK.to_owned()) };
            };
            way.push(step);
            state = next;
            if !passed.insert(state.number()) || way.len() > MOST {
                break Err(LIVELOCK.to_owned());
            }
        };
        self.steps += way.len();
        self.longest = self.longest.max(way.len());
        self.seen.extend(passed);
        found.map_err(|rule| self.describe(&rule, &way))
    }

    fn first(&self) -> State {
        self.explorer.init_states().pop().expect("one beginning")
    }

    fn offered(&self, state: &State) -> Vec<Step> {
        let mut offered = Vec::new();
        self.explorer.actions(state, &mut offered);
        offered
    }

    /// Returns the state after these steps, as long as each is offered and no rule is broken.
    fn follow(&self, way: &[Step]) -> Option<State> {
        let mut state = self.first();
        for step in way {
            let is_offered = self.offered(&state).contains(step);
            state = self.explorer.next_state(&state, *step).filter(|_| is_offered)?;
        }
        Some(state)
    }

    /// Removes the steps that are not needed to break the rule.
    fn shorten(&self, rule: &str, way: &[Step]) -> Vec<Step> {
        let mut way = way.to_vec();
        let mut at = way.len();
        while at > 0 {
            at -= 1;
            let mut shorter = way.clone();
            shorter.remove(at);
            let same = |state: State| broken(&state).is_some_and(|found| found == rule);
            if self.follow(&shorter).is_some_and(same) {
                way = shorter;
                at = at.min(way.len());
            }
        }
        way
    }

    fn describe(&self, rule: &str, way: &[Step]) -> String {
        let way = self.shorten(rule, way);
        let mut text = format!("{rule}\n");
        let last = self.follow(&way);
        for violation in last.iter().flat_map(|state| &state.world.oracle.books.violations) {
            writeln!(text, "{violation}").expect("a string takes all");
        }
        text.push_str("after:\n");
        for step in &way {
            writeln!(text, "{step:?}").expect("a string takes all");
        }
        text + &self.explorer.to_text()
    }
}

const DEADLOCK: &str = "deadlock: nothing can happen, and not all is over";
const LIVELOCK: &str = "livelock: steps lead round to where they began, or have no bound";

/// Returns the sentence of the first broken rule.
fn broken(state: &State) -> Option<String> {
    let first = state.world.oracle.books.violations.first()?;
    Some(first.lines().next().unwrap_or_default().to_owned())
}

#[test]
fn events_are_drawn_by_weight() {
    let mut chance = Chance(7);
    let mut stops = 0;
    for _ in 0..900 {
        let stop = Step::Stop { grace: crate::shape::ms(1) };
        let mut offered = vec![stop, Step::Commit];
        stops += u32::from(chance.take(&mut offered) == Some(stop));
        assert_eq!(offered.len(), 1, "what was taken is offered no more");
    }
    assert!((25..=90).contains(&stops), "one of seventeen: {stops} of 900");
    assert_eq!(chance.take(&mut Vec::new()), None);
}
