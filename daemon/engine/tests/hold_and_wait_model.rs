//! The classic way to take several semaphores (ascending order, hold and wait), which the engine does not use, as a small model of
//! its own: the steps C1 to C3 of docs/semaphores.md, over every order of ends and changes.
//!
//! Each vertex takes its semaphores one by one in ascending order; each semaphore serves first come, first served. A run that is in
//! progress is passed by at most two ends of others before its own (A2). An ancestor may become dirty at any time.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// How often another run may end before one that is in progress.
const PATIENCE: u8 = 2;

/// Who depends on whom, who takes what (ascending), and how many may hold each.
struct Setting {
    parents: [&'static [usize]; 3],
    takes: [&'static [usize]; 3],
    counts: [usize; 2],
    /// Whether a vertex whose ancestor becomes dirty gives back all it holds.
    releases: bool,
    /// Whether what was right may become dirty.
    moves: bool,
    /// Whether a semaphore serves who came last, and not who came first.
    serves_last: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Clean,
    /// Not yet taking: an ancestor is in its way.
    Dirty,
    /// It holds so many, and waits for the next.
    Taking(usize),
    /// It holds all, and so many others have ended since.
    Running(u8),
}

impl Phase {
    /// One more of the others has ended.
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
    /// Who waits for each semaphore, in order.
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

    /// Everything that follows by itself: who may begin to take, takes; who is first where there is room, is served.
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

    /// Where there is room, the first in the queue takes it.
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

    /// It holds so many, and queues for the next, or begins. Who holds all and must wait for an ancestor, holds and waits.
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

    /// Every end of a run, and everything that becomes dirty.
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
                // Who held all and waited for an ancestor only.
                if next.phases[other] == Phase::Taking(setting.takes[other].len()) {
                    next.take(setting, other, setting.takes[other].len());
                }
            }
            all.push(next.go_on(setting));
        }
        all
    }
}

/// All states from where all three are dirty, each with those that follow.
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

/// Somebody waits for a semaphore, and nothing runs.
fn is_deadlock(state: &State) -> bool {
    let runs = state.phases.iter().any(|phase| matches!(phase, Phase::Running(_)));
    !runs && state.phases.iter().any(|phase| matches!(phase, Phase::Taking(_)))
}

/// Whether there is an endless way on which that vertex waits for semaphores all the time.
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

/// Every graph of three vertices, everything each may take of two semaphores, and counts of 1 and 2.
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

/// C1: nobody becomes dirty again: no deadlock, by ascending order alone.
#[test]
fn c1_ascending_order_does_not_deadlock() {
    for setting in settings(false, false) {
        assert!(!explored(&setting).keys().any(is_deadlock));
    }
}

/// C2: where ancestors become dirty again, ascending order alone deadlocks: A before B, both need x, B also y.
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

/// C2: who gives back all it holds when an ancestor becomes dirty is never part of a deadlock.
#[test]
fn c2_with_release_it_does_not() {
    for setting in settings(true, true) {
        assert!(!explored(&setting).keys().any(is_deadlock));
    }
}

/// C3: first come, first served, nobody waits for ever, whatever becomes dirty again below or beside it.
#[test]
fn c3_nobody_starves() {
    for setting in settings(true, true) {
        let all = explored(&setting);
        for vertex in 0..3 {
            assert!(!can_starve(&all, vertex));
        }
    }
}

/// C3, the other way: last come, first served starves, and is found out.
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
