//! The model: a state is a world, an action is a step, and the checker is stateright's breadth-first search.

use super::hashing;
use crate::generate::HOURS;
use crate::shape::Shape;
use crate::step::Step;
use crate::world::{Station, Watch, World};
use stateright::{Checker as _, Model, Property};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use steadfast_engine::{Mode, Outcome, Slots, Standing, Verdict, VertexId};

/// How often each kind of thing may happen in one history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    /// Change events of one vertex.
    pub(super) events: u8,
    /// Change events of all.
    pub(super) total_events: u8,
    pub(super) failures: u8,
    pub(super) pauses: u8,
    pub(super) crashes: u8,
    pub(super) swaps: u8,
    pub(super) one_slot: bool,
    /// Whether the pauses may be drains, too.
    pub(super) drains: bool,
}

/// What was seen on the way: a model in which nothing happens proves nothing.
pub(super) type Sights = BTreeSet<&'static str>;

impl Budget {
    pub(super) const NONE: Self = Self {
        events: 0,
        total_events: u8::MAX,
        failures: 0,
        pauses: 0,
        crashes: 0,
        swaps: 0,
        one_slot: false,
        drains: true,
    };

    /// Nothing is proven by what never happens.
    pub(super) fn must_have_seen(self, name: &str, seen: &Sights) {
        let wanted = [
            (true, CONVERGED),
            (self.events > 0, REFRESHED),
            (self.failures > 0, FAILED),
            (self.pauses > 0, PAUSED),
            (self.crashes > 0, CRASHED_OWING),
            (self.swaps > 0, SWAP_WAITED),
            (self.one_slot, WAITED_FOR_SLOT),
        ];
        for (due, what) in wanted {
            assert!(!due || seen.contains(what), "{name}: {what} was never seen");
        }
    }
}

const CONVERGED: &str = "convergence";
const REFRESHED: &str = "a refresh";
const FAILED: &str = "a failure for good";
const PAUSED: &str = "a pause";
const CRASHED_OWING: &str = "a crash that leaves a refresh owed";
const SWAP_WAITED: &str = "a swap that waits";
const WAITED_FOR_SLOT: &str = "a wait for a slot";

/// One state.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) world: World,
    pub(super) left: Budget,
    pub(super) events: Vec<u8>,
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hashing::hash(&self.world, state);
        self.left.hash(state);
        self.events.hash(state);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        hashing::fingerprint(self) == hashing::fingerprint(other)
    }
}

/// The checker wants to be able to run on threads.
#[expect(clippy::disallowed_types, reason = "the checker's, not the engine's")]
type Shared = Arc<std::sync::Mutex<Sights>>;

pub(super) struct Explorer {
    first: State,
    sights: Shared,
}

pub(super) struct Found {
    pub(super) states: usize,
    pub(super) sights: Sights,
}

impl Explorer {
    pub(super) fn new(shapes: &[Shape], budget: Budget) -> Self {
        let threads = if budget.one_slot { 1 } else { 8 };
        let slots = Slots { threads, commands: 8, spare: 0 };
        let mut world = World::new(shapes, slots, false);
        world.recording = false;
        world.step(&Step::Swap { graph: 0, operator: false });
        // Watches are established at once: their order is the random schedules' part.
        for vertex in &shapes[0].vertices {
            world.step(&Step::Watching(vertex.id));
        }
        let count = shapes.iter().flat_map(|s| &s.vertices).map(|v| v.id.0 + 1).max().unwrap_or(0);
        let events = vec![budget.events; count as usize];
        let first = State { world, left: budget, events };
        Self { first, sights: Arc::default() }
    }

    /// All of it; panics with the shortest way to whatever is wrong.
    pub(super) fn explore(self) -> Found {
        let sights = Arc::clone(&self.sights);
        let checker = self.checker().spawn_bfs().join();
        if let Some(path) = checker.discovery("every rule holds") {
            let last = path.last_state().clone();
            let steps: Vec<String> =
                path.into_actions().into_iter().map(|step| format!("{step:?}")).collect();
            let violations = last.world.oracle.books.violations.join("\n");
            panic!("{violations}\nafter:\n{}", steps.join("\n"));
        }
        let sights = sights.lock().expect("nobody died with it").clone();
        Found { states: checker.unique_state_count(), sights }
    }

    fn note(&self, state: &State) {
        let world = &state.world;
        let seen = [
            (world.engine.is_converged(), CONVERGED),
            (world.runs.values().any(|run| run.start.refresh), REFRESHED),
            (world.engine.counts().failed > 0, FAILED),
            (world.engine.mode() == Mode::Paused, PAUSED),
            (state.left.crashes == 0 && !world.oracle.books.debts.is_empty(), CRASHED_OWING),
            (world.oracle.books.pending.is_some(), SWAP_WAITED),
            (self.waits_for_slot(world), WAITED_FOR_SLOT),
        ];
        let mut sights = self.sights.lock().expect("nobody died with it");
        sights.extend(seen.iter().filter(|(was, _)| *was).map(|(_, what)| *what));
    }

    fn waits_for_slot(&self, world: &World) -> bool {
        self.first.left.one_slot
            && world
                .oracle
                .books
                .order
                .iter()
                .any(|id| matches!(world.engine.standing(*id), Some(Standing::WaitingForSlot)))
    }
}

impl Model for Explorer {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.first.clone()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        let world = &state.world;
        if !world.oracle.books.violations.is_empty() {
            return;
        }
        self.note(state);
        completions(state, actions);
        let left = &state.left;
        for id in world.oracle.books.order.iter().copied() {
            let events = state.events.get(id.0 as usize).copied().unwrap_or(0);
            let open = world.watches.get(&id) == Some(&Watch::Open);
            if events > 0 && left.total_events > 0 && open {
                actions.push(Step::Changed(id));
            }
        }
        if left.pauses > 0 && world.engine.mode() == Mode::Running {
            actions.push(Step::Pause { drain: false, length: HOURS });
            if left.drains {
                actions.push(Step::Pause { drain: true, length: HOURS });
            }
        }
        if matches!(world.engine.mode(), Mode::Draining | Mode::Pausing | Mode::Paused) {
            actions.push(Step::Resume);
        }
        if left.swaps > 0 {
            actions.push(Step::Swap { graph: 1, operator: false });
        }
        if left.crashes > 0 {
            actions.extend((0..=world.store.written.len()).map(|kept| Step::Crash { kept }));
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        spend(&mut next, &step);
        if !next.world.step(&step) {
            return None;
        }
        open_watches(&mut next.world);
        if next.world.oracle.books.violations.is_empty() && is_over(&next) {
            crate::invariants::at_the_end(&mut next.world);
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("every rule holds", |_, state: &State| {
            state.world.oracle.books.violations.is_empty()
        })]
    }
}

/// What is in flight comes back, well or badly.
fn completions(state: &State, actions: &mut Vec<Step>) {
    let world = &state.world;
    let fails = state.left.failures > 0;
    if !world.store.written.is_empty() {
        actions.push(Step::Commit);
    }
    for run in world.runs.values() {
        let id = run.start.vertex;
        match run.station {
            Station::Check => {
                actions.push(Step::Checked(id, Verdict::Same));
                actions.push(Step::Checked(id, Verdict::Differs));
                if fails {
                    actions.push(Step::Checked(id, Verdict::Unknown));
                }
            }
            Station::Begin => {}
            Station::Apply => {
                actions.push(Step::Ended(id, Outcome::Changed));
                if fails {
                    actions.push(Step::Ended(id, Outcome::Failed { touched: true }));
                }
            }
        }
    }
    // Retries are for the random schedules; here time passes for nothing else, and slots are not waited for so long.
}

fn spend(state: &mut State, step: &Step) {
    match step {
        Step::Changed(id) => {
            if let Some(left) = state.events.get_mut(id.0 as usize) {
                *left -= 1;
            }
            if state.left.total_events < u8::MAX {
                state.left.total_events -= 1;
            }
        }
        Step::Checked(_, Verdict::Unknown) | Step::Ended(_, Outcome::Failed { .. }) => {
            state.left.failures -= 1;
        }
        Step::Pause { .. } => state.left.pauses -= 1,
        Step::Swap { .. } => state.left.swaps -= 1,
        Step::Crash { .. } => state.left.crashes -= 1,
        _ => {}
    }
}

fn open_watches(world: &mut World) {
    let opening: Vec<VertexId> = world
        .watches
        .iter()
        .filter(|(_, watch)| **watch == Watch::Opening)
        .map(|(id, _)| *id)
        .collect();
    for id in opening {
        world.step(&Step::Watching(id));
    }
}

/// Nothing is in flight, and it runs.
fn is_over(state: &State) -> bool {
    let world = &state.world;
    let retries = world.engine.counts().delayed > 0;
    world.is_quiet() && world.engine.mode() == Mode::Running && !retries
}
