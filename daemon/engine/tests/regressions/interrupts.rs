//! E-8, E-9: runs that were cut off, and stuck runs of a former definition.

use crate::contention::standing;
use crate::environment::World;
use crate::generate::HOURS;
use crate::races::{repair, settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use steadfast_engine::{
    Action, ExecutorKind, HeldReason, OnInterrupt, Outcome, RunPolicy, RunVerdict, VertexStatus,
};

const SWAP: Step = Step::Swap { graph: 1, operator: false };

/// Returns a vertex whose run does not return from its cancel.
fn hanging() -> Shape {
    Shape::of(1).meta(0, |meta| meta.timeout = Some(ms(500)))
}

/// Returns the definitions in the records of all ends.
fn ended_definitions(world: &World) -> Vec<u64> {
    let actions = world.turns.iter().flat_map(|(_, _, actions, _)| actions);
    actions
        .filter_map(|action| match action {
            Action::End(record) => Some(record.definition),
            _ => None,
        })
        .collect()
}

/// E-8, row K: the end of a stuck run records the definition that it applied; the new one runs after a crash.
#[test]
fn e08_an_end_says_the_definition_that_was_applied() {
    for interrupted in [OnInterrupt::Skip, OnInterrupt::Wait] {
        let old = hanging().traits(0, |traits| {
            traits.repeat = RunPolicy::Once;
            traits.on_interrupt = interrupted;
        });
        let new = old.clone().define(0, 2);
        let mut world = settled(&[old, new]);
        world.steps(&[
            Step::RetryNow(v(0)),
            Step::Checked(v(0), RunVerdict::Differs),
            Step::Commit,
        ]);
        world.steps(&[Step::Wait(ms(2000)), SWAP]);
        world.steps(&[Step::Pause { drain: false, length: HOURS }, Step::Commit]);
        world.steps(&[Step::Ended(v(0), Outcome::Interrupted), Step::Commit]);
        assert_eq!(ended_definitions(&world), [1]);
        world.starts.clear();
        world.steps(&[Step::Crash { kept: 0 }, Step::Resume, Step::Watching(v(0))]);
        sound(&world);
        assert_eq!(started(&world), [0], "definition 2 never ran\n{}", world.log.join("\n"));
        sound(&world);
    }
}

/// E-8, row E: when a stuck run of a former definition returns, the new operation for events does not run for that.
#[test]
fn e08_a_deed_for_events_is_not_done_for_a_stuck_run() {
    let new = hanging().define(0, 2).traits(0, |traits| traits.repeat = RunPolicy::Events);
    let mut world = settled(&[hanging(), new]);
    world.steps(&[Step::Changed(v(0)), Step::Wait(ms(2000)), SWAP, Step::Watching(v(0))]);
    world.starts.clear();
    world.steps(&[Step::Ended(v(0), Outcome::Interrupted)]);
    sound(&world);
    assert_eq!(started(&world), [0; 0], "{}", world.log.join("\n"));
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    sound(&world);
}

/// Handshake, row I: a rejected begin of a vertex that was redefined while its run was stuck has no end.
#[test]
fn a_refused_begin_of_an_obsolete_run_has_no_end() {
    let mut world = settled(&[hanging(), hanging().define(0, 2)]);
    world.steps(&[Step::Changed(v(0)), Step::Checked(v(0), RunVerdict::Differs)]);
    world.steps(&[Step::Wait(ms(2000)), SWAP, Step::Refuse]);
    sound(&world);
    assert_eq!(ended_definitions(&world), [0; 0], "{}", world.log.join("\n"));
    sound(&world);
}

/// Returns a parent, and an operation that it refreshes.
fn refreshed(interrupted: OnInterrupt) -> Shape {
    Shape::of(2).notify(0, 1).traits(1, |traits| {
        traits.repeat = RunPolicy::Once;
        traits.on_interrupt = interrupted;
        traits.executor = ExecutorKind::Command;
    })
}

/// Returns a world in which the apply of the refreshed operation is in progress.
fn refreshing(interrupted: OnInterrupt) -> World {
    refreshing_in(refreshed(interrupted))
}

fn refreshing_in(shape: Shape) -> World {
    let mut world = settled(&[shape]);
    world.steps(&[Step::Changed(v(0))]);
    repair(&mut world, 0);
    world.steps(&[Step::Checked(v(1), RunVerdict::Differs), Step::Commit]);
    world.starts.clear();
    world
}

fn restart(world: &mut World) {
    world.starts.clear();
    world.steps(&[Step::Crash { kept: 0 }, Step::Watching(v(0)), Step::Watching(v(1))]);
    world.steps(&[Step::Checked(v(0), RunVerdict::Same)]);
}

/// E-9, row F: `ask` holds for a run that a refresh had started; the operator's request completes the refresh.
#[test]
fn e09_a_refresh_that_was_cut_off_waits_for_the_operator() {
    let mut world = refreshing(OnInterrupt::Wait);
    for _ in 0..2 {
        restart(&mut world);
        sound(&world);
        assert_eq!(started(&world), [0], "{}", world.log.join("\n"));
        assert_eq!(standing(&world, 1), VertexStatus::Held(HeldReason::Operator));
    }
    world.steps(&[Step::Changed(v(0))]);
    repair(&mut world, 0);
    assert_eq!(
        standing(&world, 1),
        VertexStatus::Held(HeldReason::Operator),
        "another refresh waits, too"
    );
    world.steps(&[Step::RetryNow(v(1))]);
    assert!(world.starts.last().is_some_and(|start| start.vertex == v(1) && start.refresh));
    repair(&mut world, 1);
    assert_eq!(standing(&world, 1), VertexStatus::Settled);
    assert!(world.engine.is_converged(), "all that was owed is paid");
    sound(&world);
}

/// E-9, row Q: `skip` counts the cut-off run as done, with the refresh that had started it; a later refresh is done.
#[test]
fn e09_a_refresh_that_was_cut_off_and_skipped_is_done() {
    for check in [RunPolicy::Once, RunPolicy::EachStart, RunPolicy::Events] {
        let shape = refreshed(OnInterrupt::Skip).traits(1, |traits| traits.repeat = check);
        let mut world = refreshing_in(shape);
        for _ in 0..2 {
            restart(&mut world);
            sound(&world);
            assert_eq!(started(&world), [0], "{check:?}\n{}", world.log.join("\n"));
            assert_eq!(standing(&world, 1), VertexStatus::Settled, "{check:?}");
        }
        world.steps(&[Step::Changed(v(0))]);
        repair(&mut world, 0);
        assert!(world.starts.last().is_some_and(|start| start.vertex == v(1) && start.refresh));
        repair(&mut world, 1);
        assert!(world.engine.is_converged(), "{check:?}: the later refresh is paid");
        sound(&world);
    }
}

/// E-9, row Q: a refresh that arrived during the run that was cut off stays owed.
#[test]
fn e09_a_refresh_during_a_skipped_run_stays_owed() {
    let mut world = refreshing(OnInterrupt::Skip);
    world.steps(&[Step::Changed(v(0))]);
    repair(&mut world, 0);
    restart(&mut world);
    sound(&world);
    assert!(
        world.starts.last().is_some_and(|start| start.vertex == v(1) && start.refresh),
        "{}",
        world.log.join("\n")
    );
    repair(&mut world, 1);
    assert!(world.engine.is_converged());
    sound(&world);
}
