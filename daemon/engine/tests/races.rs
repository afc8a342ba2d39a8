//! known defects of other programs in nine years that must not occur here. Each test drives `handle` under
//! the oracle.

use crate::environment::World;
use crate::generate::HOURS;
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use steadfast_engine::{
    Action, Event, Graph, GraphError, Mode, Notice, Outcome, RunPolicy, RunVerdict, SemaphoreId,
    Slots, VertexId, VertexStatus,
};

const LOAD: Step = Step::Swap { graph: 0, operator: false };
const PAUSE: Step = Step::Pause { drain: false, length: HOURS };

/// Returns a world in which the first of these graphs has converged.
pub(crate) fn settled(shapes: &[Shape]) -> World {
    let mut world = World::new(shapes, Slots::default(), false);
    world.steps(&[LOAD]);
    for vertex in shapes[0].vertices.clone() {
        world.step(&Step::Watching(vertex.id));
    }
    until_quiet(&mut world, |world, id| world.steps(&[Step::Checked(id, RunVerdict::Same)]));
    world.starts.clear();
    world.told.clear();
    world
}

/// Completes all runs, one after the other, until none is left.
pub(crate) fn until_quiet(world: &mut World, answer: impl Fn(&mut World, VertexId)) {
    for _ in 0..10_000 {
        let Some(run) = world.runs.values().next().copied() else { return };
        answer(world, run.start.vertex);
    }
    panic!("E-5, a bound on steps: {} starts, and it goes on", world.starts.len());
}

/// Completes a check with a difference, and its apply with success.
pub(crate) fn repair(world: &mut World, number: u32) {
    world.steps(&[
        Step::Checked(v(number), RunVerdict::Differs),
        Step::Commit,
        Step::Ended(v(number), Outcome::Changed),
        Step::Commit,
    ]);
}

/// Completes one check with this verdict, without an apply.
pub(crate) fn check(world: &mut World, number: u32, verdict: RunVerdict) {
    world.steps(&[Step::Checked(v(number), verdict)]);
}

pub(crate) fn sound(world: &World) {
    let violations = &world.oracle.books.violations;
    assert!(violations.is_empty(), "{}\n{}", violations.join("\n"), world.log.join("\n"));
}

pub(crate) fn started(world: &World) -> Vec<u32> {
    world.starts.iter().map(|start| start.vertex.0).collect()
}

fn standing(world: &World, number: u32) -> VertexStatus {
    world.engine.vertex_status(v(number)).expect("a vertex of the graph")
}

fn has_told(world: &World, notice: &Notice) -> bool {
    world.told.contains(notice)
}

/// an event in flight at the start of a pause is a mark, and its back-poke is dropped.
#[test]
fn r01_an_event_that_meets_a_pause_is_a_mark() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::Changed(v(0)), PAUSE, Step::Changed(v(1)), Step::Commit]);
    assert!(!has_told(&world, &Notice::Paused), "v0 still runs");
    check(&mut world, 0, RunVerdict::Same);
    assert!(has_told(&world, &Notice::Paused));
    assert_eq!(started(&world), [0], "{}", world.log.join("\n"));
    world.steps(&[Step::Resume]);
    assert_eq!(started(&world), [0, 1]);
    sound(&world);
}

/// a late event of a descendant during the pause and the resume; the resume reaches every vertex anyway.
#[test]
fn r02_resume_reaches_every_vertex() {
    let mut world = settled(&[Shape::of(3).edge(0, 1).edge(1, 2)]);
    world.steps(&[
        PAUSE,
        Step::Commit,
        Step::Changed(v(2)),
        Step::Changed(v(0)),
        Step::Changed(v(1)),
    ]);
    assert_eq!(started(&world), [0; 0]);
    world.steps(&[Step::Resume]);
    check(&mut world, 0, RunVerdict::Same);
    check(&mut world, 1, RunVerdict::Same);
    check(&mut world, 2, RunVerdict::Same);
    assert_eq!(started(&world), [0, 1, 2]);
    assert!(world.engine.is_converged());
    sound(&world);
}

/// a vertex that waits for a parent holds no semaphore, and the counts come from the graph.
#[test]
fn r03_a_vertex_that_waits_for_a_parent_holds_no_semaphore() {
    let shape = Shape::of(3).edge(0, 1).semaphore(1).uses(0, 0).uses(1, 0).uses(2, 0);
    let mut world = settled(&[shape]);
    world.steps(&[Step::Changed(v(0)), Step::Changed(v(1)), Step::Changed(v(2))]);
    assert_eq!(started(&world), [0]);
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(started(&world), [0, 2], "v2 asked first, v1 held nothing while it waited for v0");
    check(&mut world, 2, RunVerdict::Same);
    check(&mut world, 1, RunVerdict::Same);
    sound(&world);
}

/// a vertex that failed for good delays neither the pause nor the stop.
#[test]
fn r04_failed_for_good_answers_pause_and_stop() {
    let mut world = settled(&[Shape::of(1)]);
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Unknown);
    assert_eq!(standing(&world, 0), VertexStatus::Failed);
    world.steps(&[PAUSE, Step::Commit]);
    assert!(has_told(&world, &Notice::Paused));
    world.steps(&[Step::Resume, Step::Commit, Step::Stop { grace: ms(30_000) }]);
    assert!(has_told(&world, &Notice::Stopped(vec![])));
    sound(&world);
}

/// waits for the limiter, a retry or a semaphore delay no pause; `retry: -1, delay: 0` does not spin.
#[test]
fn r05_waits_hold_up_no_pause() {
    let pace = steadfast_engine::Pace { period_ns: 1_000_000_000, burst: 1 };
    let shape = Shape::of(4)
        .semaphore(1)
        .uses(2, 0)
        .uses(3, 0)
        .meta(0, |meta| {
            meta.retry = None;
            meta.delay = ms(0);
        })
        .meta(1, |meta| meta.pace = Some(pace));
    let mut world = settled(&[shape]);
    for number in 0..4 {
        world.steps(&[Step::Changed(v(number))]);
    }
    assert_eq!(started(&world), [0, 2], "v1 waits for its limiter, v3 for the semaphore");
    check(&mut world, 0, RunVerdict::Unknown);
    let before = world.now;
    world.steps(&[PAUSE, Step::Commit]);
    assert_eq!(world.engine.mode(), Mode::Pausing);
    check(&mut world, 2, RunVerdict::Same);
    assert!(has_told(&world, &Notice::Paused), "only v2 ran");
    assert_eq!(world.now, before, "and no time had to pass");
    assert_eq!(started(&world), [0, 2]);
    world.steps(&[Step::Resume, Step::Wait(ms(99))]);
    assert!(!started(&world)[2..].contains(&0), "at least 100 ms before a retry");
    world.steps(&[Step::Wait(ms(1))]);
    assert!(started(&world)[2..].contains(&0));
    sound(&world);
}

/// being skipped because an ancestor blocks is neither a success nor a failure: no budget is refilled.
#[test]
fn r06_not_my_turn_is_no_success() {
    let shape = Shape::of(2).edge(0, 1).meta(0, |meta| meta.retry = Some(1));
    let mut world = settled(&[shape]);
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Unknown);
    world.steps(&[Step::Wake]);
    check(&mut world, 0, RunVerdict::Unknown);
    assert_eq!(standing(&world, 0), VertexStatus::Failed, "one run and one retry");
    world.steps(&[Step::Changed(v(1))]);
    assert_eq!(started(&world), [0, 0, 0], "the back-poke gives one attempt");
    check(&mut world, 0, RunVerdict::Unknown);
    assert_eq!(standing(&world, 0), VertexStatus::Failed, "and no new budget");
    assert_eq!(standing(&world, 1), VertexStatus::WaitingFor(vec![v(0)]));
    world.steps(&[Step::Wait(ms(60_000))]);
    assert_eq!(started(&world), [0, 0, 0], "nothing is tried for ever");
    sound(&world);
}

/// a swap alone refills no budget, and shortens no delay; an operator's reload refills it.
#[test]
fn r07_a_swap_refills_no_budget() {
    let shape = Shape::of(1).meta(0, |meta| meta.retry = Some(1));
    let other = Shape { vertices: Shape::of(2).vertices, ..shape.clone() };
    let other = other.meta(0, |meta| meta.retry = Some(1));
    let mut world = settled(&[shape, other]);
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Unknown);
    for graph in [1, 0, 1, 0] {
        world.steps(&[Step::Swap { graph, operator: false }]);
    }
    assert_eq!(started(&world), [0], "no swap shortens the delay");
    world.steps(&[Step::Wake]);
    check(&mut world, 0, RunVerdict::Unknown);
    assert_eq!(standing(&world, 0), VertexStatus::Failed);
    for graph in [1, 0, 1, 0] {
        world.steps(&[Step::Swap { graph, operator: false }]);
    }
    world.steps(&[Step::Wait(ms(100_000))]);
    assert_eq!(started(&world), [0, 0], "no swap is a new budget");
    world.steps(&[Step::Swap { graph: 0, operator: true }]);
    assert_eq!(started(&world), [0, 0, 0], "the operator's reload is");
    check(&mut world, 0, RunVerdict::Unknown);
    assert!(matches!(standing(&world, 0), VertexStatus::Delayed(_)), "with retries");
    sound(&world);
}

/// the dirty mark is cleared at the start of a run: events during the run cause exactly one further run.
#[test]
fn r08_an_event_during_a_run_is_not_swallowed() {
    let mut world = settled(&[Shape::of(1)]);
    world.steps(&[Step::Changed(v(0)), Step::Changed(v(0)), Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(started(&world), [0, 0]);
    assert!(!world.engine.is_converged());
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(started(&world), [0, 0]);
    assert!(world.engine.is_converged());
    sound(&world);
}

/// no check starts before the watch is established, or declared absent.
#[test]
fn r09_the_watch_is_established_first() {
    let mut world = World::new(&[Shape::of(2)], Slots::default(), false);
    world.steps(&[LOAD, Step::RetryNow(v(0)), Step::Look(v(0)), Step::Wait(ms(60_000))]);
    assert_eq!(started(&world), [0; 0]);
    assert_eq!(standing(&world, 0), VertexStatus::WaitingForWatch);
    world.steps(&[Step::Watching(v(0)), Step::Unwatched(v(1))]);
    assert_eq!(started(&world), [0, 1]);
    sound(&world);
}

/// a watch that is re-armed during a run makes the vertex dirty after the run.
#[test]
fn r10_a_rearmed_watch_is_looked_at_after_the_run() {
    let mut world = settled(&[Shape::of(1)]);
    world.steps(&[
        Step::Changed(v(0)),
        Step::Checked(v(0), RunVerdict::Differs),
        Step::Commit,
        Step::Suspect(v(0)),
        Step::Ended(v(0), Outcome::Changed),
    ]);
    assert_eq!(started(&world), [0, 0]);
    sound(&world);
}

/// a vertex that a swap adds during a pause is paused from the beginning.
#[test]
fn r11_a_swap_in_a_pause_starts_nothing() {
    let mut world = settled(&[Shape::of(1), Shape::of(3).define(0, 2).edge(0, 1)]);
    world.steps(&[PAUSE, Step::Commit, Step::Swap { graph: 1, operator: true }]);
    for number in 0..3 {
        world.steps(&[Step::Watching(v(number))]);
    }
    world.steps(&[Step::RetryNow(v(2)), Step::Look(v(1)), Step::Wait(ms(60_000))]);
    assert_eq!(started(&world), [0; 0]);
    world.steps(&[Step::Resume]);
    assert_eq!(started(&world).len(), 2, "v0 and v2; v1 waits for v0");
    sound(&world);
}

/// another value causes one run with a new budget, even during a run or after the last failure.
#[test]
fn r12_a_received_value_is_run_with() {
    let mut world = settled(&[Shape::of(1).meta(0, |meta| meta.retry = Some(1))]);
    world.steps(&[Step::Received(v(0)), Step::Received(v(0))]);
    check(&mut world, 0, RunVerdict::Unknown);
    world.steps(&[Step::Wake]);
    check(&mut world, 0, RunVerdict::Unknown);
    world.steps(&[Step::Wait(ms(600_000))]);
    assert!(matches!(standing(&world, 0), VertexStatus::Failed), "no retries are left");
    assert_eq!(started(&world), [0, 0], "what came during the first run is in the second");
    world.steps(&[Step::Received(v(0))]);
    assert_eq!(started(&world), [0, 0, 0]);
    check(&mut world, 0, RunVerdict::Unknown);
    assert!(matches!(standing(&world, 0), VertexStatus::Delayed(_)), "a new budget");
    sound(&world);
}

/// a failed run does not complete an owed refresh.
#[test]
fn r12_a_failed_run_pays_nothing() {
    let shape = Shape::of(2).notify(0, 1).meta(1, |meta| meta.retry = Some(5));
    let mut world = settled(&[shape]);
    world.steps(&[Step::Changed(v(0))]);
    repair(&mut world, 0);
    assert!(world.starts[1].refresh);
    check(&mut world, 1, RunVerdict::Unknown);
    check(&mut world, 0, RunVerdict::Same);
    world.steps(&[Step::Wake]);
    assert!(world.starts[3].refresh, "still owed after a check that failed");
    world.steps(&[
        Step::Checked(v(1), RunVerdict::Differs),
        Step::Commit,
        Step::Ended(v(1), Outcome::Failed { touched: true }),
        Step::Commit,
        Step::Checked(v(0), RunVerdict::Same),
        Step::Wake,
    ]);
    assert!(world.starts[5].refresh, "still owed after an apply that failed");
    repair(&mut world, 1);
    world.steps(&[Step::Changed(v(1))]);
    assert!(!world.starts[6].refresh, "paid once");
    sound(&world);
}

/// convergence is reported neither before the first run, nor with a failed vertex, and at the first possible
/// moment.
#[test]
fn r13_convergence_is_exact() {
    let mut world = World::new(&[Shape::of(2).edge(0, 1)], Slots::default(), false);
    world.steps(&[LOAD]);
    assert!(!world.engine.is_converged());
    world.steps(&[Step::Watching(v(0)), Step::Watching(v(1))]);
    check(&mut world, 0, RunVerdict::Unknown);
    world.steps(&[Step::Wait(ms(600_000))]);
    assert!(!has_told(&world, &Notice::Converged), "v0 has failed");
    world.steps(&[Step::RetryNow(v(0)), Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
    world.steps(&[Step::Ended(v(0), Outcome::Changed), Step::Checked(v(1), RunVerdict::Same)]);
    assert!(!has_told(&world, &Notice::Converged), "the end of v0 is not durable");
    world.steps(&[Step::Commit]);
    assert_eq!(world.told.last(), Some(&Notice::Converged));
    sound(&world);
}

/// a panic in one resource is a failed run with a name; the others continue. The driver's own tests cover the
/// catch.
#[test]
fn r14_a_failed_run_has_a_name_and_others_go_on() {
    let mut world = settled(&[Shape::of(2)]);
    world.steps(&[
        Step::Changed(v(0)),
        Step::Changed(v(1)),
        Step::Checked(v(0), RunVerdict::Differs),
    ]);
    world.steps(&[
        Step::Commit,
        Step::Ended(v(0), Outcome::Failed { touched: true }),
        Step::Commit,
    ]);
    assert!(has_told(&world, &Notice::Failed(v(0))));
    repair(&mut world, 1);
    assert_eq!(standing(&world, 1), VertexStatus::Settled);
    sound(&world);
}

/// a stop during a hung run: cancelled when the grace is over, left behind a second later; a second stop cancels
/// at once.
#[test]
fn r15_a_stop_has_a_deadline() {
    for second in [false, true] {
        let mut world = settled(&[Shape::of(1)]);
        world.steps(&[Step::Changed(v(0)), Step::Stop { grace: ms(30_000) }]);
        if second {
            world.steps(&[Step::Stop { grace: ms(0) }]);
        } else {
            world.steps(&[Step::Wait(ms(29_999))]);
            assert!(!world.runs.values().any(|run| run.cancelled));
            world.steps(&[Step::Wait(ms(1))]);
        }
        assert!(world.runs.values().all(|run| run.cancelled));
        assert!(!world.stopped);
        world.steps(&[Step::Wait(ms(1000))]);
        assert!(has_told(&world, &Notice::Stopped(vec![v(0)])));
        sound(&world);
    }
    // An interrupt before the first load has a reply too, and nothing is loaded after it.
    let mut world = World::new(&[Shape::of(1)], Slots::default(), false);
    world.steps(&[Step::Stop { grace: ms(30_000) }]);
    assert!(has_told(&world, &Notice::Stopped(vec![])));
    assert_eq!(world.engine.handle(world.now, Event::Wake), Vec::<Action>::new());
    sound(&world);
}

/// a cancelled command occupies its slot and its vertex until it has returned. The driver's tests cover process
/// groups.
#[test]
fn r16_a_cancelled_command_counts_until_it_returns() {
    let shape = Shape::of(2)
        .all(|meta| meta.timeout = Some(ms(500)))
        .traits(0, |traits| traits.executor = steadfast_engine::ExecutorKind::Command)
        .traits(1, |traits| traits.executor = steadfast_engine::ExecutorKind::Command);
    let slots = Slots { threads: 1, commands: 1, replaceable: 1 };
    let mut world = World::new(&[shape], slots, false);
    world.steps(&[LOAD, Step::Watching(v(0)), Step::Watching(v(1)), Step::Wait(ms(60_000))]);
    assert_eq!(started(&world), [0], "commands are not written off");
    assert!(matches!(standing(&world, 0), VertexStatus::Stuck(..)));
    world.steps(&[Step::Ended(v(0), Outcome::Interrupted)]);
    assert_eq!(started(&world), [0, 1]);
    sound(&world);
}

/// an invalid graph cannot be given to the engine, and a waiting swap leaves the old graph whole.
#[test]
fn r17_no_half_graph() {
    let wrong = Shape::of(2).edge(0, 1).edge(1, 0);
    let found = Graph::new(wrong.vertices, wrong.edges, vec![]);
    assert!(matches!(found, Err(GraphError::Cycle(path)) if path.len() == 2));

    let mut world = settled(&[Shape::of(3), Shape::of(2).define(0, 2)]);
    world.steps(&[Step::Changed(v(0)), Step::Swap { graph: 1, operator: true }]);
    assert!(has_told(&world, &Notice::SwapWaits(vec![v(0)])));
    world.steps(&[Step::Changed(v(1)), Step::Changed(v(2))]);
    assert_eq!(started(&world), [0, 1], "v1 goes on under the old graph, v2 will be removed");
    assert!(world.engine.vertex_status(v(2)).is_some());
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(world.engine.vertex_status(v(2)), None);
    let loaded = Notice::Loaded { added: 0, changed: 1, removed: 1, kept: 1 };
    assert!(has_told(&world, &loaded));
    sound(&world);
}

/// a vertex that fails, or leaves the graph, between pause and resume disturbs neither.
#[test]
fn r18_a_vertex_that_fails_or_leaves_in_a_pause_disturbs_no_resume() {
    let mut world = settled(&[Shape::of(3).edge(0, 1), Shape::of(3).edge(0, 1).without(2)]);
    world.steps(&[Step::Changed(v(0)), Step::Changed(v(2)), PAUSE, Step::Commit]);
    check(&mut world, 0, RunVerdict::Unknown);
    check(&mut world, 2, RunVerdict::Same);
    assert!(has_told(&world, &Notice::Paused));
    world.steps(&[Step::Changed(v(2)), Step::Swap { graph: 1, operator: false }, Step::Resume]);
    world.steps(&[Step::RetryNow(v(0))]);
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    assert_eq!(world.engine.vertex_status(v(2)), None);
    sound(&world);
}

/// W-11: a semaphore twice on one vertex, and a count of 0, are rejected.
#[test]
fn w11_one_semaphore_twice_is_refused() {
    let twice = Shape::of(1).semaphore(1).uses(0, 0).uses(0, 0);
    let found = Graph::new(twice.vertices, twice.edges, twice.semaphores);
    assert_eq!(found, Err(GraphError::Semaphore(VertexId(0), SemaphoreId(0))));
    let none = Graph::new(Shape::of(1).vertices, vec![], vec![0]);
    assert_eq!(none, Err(GraphError::Count(SemaphoreId(0))));
}

/// a swap gives no attempt to a failed vertex for descendants that wait since before the swap.
#[test]
fn r07_a_swap_is_no_attempt_either() {
    let mut world = World::new(&[Shape::of(2).edge(0, 1)], Slots::default(), false);
    world.steps(&[LOAD, Step::Watching(v(0)), Step::Watching(v(1))]);
    check(&mut world, 0, RunVerdict::Unknown);
    for _ in 0..5 {
        world.steps(&[LOAD]);
    }
    assert_eq!(started(&world), [0], "v1 has waited since before the swaps");
    sound(&world);
}

/// A child is removed while its parent runs, and its number is given to another vertex: this run owes the new one
/// nothing.
#[test]
fn a_number_given_anew_is_owed_nothing() {
    let with = Shape::of(2).notify(0, 1).traits(1, |traits| traits.repeat = RunPolicy::Events);
    let without = with.clone().without(1);
    let mut other = with.clone().define(1, 9);
    other.edges.clear();
    let mut world = settled(&[with, without, other]);
    world.steps(&[Step::RetryNow(v(0)), Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
    let swap = |graph| Step::Swap { graph, operator: false };
    world.steps(&[swap(1), swap(2), Step::Ended(v(0), Outcome::Changed), Step::Commit]);
    let log = world.log.join("\n");
    assert!(log.contains("owes: [VertexId(1)], pays"), "its intent named the child: {log}");
    let (_, end) = log.rsplit_once("-> End(").expect("its end is recorded");
    // A number is an identity here: the oracle takes the new vertex for the same child.
    assert!(end.contains("outcome: Changed") && end.contains("owes: []"), "{log}");
}
