//! E-11: findings of vertices in noop, and the end of noop.

use crate::contention::standing;
use crate::environment::World;
use crate::generate::HOURS;
use crate::races::{check, repair, settled, sound, started};
use crate::shape::{Shape, v};
use crate::step::Step;
use steadfast_engine::{HeldReason, RunVerdict, Slots, VertexStatus, WindowId};

const UNKNOWN: VertexStatus =
    VertexStatus::Held(HeldReason::UnknownUntil(steadfast_engine::VertexId(0)));

/// Returns a world in noop in which v0 would change.
fn would_change(shape: Shape) -> World {
    let mut world = settled(&[shape.all(|meta| meta.noop = true)]);
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Differs);
    world
}

/// E-11, row D: a failing check below a vertex that would change is unknown, even during a look at that one.
#[test]
fn e11_a_look_above_does_not_make_unknown_failed() {
    let mut world = would_change(Shape::of(2).edge(0, 1));
    world.steps(&[Step::Look(v(0)), Step::Changed(v(1))]);
    check(&mut world, 1, RunVerdict::Unknown);
    sound(&world);
    assert_eq!(standing(&world, 1), UNKNOWN, "{}", world.log.join("\n"));
    sound(&world);
}

/// Returns a world in which v1 is unknown until v0 is changed.
fn unknown() -> World {
    let mut world = would_change(Shape::of(2).edge(0, 1));
    world.steps(&[Step::Changed(v(1))]);
    check(&mut world, 1, RunVerdict::Unknown);
    assert_eq!(standing(&world, 1), UNKNOWN);
    world.starts.clear();
    world
}

/// E-11, row W: a vertex that is unknown until another one is checked again when that one has converged, by a run or by
/// a look.
#[test]
fn e11_unknown_ends_when_the_other_is_right() {
    for step in [Step::Changed(v(0)), Step::Look(v(0))] {
        let mut world = unknown();
        world.steps(&[step]);
        check(&mut world, 0, RunVerdict::Same);
        sound(&world);
        assert_eq!(started(&world), [0, 1], "{}", world.log.join("\n"));
        check(&mut world, 1, RunVerdict::Same);
        assert_eq!(standing(&world, 1), VertexStatus::Settled);
        sound(&world);
    }
}

/// E-11, row W: a look at an unknown vertex that finds a difference makes the result known.
#[test]
fn e11_a_look_ends_unknown() {
    let mut world = unknown();
    world.steps(&[Step::Look(v(1))]);
    check(&mut world, 1, RunVerdict::Differs);
    check(&mut world, 1, RunVerdict::Differs);
    assert_eq!(standing(&world, 1), VertexStatus::Held(HeldReason::WouldChange));
    sound(&world);
}

/// E-11, row W: a vertex that is unknown until another one is checked again after a swap removes that one, or the edge.
#[test]
fn e11_unknown_ends_when_the_other_is_above_no_more() {
    let shape = Shape::of(2).edge(0, 1).all(|meta| meta.noop = true);
    let mut loose = shape.clone();
    loose.edges.clear();
    for other in [shape.clone().without(0), loose] {
        let mut world = settled(&[shape.clone(), other]);
        world.steps(&[Step::Changed(v(0))]);
        check(&mut world, 0, RunVerdict::Differs);
        world.steps(&[Step::Changed(v(1))]);
        check(&mut world, 1, RunVerdict::Unknown);
        assert_eq!(standing(&world, 1), UNKNOWN);
        world.starts.clear();
        world.steps(&[Step::Swap { graph: 1, operator: false }]);
        sound(&world);
        assert_eq!(started(&world), [1], "{}", world.log.join("\n"));
        sound(&world);
    }
}

/// E-11, row V: a failed vertex in noop is checked as if it were refreshed.
#[test]
fn e11_a_supposed_refresh_is_an_attempt() {
    let mut world = settled(&[Shape::of(2).notify(0, 1).all(|meta| meta.noop = true)]);
    world.steps(&[Step::Changed(v(1))]);
    check(&mut world, 1, RunVerdict::Unknown);
    // The settled ancestor is checked before the failure counts.
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(standing(&world, 1), VertexStatus::Failed);
    world.starts.clear();
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Differs);
    sound(&world);
    assert_eq!(started(&world), [0, 1], "{}", world.log.join("\n"));
    assert!(world.starts[1].refresh);
    sound(&world);
}

/// E-9, E-11, row T: a vertex that failed in noop and is owed a refresh is refreshed at the end of noop.
#[test]
fn e11_the_end_of_noop_pays_what_is_owed() {
    let shape = Shape::of(2).notify(0, 1);
    let noop = shape.clone().meta(1, |meta| meta.noop = true);
    let mut world = settled(&[noop, shape]);
    world.steps(&[Step::Changed(v(0))]);
    repair(&mut world, 0);
    check(&mut world, 1, RunVerdict::Unknown);
    // The settled ancestor is checked before the failure counts.
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(standing(&world, 1), VertexStatus::Failed);
    world.starts.clear();
    world.steps(&[Step::Swap { graph: 1, operator: false }]);
    sound(&world);
    assert_eq!(started(&world), [1], "{}", world.log.join("\n"));
    sound(&world);
}

/// E-11, row U: a vertex held by its window is checked for *would change* after a swap to noop.
#[test]
fn e11_noop_ends_the_hold_of_a_window() {
    let shape = Shape::of(2).edge(0, 1).meta(0, |meta| meta.window = Some(WindowId(0)));
    let noop = shape.clone().all(|meta| meta.noop = true);
    let mut world = World::new(&[shape, noop], Slots::default(), false);
    world.steps(&[Step::Swap { graph: 0, operator: false }, Step::Watching(v(0))]);
    world.steps(&[Step::Watching(v(1)), Step::Checked(v(0), RunVerdict::Differs)]);
    world.starts.clear();
    world.steps(&[Step::Swap { graph: 1, operator: false }]);
    check(&mut world, 0, RunVerdict::Differs);
    assert_eq!(standing(&world, 0), VertexStatus::Held(HeldReason::WouldChange));
    sound(&world);
    assert_eq!(started(&world), [0, 1], "{}", world.log.join("\n"));
    world.steps(&[Step::Wait(HOURS)]);
    sound(&world);
}
