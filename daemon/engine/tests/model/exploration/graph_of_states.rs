//! The graph of all states and steps, once it is complete: does every path end, and does it end well?

use std::collections::{BTreeMap, BTreeSet};

/// All explored steps.
#[derive(Debug, Default)]
pub(in crate::model) struct Steps {
    all: Vec<(u64, u64)>,
    ends: BTreeSet<u64>,
}

impl Steps {
    pub(in crate::model) fn add(&mut self, from: u64, to: u64) {
        self.all.push((from, to));
    }

    /// Records a state from which nothing can happen, and nothing has to.
    pub(in crate::model) fn ends(&mut self, state: u64) {
        self.ends.insert(state);
    }

    pub(in crate::model) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the length of the longest path.
    ///
    /// # Errors
    ///
    /// Returns an error for a path that loops without progress (a livelock), or that ends too early (a deadlock).
    pub(in crate::model) fn longest_way(mut self, first: u64) -> Result<usize, String> {
        self.all.sort_unstable();
        self.all.dedup();
        let mut waits: BTreeMap<u64, u32> = BTreeMap::from([(first, 0)]);
        for (_, to) in &self.all {
            *waits.entry(*to).or_default() += 1;
        }
        let mut depths: BTreeMap<u64, usize> = BTreeMap::new();
        let mut ready = vec![(first, 0)];
        let (mut passed, mut longest) = (0, 0);
        while let Some((state, depth)) = ready.pop() {
            passed += 1;
            longest = longest.max(depth);
            let from = self.all.partition_point(|step| step.0 < state);
            let mut steps = 0;
            for (_, to) in self.all[from..].iter().take_while(|step| step.0 == state) {
                steps += 1;
                let before = depths.entry(*to).or_default();
                *before = (*before).max(depth + 1);
                let left = waits.entry(*to).or_default();
                *left -= 1;
                if *left == 0 {
                    ready.push((*to, *before));
                }
            }
            if steps == 0 && !self.ends.contains(&state) {
                return Err("deadlock: nothing can happen, and not all is over".to_owned());
            }
        }
        if passed < waits.len() {
            return Err("livelock: steps lead round to where they began".to_owned());
        }
        Ok(longest)
    }
}

#[test]
fn a_way_that_runs_round_is_found() {
    let mut steps = Steps::default();
    for (from, to) in [(1, 2), (2, 3), (3, 2)] {
        steps.add(from, to);
    }
    assert!(steps.longest_way(1).is_err_and(|wrong| wrong.starts_with("livelock")));
}

#[test]
fn a_way_that_ends_in_the_middle_is_found() {
    let mut steps = Steps::default();
    for (from, to) in [(1, 2), (1, 3), (3, 2)] {
        steps.add(from, to);
    }
    assert!(steps.longest_way(1).is_err_and(|wrong| wrong.starts_with("deadlock")));
}

#[test]
fn the_longest_way_is_measured() {
    let mut steps = Steps::default();
    for (from, to) in [(1, 2), (1, 3), (3, 2)] {
        steps.add(from, to);
    }
    steps.ends(2);
    assert_eq!(steps.longest_way(1), Ok(2));
}
