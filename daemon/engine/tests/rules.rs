//! Tests of single rules, with schedules written by hand.

use crate::environment::World;
use crate::races::{settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use steadfast_engine::{
    Action, Event, ExecutorKind, HeldReason, Notice, Outcome, Poll, RunVerdict, Slots, VertexStatus,
};

#[test]
fn e01_a_chain_starts_in_order() {
    let shape = Shape::of(2).edge(0, 1);
    let mut world = World::new(&[shape], Slots::default(), false);
    world.steps(&[
        Step::Swap { graph: 0, operator: false },
        Step::Watching(v(1)),
        Step::Watching(v(0)),
        Step::Checked(v(0), RunVerdict::Differs),
        Step::Commit,
        Step::Ended(v(0), Outcome::Changed),
        Step::Checked(v(1), RunVerdict::Same),
        Step::Commit,
    ]);
    assert!(
        world.oracle.books.violations.is_empty(),
        "{:#?} {}",
        world.oracle.books.violations,
        world.log.join("\n")
    );
}

/// E-3: a clean parent passes a back-poke on to a failed ancestor.
#[test]
fn e03_a_back_poke_reaches_who_failed_far_above() {
    let mut world = settled(&[Shape::of(3).edge(0, 1).edge(1, 2)]);
    world.steps(&[Step::Changed(v(0)), Step::Checked(v(0), RunVerdict::Unknown)]);
    assert_eq!(world.engine.vertex_status(v(0)), Some(VertexStatus::Failed));
    world.steps(&[Step::Changed(v(2))]);
    assert_eq!(started(&world), [0, 0], "v1 has nothing to do, and yet v0 gets its attempt");
    sound(&world);
}

/// E-4: an event during the last failing run gives no new budget, and a check follows all the same.
#[test]
fn e04_an_event_during_the_last_failing_run_is_checked() {
    let mut world = settled(&[Shape::of(1)]);
    world.steps(&[Step::Changed(v(0)), Step::Changed(v(0))]);
    world.steps(&[Step::Checked(v(0), RunVerdict::Unknown), Step::Wait(ms(1000))]);
    assert_eq!(started(&world), [0, 0]);
    world.steps(&[Step::Checked(v(0), RunVerdict::Unknown), Step::Wait(ms(60_000))]);
    assert_eq!(started(&world), [0, 0], "and it was no new budget");
    sound(&world);
}

/// E-5: a start clears its causes; one cause is one run.
#[test]
fn e05_a_start_clears_what_it_was_started_for() {
    let mut world = World::new(&[Shape::of(1)], Slots::default(), false);
    world.steps(&[Step::Swap { graph: 0, operator: false }, Step::Watching(v(0))]);
    world.steps(&[Step::Checked(v(0), RunVerdict::Same)]);
    assert_eq!(started(&world), [0], "the load is one run");
    world.steps(&[Step::Changed(v(0)), Step::Checked(v(0), RunVerdict::Same)]);
    assert_eq!(started(&world), [0, 0], "one event is one more");
    assert!(world.engine.is_converged());
    sound(&world);
}

/// E-8: with many parents, whose clearances are counted, removed ones are forgotten.
#[test]
fn e08_a_crowd_of_parents_opens_when_the_last_that_blocks_is_right() {
    let shape = (0..17).fold(Shape::of(18), |shape, parent| shape.edge(parent, 17));
    let mut world = settled(&[shape]);
    world.steps(&[Step::Changed(v(0)), Step::Changed(v(17)), Step::Changed(v(1))]);
    // v1 converged after v17 became dirty, and is dirty again: v1 no longer blocks v17.
    world.steps(&[Step::Changed(v(1)), Step::Checked(v(1), RunVerdict::Same)]);
    assert_eq!(started(&world), [0, 1, 1]);
    world.steps(&[Step::Checked(v(0), RunVerdict::Same)]);
    assert_eq!(started(&world), [0, 1, 1, 17]);
    sound(&world);
}

/// E-10: an event that its own run may have caused gives no new budget.
#[test]
fn e10_an_event_during_its_own_run_refills_nothing() {
    let mut world = settled(&[Shape::of(1).meta(0, |meta| meta.retry = Some(2))]);
    world.steps(&[Step::Changed(v(0))]);
    for _ in 0..2 {
        world.steps(&[Step::Changed(v(0)), Step::Checked(v(0), RunVerdict::Unknown)]);
        assert!(matches!(world.engine.vertex_status(v(0)), Some(VertexStatus::Delayed(_))));
        world.steps(&[Step::Wake]);
    }
    world.steps(&[Step::Checked(v(0), RunVerdict::Unknown)]);
    assert_eq!(world.engine.vertex_status(v(0)), Some(VertexStatus::Failed));
    assert_eq!(started(&world), [0, 0, 0], "one run and two retries");
    sound(&world);
}

/// E-11: a failing check below a vertex that would change is unknown until that vertex is changed, and not failed.
#[test]
fn e11_an_unknown_result_in_noop_waits_for_its_ancestor() {
    let mut world = settled(&[Shape::of(2).edge(0, 1).all(|meta| meta.noop = true)]);
    world.steps(&[Step::Changed(v(0)), Step::Checked(v(0), RunVerdict::Differs)]);
    world.steps(&[Step::Changed(v(1)), Step::Checked(v(1), RunVerdict::Unknown)]);
    let until = HeldReason::UnknownUntil(v(0));
    assert_eq!(world.engine.vertex_status(v(1)), Some(VertexStatus::Held(until)));
    assert!(world.told.contains(&Notice::Held(v(1), until)));
    assert!(!world.told.contains(&Notice::Failed(v(1))));
    sound(&world);
}

/// E-14: a lower ticket that waits for another semaphore keeps its place in this one.
#[test]
fn e14_a_higher_ticket_does_not_pass_a_lower_one() {
    let shape = Shape::of(3).semaphore(1).semaphore(1);
    let shape = shape.uses(0, 1).uses(1, 0).uses(1, 1).uses(2, 0);
    let mut world = settled(&[shape]);
    world.steps(&[Step::Changed(v(0)), Step::Changed(v(1)), Step::Changed(v(2))]);
    assert_eq!(started(&world), [0], "semaphore 0 is free, and v1 stands before v2");
    world.steps(&[Step::Checked(v(0), RunVerdict::Same)]);
    assert_eq!(started(&world), [0, 1]);
    world.steps(&[Step::Checked(v(1), RunVerdict::Same)]);
    assert_eq!(started(&world), [0, 1, 2]);
    sound(&world);
}

/// E-14: a vertex that was admitted under a count that has shrunk since does not start.
#[test]
fn e14_a_new_start_obeys_the_new_count() {
    let shape = Shape::of(3).semaphore(2).uses(0, 0).uses(2, 0);
    let mut narrow = shape.clone();
    narrow.semaphores = vec![1];
    let slots = Slots { threads: 2, commands: 1, replaceable: 0 };
    let mut world = World::new(&[shape, narrow], slots, false);
    world.steps(&[Step::Swap { graph: 0, operator: false }]);
    world.steps(&[Step::Watching(v(0)), Step::Watching(v(1)), Step::Watching(v(2))]);
    assert_eq!(started(&world), [0, 1], "v2 waits for a slot only");
    world.steps(&[Step::Swap { graph: 1, operator: false }, Step::Checked(v(1), RunVerdict::Same)]);
    assert_eq!(started(&world), [0, 1], "and for the semaphore now, with v0 in it");
    world.steps(&[Step::Checked(v(0), RunVerdict::Same)]);
    assert_eq!(started(&world), [0, 1, 2]);
    sound(&world);
}

/// E-14: a run in progress holds the semaphores that a swap gives its vertex.
#[test]
fn e14_a_run_in_progress_holds_its_new_semaphores() {
    let plain = Shape::of(2).semaphore(1).uses(1, 0);
    let mut world = settled(&[plain.clone(), plain.uses(0, 0)]);
    world.steps(&[Step::Changed(v(0)), Step::Swap { graph: 1, operator: false }]);
    world.steps(&[Step::Changed(v(1))]);
    assert_eq!(started(&world), [0]);
    world.steps(&[Step::Checked(v(0), RunVerdict::Same)]);
    assert_eq!(started(&world), [0, 1]);
    sound(&world);
}

/// E-17: a waiting swap cancels the runs that it waits for after a grace of 30 s.
#[test]
fn e17_a_swap_waits_for_its_grace_and_no_longer() {
    let shape = Shape::of(1);
    let mut world = settled(&[shape.clone(), shape.define(0, 2)]);
    world.steps(&[Step::Changed(v(0)), Step::Swap { graph: 1, operator: false }]);
    world.steps(&[Step::Wait(ms(29_999))]);
    assert!(world.runs.values().all(|run| !run.cancelled));
    world.steps(&[Step::Wait(ms(1))]);
    assert!(world.runs.values().all(|run| run.cancelled));
    world.steps(&[Step::Ended(v(0), Outcome::Interrupted), Step::Watching(v(0))]);
    assert_eq!(started(&world), [0, 0]);
    sound(&world);
}

/// E-17: vertices that only the older of two waiting graphs would have changed continue at once when the newer one
/// replaces it.
#[test]
fn e17_runs_that_a_newer_graph_leaves_alone_go_on() {
    let shape = Shape::of(2);
    let both = shape.clone().define(0, 2).define(1, 2);
    let mut world = settled(&[shape.clone(), both, shape.define(0, 2)]);
    world.steps(&[Step::Changed(v(0)), Step::Swap { graph: 1, operator: false }]);
    world.steps(&[Step::Changed(v(1))]);
    assert_eq!(started(&world), [0], "v1 will be replaced");
    world.steps(&[Step::Swap { graph: 2, operator: false }]);
    assert_eq!(started(&world), [0, 1], "the newer graph still waits for v0, and v1 for nobody");
    sound(&world);
}

/// Notices about the runs of one vertex come in the order of the runs, in any order of durability.
#[test]
fn reports_of_one_vertex_keep_their_order() {
    let mut world = settled(&[Shape::of(1)]);
    for _ in 0..2 {
        world.steps(&[Step::Changed(v(0)), Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
        world.steps(&[Step::Ended(v(0), Outcome::Changed)]);
        // Its end stays in the log; the begin of the next run is durable without it.
        let end = world.store.written.pop_back().expect("the end of the run");
        world.store.durable.apply(&end);
    }
    let (first, second) = (world.starts[0].run, world.starts[1].run);
    let now = world.now;
    assert_eq!(world.engine.handle(now, Event::Durable(second)), []);
    let ran = |run| Action::Notify(Notice::Ran(v(0), run, Outcome::Changed));
    let told = world.engine.handle(now, Event::Durable(first));
    assert_eq!(told[..2], [ran(first), ran(second)]);
}

/// E-13, R-9: a vertex that is watched instead of polled from now on is checked once its watch is established.
#[test]
fn e13_watched_instead_of_polled_is_checked_once_more() {
    let shape = Shape::of(1);
    let polled = shape.clone().meta(0, |meta| meta.poll = Poll::Every(ms(60_000)));
    let mut world = settled(&[polled, shape]);
    world.steps(&[Step::Swap { graph: 1, operator: false }]);
    assert_eq!(started(&world), [0; 0], "not before the watch: it would miss what comes between");
    world.steps(&[Step::Watching(v(0))]);
    assert_eq!(started(&world), [0]);
    sound(&world);
}

/// E-6: a stuck run releases the slot class that it took, even if its vertex has changed meanwhile.
#[test]
fn e06_a_stuck_run_gives_back_the_slot_that_it_took() {
    let shape = Shape::of(2).meta(0, |meta| meta.timeout = Some(ms(1000)));
    let other =
        shape.clone().define(0, 2).traits(0, |traits| traits.executor = ExecutorKind::Command);
    let slots = Slots { threads: 1, commands: 1, replaceable: 0 };
    let mut world = World::new(&[shape, other], slots, false);
    world.steps(&[Step::Swap { graph: 0, operator: false }]);
    world.steps(&[Step::Watching(v(0)), Step::Watching(v(1)), Step::Wait(ms(2000))]);
    assert!(matches!(world.engine.vertex_status(v(0)), Some(VertexStatus::Stuck(..))));
    world.steps(&[Step::Swap { graph: 1, operator: false }]);
    assert_eq!(started(&world), [0], "v1 waits for the one thread");
    world.steps(&[Step::Ended(v(0), Outcome::Interrupted)]);
    assert_eq!(started(&world), [0, 1]);
    world.steps(&[Step::Watching(v(0))]);
    assert_eq!(started(&world), [0, 1, 0], "and v0 is a command now");
}
