//! A small model of the classic way to take several semaphores (ascending order, hold and wait), which the engine does
//! not use: the steps C1 to C3 of docs/semaphores.md, over every order of ends and changes.
//!
//! Each vertex takes its semaphores one by one in ascending order; each semaphore serves first come, first served. At
//! most two runs of others end during one run (A2). An ancestor may become dirty at any time.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The number of other runs that may end during one run.
const PATIENCE: u8 = 2;

/// The dependencies and semaphores of three vertices (ascending), and the counts of the semaphores.
struct Setting {
    parents: [&'static [usize]; 3],
    takes: [&'static [usize]; 3],
    counts: [usize; 2],
    /// True if a vertex whose ancestor becomes dirty releases all its semaphores.
    releases: bool,
    /// True if a converged vertex may become dirty again.
    moves: bool,
    /// True if a semaphore serves the last waiter instead of the first.
    serves_last: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Clean,
    /// Not yet taking: an ancestor blocks it.
    Dirty,
    /// Holds this number of semaphores, and waits for the next.
    Taking(usize),
    /// Holds all semaphores; this number of other runs have ended since.
    Running(u8),
}

impl Phase {
    /// Returns the phase after the end of another run.
    fn older(self) -> Self {
        match self {
            Self::Running(age) => Self::Running((age + 1).min(PATIENCE)),
            other => other,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    phases: [Phase; 3],
    /// The waiting vertices of each semaphore, in order.
    queues: [Vec<usize>; 2],
}

impl State {
    fn is_blocked(&self, setting: &Setting, vertex: usize) -> bool {
        setting.parents[vertex]
            .iter()
            .any(|parent| self.phases[*parent] != Phase::Clean || self.is_blocked(setting, *parent))
    }

    fn holders(&self, setting: &Setting, semaphore: usize) -> usize {
        let holds = |vertex: &usize| {
            let taken = match self.phases[*vertex] {
                Phase::Taking(count) => &setting.takes[*vertex][..count],
                Phase::Running(_) => setting.takes[*vertex],
                Phase::Clean | Phase::Dirty => &[],
            };
            taken.contains(&semaphore)
        };
        (0..3).filter(holds).count()
    }

    /// Performs everything that follows without a choice: vertices begin to take, and free semaphores serve their
    /// queue.
    fn go_on(mut self, setting: &Setting) -> Self {
        loop {
            let before = self.clone();
            for vertex in 0..3 {
                let blocked = self.is_blocked(setting, vertex);
                match self.phases[vertex] {
                    Phase::Dirty if !blocked => self.take(setting, vertex, 0),
                    Phase::Taking(_) if blocked && setting.releases => {
                        self.phases[vertex] = Phase::Dirty;
                        self.queues.iter_mut().for_each(|queue| queue.retain(|it| *it != vertex));
                    }
                    _ => {}
                }
            }
            (0..2).for_each(|semaphore| self.serve(setting, semaphore));
            if self == before {
                return self;
            }
        }
    }

    /// Gives a free semaphore to the first vertex in its queue.
    fn serve(&mut self, setting: &Setting, semaphore: usize) {
        let queue = &self.queues[semaphore];
        let at = if setting.serves_last { queue.len() } else { queue.len().min(1) };
        if at > 0 && self.holders(setting, semaphore) < setting.counts[semaphore] {
            let first = self.queues[semaphore].remove(at - 1);
            if let Phase::Taking(held) = self.phases[first] {
                self.take(setting, first, held + 1);
            }
        }
    }

    /// Moves a vertex with `held` semaphores on: into the next queue, or to its run. With all semaphores and a dirty
    /// ancestor it holds and waits.
    fn take(&mut self, setting: &Setting, vertex: usize, held: usize) {
        self.phases[vertex] = match setting.takes[vertex].get(held) {
            Some(next) => {
                self.queues[*next].push(vertex);
                Phase::Taking(held)
            }
            None if self.is_blocked(setting, vertex) => Phase::Taking(held),
            None => Phase::Running(0),
        };
    }

    /// Returns the states after every possible end of a run, and every vertex that may become dirty.
    fn next(&self, setting: &Setting) -> Vec<Self> {
        let mut all = Vec::new();
        let overdue = self.phases.contains(&Phase::Running(PATIENCE));
        for vertex in 0..3 {
            let mut next = self.clone();
            match self.phases[vertex] {
                Phase::Running(age) if !overdue || age == PATIENCE => {
                    next.phases = next.phases.map(Phase::older);
                    next.phases[vertex] = Phase::Clean;
                }
                Phase::Clean if setting.moves => next.phases[vertex] = Phase::Dirty,
                _ => continue,
            }
            for other in 0..3 {
                // A vertex that held all semaphores and waited only for an ancestor.
                if next.phases[other] == Phase::Taking(setting.takes[other].len()) {
                    next.take(setting, other, setting.takes[other].len());
                }
            }
            all.push(next.go_on(setting));
        }
        all
    }
}

/// Returns all states reachable from three dirty vertices, each with its successors.
fn explored(setting: &Setting) -> BTreeMap<State, Vec<State>> {
    let first = State { phases: [Phase::Dirty; 3], ..State::default() }.go_on(setting);
    let mut all = BTreeMap::new();
    let mut left = vec![first];
    while let Some(state) = left.pop() {
        let Entry::Vacant(entry) = all.entry(state) else { continue };
        let next = entry.key().next(setting);
        left.extend(next.iter().cloned());
        entry.insert(next);
    }
    all
}

/// Returns true if a vertex waits for a semaphore, and nothing runs.
fn is_deadlock(state: &State) -> bool {
    let runs = state.phases.iter().any(|phase| matches!(phase, Phase::Running(_)));
    !runs && state.phases.iter().any(|phase| matches!(phase, Phase::Taking(_)))
}

/// Returns true if an infinite path exists on which the vertex always waits for semaphores.
fn can_starve(all: &BTreeMap<State, Vec<State>>, vertex: usize) -> bool {
    let waits = |state: &State| matches!(state.phases[vertex], Phase::Taking(_));
    let mut left: BTreeSet<&State> = all.keys().filter(|state| waits(state)).collect();
    loop {
        let goes_on = |state: &&State| all[*state].iter().any(|next| left.contains(next));
        let kept: BTreeSet<&State> = left.iter().copied().filter(|state| goes_on(state)).collect();
        if kept.len() == left.len() {
            return !kept.is_empty();
        }
        left = kept;
    }
}

/// Returns every graph of three vertices, with every set of two semaphores for each, and counts of 1 and 2.
fn settings(releases: bool, moves: bool) -> Vec<Setting> {
    const TAKES: [&[usize]; 4] = [&[], &[0], &[1], &[0, 1]];
    const ABOVE_SECOND: [&[usize]; 2] = [&[], &[0]];
    const ABOVE_THIRD: [&[usize]; 4] = [&[], &[0], &[1], &[0, 1]];
    let mut all = Vec::new();
    for number in 0..512 {
        let takes = [TAKES[number & 3], TAKES[number >> 2 & 3], TAKES[number >> 4 & 3]];
        let parents = [&[] as &[usize], ABOVE_SECOND[number >> 6 & 1], ABOVE_THIRD[number >> 7]];
        for counts in [[1, 1], [1, 2], [2, 2]] {
            all.push(Setting { parents, takes, counts, releases, moves, serves_last: false });
        }
    }
    all
}

/// C1: if no vertex becomes dirty again, the ascending order alone prevents deadlocks.
#[test]
fn c1_ascending_order_does_not_deadlock() {
    for setting in settings(false, false) {
        assert!(!explored(&setting).keys().any(is_deadlock));
    }
}

/// C2: if ancestors become dirty again, the ascending order alone deadlocks: A before B, both need x, B also y.
#[test]
fn c2_ascending_order_deadlocks_over_a_graph() {
    let setting = Setting {
        parents: [&[], &[0], &[]],
        takes: [&[0], &[0, 1], &[1]],
        counts: [1, 1],
        releases: false,
        moves: true,
        serves_last: false,
    };
    assert!(explored(&setting).keys().any(is_deadlock));
    let deadlocked =
        settings(false, true).iter().filter(|it| explored(it).keys().any(is_deadlock)).count();
    assert!(deadlocked > 1, "{deadlocked}");
}

/// C2: a vertex that releases all semaphores when an ancestor becomes dirty is never part of a deadlock.
#[test]
fn c2_with_release_it_does_not() {
    for setting in settings(true, true) {
        assert!(!explored(&setting).keys().any(is_deadlock));
    }
}

/// C3: with first come, first served, no vertex waits for ever, whatever becomes dirty again.
#[test]
fn c3_nobody_starves() {
    for setting in settings(true, true) {
        let all = explored(&setting);
        for vertex in 0..3 {
            assert!(!can_starve(&all, vertex));
        }
    }
}

/// C3, the counter-example: last come, first served starves, and the model finds it.
#[test]
fn c3_last_come_first_served_starves() {
    let setting = Setting {
        parents: [&[]; 3],
        takes: [&[0]; 3],
        counts: [1, 1],
        releases: true,
        moves: true,
        serves_last: true,
    };
    assert!(can_starve(&explored(&setting), 1));
}
