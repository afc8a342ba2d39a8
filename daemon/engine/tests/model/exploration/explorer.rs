//! The model: a state is a world, an action is a step, and the checker is stateright's depth-first search.

use crate::environment::{Run, Station, Watch, World};
use crate::generate::HOURS;
use crate::model::configurations::beginning::{drift, repair_limit, settle};
use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::{Configuration, WINDOW};
use crate::model::configurations::grouping::Grouping;
use crate::model::exploration::graph_of_states::Steps;
use crate::model::exploration::hashing;
use crate::model::exploration::rules;
use crate::model::exploration::sights::{self, Sights};
use crate::model::exploration::waiting::{
    is_at_rest, is_tick_next, is_waiting_for_time, next_tick,
};
use crate::model::{happening, planning, remaking};
use crate::schedule::Schedule;
use crate::shape::ms;
use crate::step::Step;
use stateright::{Checker as _, HasDiscoveries, Model, Property};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use steadfast_engine::{Mode, Outcome, RunPolicy, RunVerdict, Slots, VertexId};

/// One state, with the hash by which it is recognised.
#[derive(Clone, Debug)]
pub(in crate::model) struct State {
    pub(in crate::model) world: World,
    pub(in crate::model) left: Budget,
    pub(in crate::model) events: Vec<u8>,
    number: u64,
}

impl State {
    /// Returns the hash by which the state is recognised.
    pub(in crate::model) fn number(&self) -> u64 {
        self.number
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

/// The checker requires types that may be shared by threads.
#[expect(clippy::disallowed_types, reason = "the checker's, not the engine's")]
type Shared<T> = Arc<std::sync::Mutex<T>>;

/// More steps than any configuration has: a larger exploration does not end.
const MOST: usize = 20_000_000;
/// The largest number of entries that are written and not durable; then a commit comes first.
const WRITTEN: usize = 2;

pub(in crate::model) struct Explorer {
    first: State,
    /// The graphs as text lines, for the report of a failure.
    graphs: String,
    grouping: Option<Grouping>,
    sights: Shared<Sights>,
    steps: Shared<Steps>,
}

/// The coverage of one exploration.
#[derive(Default)]
pub(in crate::model) struct Found {
    pub(in crate::model) configurations: usize,
    pub(in crate::model) states: usize,
    pub(in crate::model) transitions: usize,
    pub(in crate::model) depth: usize,
    pub(in crate::model) sights: Sights,
}

impl Found {
    pub(in crate::model) fn add(&mut self, other: Self) {
        self.configurations += other.configurations;
        self.states += other.states;
        self.transitions += other.transitions;
        self.depth = self.depth.max(other.depth);
        self.sights.extend(other.sights);
    }
}

impl Explorer {
    pub(in crate::model) fn new(configuration: &Configuration) -> Self {
        let Configuration { shapes, budget, grouping } = configuration;
        let threads = if budget.one_slot { 1 } else { 8 };
        let slots = Slots { threads, commands: 8, replaceable: 0 };
        let mut world =
            World::new(shapes, slots, budget.plans).with_repair_limit(repair_limit(configuration));
        world.recording = false;
        world.step(&Step::Swap { graph: 0, operator: false });
        if !budget.watches {
            answer_watches(&mut world);
        }
        if budget.settled {
            settle(&mut world, None);
            for vertex in shapes.first().iter().flat_map(|shape| &shape.vertices) {
                drift(&mut world, vertex, budget.repaired);
            }
        }
        let count = shapes.iter().flat_map(|s| &s.vertices).map(|v| v.id.0 + 1).max().unwrap_or(0);
        let events = vec![budget.events; count as usize];
        let mut first = State { world, left: *budget, events, number: 0 };
        first.number = hashing::number(&first);
        let (one_shot, repair_limit, steps) =
            (budget.plans, repair_limit(configuration), Vec::new());
        let graphs =
            Schedule { slots, one_shot, repair_limit, shapes: shapes.clone(), steps }.to_text();
        let grouping = grouping.clone();
        Self { first, graphs, grouping, sights: Arc::default(), steps: Arc::default() }
    }

    /// Explores all states. Panics with the shortest path to a violation.
    pub(in crate::model) fn explore(self) -> Found {
        let (budget, graphs) = (self.first.left, self.graphs.clone());
        let found = self.explore_up_to(MOST);
        found.unwrap_or_else(|states| panic!("no end after {states}: {budget:?}\n{graphs}"))
    }

    /// Explores all states. Panics with the shortest path to a violation.
    ///
    /// # Errors
    ///
    /// Returns the number of states if the exploration does not end within `most` steps.
    pub(in crate::model) fn explore_up_to(self, most: usize) -> Result<Found, usize> {
        let (sights, steps) = (Arc::clone(&self.sights), Arc::clone(&self.steps));
        let first = self.first.clone();
        let (budget, graphs, grouping) = (first.left, self.graphs.clone(), self.grouping.clone());
        let any = HasDiscoveries::Any;
        // Depth first needs the least memory for pending states.
        let checker = self.checker().target_state_count(most).finish_when(any).spawn_dfs().join();
        if !checker.discoveries().is_empty() {
            let (sights, steps) = Default::default();
            Self { first, graphs, grouping, sights, steps }.fail_with_shortest_path();
        }
        let first = first.number;
        // States that were not explored for this reason would look like deadlocks.
        if checker.state_count() >= most {
            return Err(checker.unique_state_count());
        }
        let steps = std::mem::take(&mut *steps.lock().expect("nobody died with it"));
        let transitions = steps.len();
        let depth = match steps.longest_way(first) {
            Ok(depth) => depth,
            Err(wrong) => panic!("{wrong}: {budget:?}\n{graphs}"),
        };
        let sights = sights.lock().expect("nobody died with it").clone();
        let states = checker.unique_state_count();
        Ok(Found { configurations: 1, states, transitions, depth, sights })
    }

    /// Explores breadth first, so that the first violation found has the shortest path, and panics with that path.
    fn fail_with_shortest_path(self) -> ! {
        let (budget, graphs) = (self.first.left, self.graphs.clone());
        let any = HasDiscoveries::Any;
        let checker = self.checker().finish_when(any).spawn_bfs().join();
        let Some((rule, path)) = checker.discoveries().into_iter().next() else {
            panic!("found depth first, and not breadth first: {budget:?}\n{graphs}");
        };
        let last = path.last_state().clone();
        let way: Vec<String> =
            path.into_actions().into_iter().map(|step| format!("{step:?}")).collect();
        let violations = last.world.oracle.books.violations.join("\n");
        panic!("{rule}\n{violations}\nafter:\n{}\n{budget:?}\n{graphs}", way.join("\n"));
    }

    /// Returns the situations seen so far.
    pub(in crate::model) fn sights(&self) -> Sights {
        self.sights.lock().expect("nobody died with it").clone()
    }

    /// Returns the graphs as text.
    pub(in crate::model) fn to_text(&self) -> String {
        self.graphs.clone()
    }

    fn see(&self, what: &'static str) {
        self.sights.lock().expect("nobody died with it").insert(what);
    }

    fn note(&self, state: &State) {
        let swapped = self.first.left.swaps > 0 && state.left.swaps == 0;
        let swapped = swapped && state.world.graphs.len() > 1 && runs_the_second(&state.world);
        sights::note(state, swapped, &mut self.sights.lock().expect("nobody died with it"));
    }
}

fn runs_the_second(world: &World) -> bool {
    let second = world.graphs.get(1).map(|(graph, _)| graph);
    world.running.as_ref() == second
}

impl Model for Explorer {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.first.clone()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        if !state.world.oracle.books.violations.is_empty() {
            return;
        }
        self.note(state);
        if state.world.store.written.len() > WRITTEN {
            actions.push(Step::Commit);
        } else if !state.world.stopped {
            completions(state, actions);
            foreign(state, actions);
            happening::offer(state, actions);
            remaking::offer(state, actions);
            planning::offer(state, actions);
            turns(state, actions);
            time(state, actions);
        }
        if state.left.crashes > 0 {
            let written = state.world.store.written.len();
            actions.extend((0..=written).map(|kept| Step::Crash { kept }));
        }
        let may_end = is_at_rest(state) || state.world.stopped;
        if actions.is_empty() && may_end {
            self.steps.lock().expect("nobody died with it").ends(state.number);
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        let tick = is_tick_next(&state.world) || !is_waiting_for_time(state);
        next.left.spend(&step, tick);
        if let Step::Changed(id) = step {
            next.events[id.0 as usize] -= 1;
        }
        if !next.world.step(&step) {
            return None;
        }
        if !self.first.left.watches {
            answer_watches(&mut next.world);
        }
        {
            let mut sights = self.sights.lock().expect("nobody died with it");
            sights::between(&state.world, &next.world, &mut sights);
            let restarted = state.left.crashes < self.first.left.crashes;
            sights::turn(&state.world, &step, restarted, &mut sights);
            happening::see(&state.world, &step, &next.world, &mut sights);
            planning::see(&state.world, &step, &next.world, &mut sights);
            let spent = next.left.remakes < self.first.left.remakes;
            remaking::see(&state.world, &step, &next.world, spent, &mut sights);
        }
        if matches!(step, Step::Crash { .. }) && !next.world.oracle.books.debts.is_empty() {
            self.see(sights::OWING);
        }
        if next.left.total_events == 0 {
            next.events.fill(0);
        }
        if let Some(grouping) = &self.grouping {
            grouping.check(&state.world, &mut next.world, &step);
        }
        if next.world.oracle.books.violations.is_empty() && is_at_rest(&next) {
            let tick = next_tick(&next.world);
            crate::invariants::at_the_end(&mut next.world, tick);
        }
        next.number = hashing::number(&next);
        self.steps.lock().expect("nobody died with it").add(state.number, next.number);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules::properties()
    }
}

pub(in crate::model) fn can_be_same(world: &World, id: VertexId) -> bool {
    let vertex = world.oracle.books.vertices.get(&id);
    vertex.is_none_or(|vertex| vertex.declared.traits.repeat == RunPolicy::State)
}

/// Offers the completion of operations in flight, with each outcome.
fn completions(state: &State, actions: &mut Vec<Step>) {
    let world = &state.world;
    if !world.store.written.is_empty() {
        actions.push(Step::Commit);
    }
    for run in world.runs.values() {
        answers(state, run, actions);
    }
    if state.left.watches {
        for (id, _) in world.watches.iter().filter(|(_, watch)| **watch == Watch::Opening) {
            actions.extend([Step::Watching(*id), Step::Unwatched(*id)]);
        }
    }
}

fn answers(state: &State, run: &Run, actions: &mut Vec<Step>) {
    let id = run.start.vertex;
    let fails = state.left.failures > 0;
    if run.cancelled {
        actions.push(Step::Ended(id, Outcome::Interrupted));
    }
    match run.station {
        Station::Check => {
            if can_be_same(&state.world, id) {
                actions.push(Step::Checked(id, RunVerdict::Same));
            }
            actions.push(Step::Checked(id, RunVerdict::Differs));
            if fails {
                actions.push(Step::Checked(id, RunVerdict::Unknown));
            }
        }
        Station::Begin => {}
        Station::Apply => {
            actions.push(Step::Ended(id, Outcome::Changed));
            if fails {
                actions.push(Step::Ended(id, Outcome::Failed { touched: true }));
            }
            if state.left.thorough {
                actions.push(Step::Ended(id, Outcome::Unchanged));
            }
            if fails && state.left.thorough {
                actions.push(Step::Ended(id, Outcome::Failed { touched: false }));
            }
        }
    }
}

/// Offers the actions of other parties.
fn foreign(state: &State, actions: &mut Vec<Step>) {
    let world = &state.world;
    for id in world.oracle.books.order.iter().copied() {
        let events = state.events.get(id.0 as usize).copied().unwrap_or(0);
        let heard = world.watches.get(&id) == Some(&Watch::Open) && !world.muted.contains(&id);
        if events > 0 && heard {
            actions.push(Step::Changed(id));
        }
        if state.left.values > 0 {
            actions.push(Step::Received(id));
        }
        if state.left.looks > 0 {
            actions.push(Step::Look(id));
        }
    }
}

/// Offers pause, resume, stop and swap.
fn turns(state: &State, actions: &mut Vec<Step>) {
    let left = &state.left;
    let mode = state.world.engine.mode();
    if left.pauses > 0 && mode == Mode::Running {
        let length = if left.lapses { happening::SHORT } else { HOURS };
        actions.push(Step::Pause { drain: false, length });
        actions.push(Step::Pause { drain: true, length });
    }
    if matches!(mode, Mode::Draining | Mode::Pausing | Mode::Paused) {
        actions.push(Step::Resume);
    }
    if left.stops > 0 && mode != Mode::Stopping {
        actions.push(Step::Stop { grace: ms(1000) });
    }
    if left.toggles > 0 {
        let open = !state.world.open.contains(&WINDOW);
        actions.push(Step::Window { window: WINDOW.0, open });
    }
    if left.swaps > 0 {
        actions.push(Step::Swap { graph: 1, operator: false });
        if left.thorough {
            actions.push(Step::Swap { graph: 1, operator: true });
        }
    }
}

/// Offers the next moment at which something is due. The moment is free if nothing else can happen.
fn time(state: &State, actions: &mut Vec<Step>) {
    let engine = &state.world.engine;
    let mode = engine.mode();
    let free = is_waiting_for_time(state) && !is_tick_next(&state.world);
    let due = free || state.left.timed && state.left.ticks > 0;
    let passes = mode != Mode::Paused || state.left.lapses;
    if due && passes && engine.next_wakeup().is_some() {
        actions.push(Step::Wake);
    }
}

fn answer_watches(world: &mut World) {
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
