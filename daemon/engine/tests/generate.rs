//! Generation of schedules from a tape of random numbers, and the completion of all work after them.

use crate::environment::{Run, Station, Watch, World};
use crate::schedule::Schedule;
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use std::time::Duration;
use steadfast_engine::{
    Conflict, ExecutorKind, Mode, OnInterrupt, Outcome, Pace, Poll, RunPolicy, RunVerdict, Slots,
    VertexId, WindowId,
};

/// A tape of random numbers; zeros after its end.
pub(crate) struct Tape<'a> {
    numbers: std::slice::Iter<'a, u16>,
}

impl<'a> Tape<'a> {
    pub(crate) fn new(numbers: &'a [u16]) -> Self {
        Self { numbers: numbers.iter() }
    }

    fn is_over(&self) -> bool {
        self.numbers.len() == 0
    }

    /// Returns a number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        let number = usize::from(self.numbers.next().copied().unwrap_or(0));
        if bound == 0 { 0 } else { number % bound }
    }

    /// Returns true with this probability in percent.
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) + percent >= 100
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let at = self.below(from.len());
        from.get(at).cloned()
    }
}

/// Plays random steps over random graphs while drawing them.
pub(crate) fn play(numbers: &[u16]) -> (Schedule, World) {
    let tape = &mut Tape::new(numbers);
    let slots = Slots {
        threads: [64, 1, 2, 3][tape.below(4)],
        commands: [64, 1, 2][tape.below(3)],
        replaceable: [0, 1, 64][tape.below(3)],
    };
    let one_shot = tape.chance(8);
    let first = shape(tape);
    let mut shapes = vec![first];
    for _ in 0..tape.below(3) {
        let other = altered(tape, &shapes[0]);
        shapes.push(other);
    }
    let repair_limit = [None, None, None, Some(2)][tape.below(4)];
    // An adversary that undoes one vertex again and again, in every second schedule.
    let adversary = tape.chance(50).then(|| shapes[0].vertices[0].id);
    let mut world = World::new(&shapes, slots, one_shot).with_repair_limit(repair_limit);
    let mut schedule = Schedule { slots, one_shot, repair_limit, shapes, steps: Vec::new() };
    take(&mut world, &mut schedule, Step::Swap { graph: 0, operator: false });
    while !tape.is_over() && world.oracle.books.violations.is_empty() {
        let Some(step) = step(tape, &world, adversary) else { continue };
        take(&mut world, &mut schedule, step);
    }
    if world.oracle.books.violations.is_empty() {
        come_to_rest(&mut world);
    }
    (schedule, world)
}

/// Plays a plan over a random graph: nothing is applied, and findings are made uncertain now and then.
pub(crate) fn play_plan(numbers: &[u16]) -> (Schedule, World) {
    let tape = &mut Tape::new(numbers);
    let slots = Slots { threads: [64, 1, 2][tape.below(3)], commands: 64, replaceable: 64 };
    let mut shape = shape(tape).all(|meta| (meta.noop, meta.planned) = (true, true));
    for number in 0..u32::try_from(shape.vertices.len()).expect("small") {
        // In noop by its own declaration: no apply would change it.
        shape =
            if tape.chance(15) { shape.meta(number, |meta| meta.planned = false) } else { shape };
    }
    let shapes = vec![shape];
    let mut world = World::new(&shapes, slots, true);
    let mut schedule =
        Schedule { slots, one_shot: true, repair_limit: None, shapes, steps: Vec::new() };
    take(&mut world, &mut schedule, Step::Swap { graph: 0, operator: true });
    while !tape.is_over() && world.oracle.books.violations.is_empty() {
        let Some(step) = plan_step(tape, &world) else { continue };
        take(&mut world, &mut schedule, step);
    }
    if world.oracle.books.violations.is_empty() {
        come_to_rest(&mut world);
    }
    (schedule, world)
}

fn plan_step(tape: &mut Tape<'_>, world: &World) -> Option<Step> {
    let ids = world.running.as_ref().map(|graph| graph.order().to_vec()).unwrap_or_default();
    Some(match tape.below(100) {
        0..70 if !world.runs.is_empty() => completion(tape, world)?,
        0..90 => Step::Doubt { vertex: tape.pick(&ids)?, until: tape.pick(&ids)? },
        90..94 => Step::Wake,
        94 => Step::Wait(ms(1000)),
        95 => Step::Window { window: 0, open: !world.open.contains(&WindowId(0)) },
        96 if tape.chance(10) => Step::Stop { grace: ms(1000) },
        _ => completion(tape, world)?,
    })
}

fn take(world: &mut World, schedule: &mut Schedule, step: Step) {
    schedule.steps.push(step);
    world.step(&step);
}

fn shape(tape: &mut Tape<'_>) -> Shape {
    let most = [3, 4, 6, 12][tape.below(4)];
    let count = 1 + u32::try_from(tape.below(most)).expect("small");
    let mut shape = Shape::of(count);
    for _ in 0..tape.below(3) {
        shape = shape.semaphore([1, 1, 2][tape.below(3)]);
    }
    let density = [10, 30, 60][tape.below(3)];
    for to in 1..count {
        for from in 0..to {
            if tape.chance(density) {
                let notify = tape.chance(50);
                shape = if notify { shape.notify(from, to) } else { shape.edge(from, to) };
            }
        }
    }
    let wild = tape.below(4);
    for number in 0..count {
        if tape.below(4) < wild {
            shape = season(tape, shape, number);
        }
    }
    shape
}

/// Gives one vertex random metaparams and a traits.
fn season(tape: &mut Tape<'_>, mut shape: Shape, number: u32) -> Shape {
    for _ in 0..=tape.below(2) {
        let semaphores = u32::try_from(shape.semaphores.len()).expect("small");
        let amount = tape.below(4);
        shape = match tape.below(16) {
            13 => shape.meta(number, |meta| {
                meta.on_conflict = [Conflict::Win, Conflict::Yield][amount % 2];
            }),
            14 => shape.meta(number, |meta| meta.window = Some(WindowId(0))),
            15 => shape.meta(number, |meta| meta.realize = true),
            0 => shape.meta(number, |meta| meta.noop = true),
            1 => shape.meta(number, |meta| meta.retry = [Some(1), Some(2), None, Some(0)][amount]),
            2 => shape.meta(number, |meta| meta.retryreset = false),
            3 => shape.meta(number, |meta| {
                meta.delay = ms([0, 200, 1000, 50][amount]);
                meta.delay_max = ms([60_000, 400, 500, 50][amount]);
            }),
            4 => {
                shape.meta(number, |meta| meta.timeout = Some(ms([100, 500, 2000, 20_000][amount])))
            }
            5 => shape
                .meta(number, |meta| meta.poll = Poll::Every(ms([200, 1000, 500, 60_000][amount]))),
            6 => shape.meta(number, |meta| {
                let period_ns = [1_000_000_000, 100_000_000, 333_333_333, 1][amount];
                meta.pace = Some(Pace { period_ns, burst: [1, 2, 3, 1][amount] });
            }),
            7 | 8 if semaphores > 0 => {
                let semaphore = u32::try_from(amount).expect("small") % semaphores;
                let has = shape.vertices[number as usize]
                    .meta
                    .semaphores
                    .iter()
                    .any(|s| s.0 >= semaphore);
                if has { shape } else { shape.uses(number, semaphore) }
            }
            9 => shape.traits(number, |traits| traits.executor = ExecutorKind::Command),
            10 => shape.traits(number, |traits| {
                traits.repeat =
                    [RunPolicy::Once, RunPolicy::EachStart, RunPolicy::Events, RunPolicy::Once]
                        [amount];
                if traits.repeat == RunPolicy::Once {
                    traits.on_interrupt = [
                        OnInterrupt::Again,
                        OnInterrupt::Again,
                        OnInterrupt::Skip,
                        OnInterrupt::Wait,
                    ][amount];
                }
            }),
            11 => shape.traits(number, |traits| traits.cancellable = false),
            12 => shape
                .meta(number, |meta| meta.reset = amount.is_multiple_of(2))
                .traits(number, |traits| traits.failure_blocks = amount.is_multiple_of(2)),
            _ => shape,
        };
    }
    shape
}

/// Returns another graph over the same identities.
fn altered(tape: &mut Tape<'_>, from: &Shape) -> Shape {
    let mut shape = from.clone();
    for _ in 0..=tape.below(3) {
        let numbers: Vec<u32> = shape.vertices.iter().map(|vertex| vertex.id.0).collect();
        let Some(number) = tape.pick(&numbers) else { return shape };
        let edge = tape.below(shape.edges.len().max(1));
        shape = match tape.below(7) {
            6 => shape.meta(number, |meta| meta.delay = ms(700)),
            0 => shape.without(number),
            1 => shape.define(number, 2),
            2 => shape.meta(number, |meta| meta.noop = !meta.noop),
            3 if edge < shape.edges.len() => {
                shape.edges.remove(edge);
                shape
            }
            4 => match numbers.iter().find(|other| **other > number) {
                Some(other) => shape.notify(number, *other),
                None => shape,
            },
            5 if !shape.semaphores.is_empty() => {
                shape.semaphores[0] = 3 - shape.semaphores[0].min(2);
                shape
            }
            _ => shape,
        };
    }
    shape
}

fn step(tape: &mut Tape<'_>, world: &World, adversary: Option<VertexId>) -> Option<Step> {
    if let Some(victim) = adversary.filter(|_| tape.chance(40)) {
        return Some(undo(tape, world, victim));
    }
    let ids: Vec<VertexId> =
        world.running.as_ref().map(|graph| graph.order().to_vec()).unwrap_or_default();
    let graphs = world.graphs.len();
    let length = [0, 1, 50, 100, 200, 1000, 11_000, 31_000][tape.below(8)];
    Some(match tape.below(100) {
        0..62 => completion(tape, world)?,
        62..73 => Step::Changed(tape.pick(&ids)?),
        73..75 => Step::Suspect(tape.pick(&ids)?),
        75 | 76 => Step::Look(tape.pick(&ids)?),
        77 => Step::Remade(tape.pick(&checked(world))?),
        78..80 => Step::RetryNow(tape.pick(&ids)?),
        80..82 => Step::Received(tape.pick(&ids)?),
        82..86 => Step::Wake,
        86..88 => Step::Wait(ms(length)),
        88 => Step::Lag(ms(length)),
        89 | 90 => Step::Pause { drain: length % 3 == 0, length: ms(1 + length * 100) },
        91 | 92 => Step::Resume,
        93 if tape.chance(50) => {
            Step::Window { window: 0, open: !world.open.contains(&WindowId(0)) }
        }
        93 if tape.chance(50) => {
            let vertex = tape.pick(&ids)?;
            Step::PauseVertex {
                vertex,
                paused: !world.oracle.books.paused_vertices.contains(&vertex),
            }
        }
        93..96 => Step::Swap { graph: tape.below(graphs), operator: tape.chance(30) },
        96 | 97 => Step::Crash { kept: tape.below(world.store.written.len() + 1) },
        98 if tape.chance(30) => Step::Stop { grace: ms(length) },
        _ => Step::Refuse,
    })
}

/// Returns the vertices whose check is in progress.
fn checked(world: &World) -> Vec<VertexId> {
    let checks = world.runs.values().filter(|run| run.station == Station::Check);
    checks.map(|run| run.start.vertex).collect()
}

/// Returns the adversary's next step: wait until the repair is over, and undo it.
fn undo(tape: &mut Tape<'_>, world: &World, victim: VertexId) -> Step {
    match world.in_progress(victim) {
        Some((_, run)) if run.station == Station::Check && tape.chance(20) => Step::Remade(victim),
        Some((_, run)) if run.station == Station::Check => {
            Step::Checked(victim, RunVerdict::Differs)
        }
        Some((_, run)) if run.station == Station::Apply => Step::Ended(victim, Outcome::Changed),
        Some(_) => Step::Commit,
        None if tape.chance(30) => Step::Wake,
        None => Step::Changed(victim),
    }
}

/// Returns the completion of one operation in flight, chosen at random.
fn completion(tape: &mut Tape<'_>, world: &World) -> Option<Step> {
    let mut all: Vec<Step> = Vec::new();
    if !world.store.written.is_empty() {
        all.push(Step::Commit);
        all.push(Step::Commit);
    }
    for (id, watch) in &world.watches {
        if *watch == Watch::Opening {
            let absent = tape.chance(10);
            all.push(if absent { Step::Unwatched(*id) } else { Step::Watching(*id) });
        }
    }
    let runs: Vec<Run> = world.runs.values().copied().collect();
    for run in runs {
        all.extend(answer(tape, world, run));
    }
    tape.pick(&all)
}

fn check_of(world: &World, id: VertexId) -> RunPolicy {
    let graph = world.running.as_ref();
    graph
        .and_then(|graph| graph.vertices().find(|vertex| vertex.id == id))
        .map_or(RunPolicy::State, |vertex| vertex.traits.repeat)
}

fn answer(tape: &mut Tape<'_>, world: &World, run: Run) -> Option<Step> {
    let id = run.start.vertex;
    let state = check_of(world, id) == RunPolicy::State;
    if run.cancelled && tape.chance(70) {
        return Some(Step::Ended(id, Outcome::Interrupted));
    }
    match run.station {
        Station::Check => Some(Step::Checked(
            id,
            match tape.below(10) {
                0 => RunVerdict::Unknown,
                1..5 if state => RunVerdict::Same,
                _ => RunVerdict::Differs,
            },
        )),
        Station::Begin => None,
        Station::Apply => Some(Step::Ended(
            id,
            match tape.below(10) {
                0 => Outcome::Failed { touched: true },
                1 => Outcome::Failed { touched: false },
                2 => Outcome::Unchanged,
                _ => Outcome::Changed,
            },
        )),
    }
}

/// Lets everything succeed from here on: no work may be lost, and the engine must come to rest.
pub(crate) fn come_to_rest(world: &mut World) {
    for _ in 0..3000 {
        if !world.oracle.books.violations.is_empty() || world.stopped {
            return;
        }
        let Some(step) = restful(world) else {
            crate::invariants::at_the_end(world, None);
            return;
        };
        world.step(&step);
    }
    world.oracle.violated("a bound on steps: it does not come to rest");
}

/// Returns true for a polled vertex, which must be found converged at last so that the world comes to rest.
fn is_polled(world: &World, id: VertexId) -> bool {
    let graph = world.running.as_ref();
    graph
        .and_then(|graph| graph.vertices().find(|vertex| vertex.id == id))
        .is_some_and(|vertex| vertex.meta.poll != Poll::Never)
}

fn restful(world: &World) -> Option<Step> {
    if let Some((id, _)) = world.watches.iter().find(|(_, watch)| **watch == Watch::Opening) {
        return Some(Step::Watching(*id));
    }
    if !world.store.written.is_empty() {
        return Some(Step::Commit);
    }
    for run in world.runs.values() {
        let id = run.start.vertex;
        if run.cancelled {
            return Some(Step::Ended(id, Outcome::Interrupted));
        }
        let odd = run.start.run.0 % 2 == 1;
        let differs = !is_polled(world, id) && (check_of(world, id) != RunPolicy::State || odd);
        match run.station {
            Station::Check if differs => return Some(Step::Checked(id, RunVerdict::Differs)),
            Station::Check => return Some(Step::Checked(id, RunVerdict::Same)),
            Station::Begin => {}
            Station::Apply => return Some(Step::Ended(id, Outcome::Changed)),
        }
    }
    match world.engine.mode() {
        Mode::Running => {}
        Mode::Draining | Mode::Pausing | Mode::Paused => return Some(Step::Resume),
        Mode::Stopping => return Some(Step::Wake),
        Mode::Stopped => return None,
    }
    if !world.open.contains(&WindowId(0)) {
        return Some(Step::Window { window: 0, open: true });
    }
    if let Some(vertex) = world.oracle.books.paused_vertices.first().copied() {
        return Some(Step::PauseVertex { vertex, paused: false });
    }
    let order = world.running.as_ref().map(|graph| graph.order().to_vec()).unwrap_or_default();
    order.iter().any(|id| world.waits_for_time(*id)).then_some(Step::Wake)
}

/// Shrinks a failing schedule as far as possible.
pub(crate) fn smallest(mut schedule: Schedule, fails: &dyn Fn(&Schedule) -> bool) -> Schedule {
    let mut width = schedule.steps.len().max(1) / 2;
    loop {
        width = width.max(1);
        let before = schedule.clone();
        let mut at = 0;
        while at < schedule.steps.len() {
            let mut less = schedule.clone();
            less.steps.drain(at..(at + width).min(less.steps.len()));
            if fails(&less) {
                schedule = less;
            } else {
                at += width;
            }
        }
        if width == 1 {
            schedule = plainer(schedule, fails);
            if schedule == before {
                return schedule;
            }
        }
        width /= 2;
    }
}

/// A simplification of a schedule.
type Attempt = Box<dyn Fn(&mut Schedule)>;

fn plainer(mut schedule: Schedule, fails: &dyn Fn(&Schedule) -> bool) -> Schedule {
    let mut tries: Vec<Attempt> = Vec::new();
    for graph in 0..schedule.shapes.len() {
        for edge in (0..schedule.shapes[graph].edges.len()).rev() {
            tries.push(Box::new(move |s| {
                s.shapes[graph].edges.remove(edge);
            }));
        }
    }
    for number in 0..12 {
        tries.push(Box::new(move |s| {
            for shape in &mut s.shapes {
                *shape = shape.clone().without(number);
            }
        }));
        tries.push(Box::new(move |s| {
            for vertex in s.shapes.iter_mut().flat_map(|shape| &mut shape.vertices) {
                if vertex.id == v(number) {
                    vertex.meta = std::sync::Arc::default();
                }
            }
        }));
        tries.push(Box::new(move |s| {
            for vertex in s.shapes.iter_mut().flat_map(|shape| &mut shape.vertices) {
                if vertex.id == v(number) {
                    vertex.traits = steadfast_engine::Traits::default();
                }
            }
        }));
    }
    tries.push(Box::new(|s| s.slots = Slots { threads: 64, commands: 64, replaceable: 0 }));
    tries.push(Box::new(|s| s.one_shot = false));
    for attempt in tries {
        let mut less = schedule.clone();
        attempt(&mut less);
        if less != schedule && fails(&less) {
            schedule = less;
        }
    }
    schedule
}

/// The length of a pause where it does not matter.
pub(crate) const HOURS: Duration = Duration::from_hours(8);
