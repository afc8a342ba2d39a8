//! E-15, E-3: drains that finish exactly the required vertices, and a resume that reaches failed ancestors.

use crate::contention::standing;
use crate::generate::HOURS;
use crate::races::{check, repair, settled, sound, started};
use crate::shape::{Shape, v};
use crate::step::Step;
use steadfast_engine::{Mode, RunVerdict, VertexStatus};

const DRAIN: Step = Step::Pause { drain: true, length: HOURS };
const PAUSE: Step = Step::Pause { drain: false, length: HOURS };

/// E-15, row C: a vertex on the shelf for a look is owed a refresh by a draining vertex: the drain finishes it.
#[test]
fn e15_a_drain_lets_a_refresh_end_behind_a_look() {
    for step in [Step::Look(v(1)), Step::Changed(v(1))] {
        let mut world = settled(&[Shape::of(2).notify(0, 1)]);
        world.steps(&[Step::Changed(v(0)), DRAIN, Step::Commit, step]);
        repair(&mut world, 0);
        sound(&world);
        assert_eq!(started(&world), [0, 1], "{}", world.log.join("\n"));
        sound(&world);
    }
}

/// E-15, row G: a repeated request to drain continues the drain, and moves its end.
#[test]
fn e15_a_drain_asked_for_again_is_a_drain() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::Changed(v(0)), Step::Changed(v(1)), DRAIN, Step::Commit]);
    world.steps(&[DRAIN, Step::Commit]);
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(world.engine.mode(), Mode::Draining);
    sound(&world);
    assert_eq!(started(&world), [0, 1], "{}", world.log.join("\n"));
    check(&mut world, 1, RunVerdict::Same);
    assert_eq!(world.engine.mode(), Mode::Paused);
    sound(&world);
}

/// E-15: a plain pause ends a drain in progress.
#[test]
fn e15_a_plain_pause_ends_a_drain() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::Changed(v(0)), Step::Changed(v(1)), DRAIN, PAUSE]);
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(started(&world), [0]);
    sound(&world);
}

/// E-15, row O: an event after the request waits for the resume, even if its vertex was running at the request.
#[test]
fn e15_an_event_in_a_run_that_a_drain_found_waits() {
    let mut world = settled(&[Shape::of(1)]);
    world.steps(&[Step::Changed(v(0)), DRAIN, Step::Commit, Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Same);
    sound(&world);
    assert_eq!(started(&world), [0], "{}", world.log.join("\n"));
    world.steps(&[Step::Resume]);
    assert_eq!(started(&world), [0, 0]);
    sound(&world);
}

/// E-15, planted bug 15: an event during a drained run waits for the resume.
#[test]
fn e15_an_event_in_a_drained_run_waits() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::Changed(v(0)), Step::Changed(v(1)), DRAIN, Step::Commit]);
    check(&mut world, 0, RunVerdict::Same);
    world.steps(&[Step::Changed(v(1))]);
    check(&mut world, 1, RunVerdict::Same);
    sound(&world);
    assert_eq!(started(&world), [0, 1], "{}", world.log.join("\n"));
    sound(&world);
}

/// E-3, row N: a vertex becomes dirty in a pause below a failed one: the resume gives the failed one its attempt.
#[test]
fn e03_a_resume_makes_up_for_dropped_back_pokes() {
    let mut world = settled(&[Shape::of(3).edge(0, 1).edge(1, 2)]);
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Unknown);
    world.steps(&[PAUSE, Step::Commit, Step::Changed(v(2)), Step::Resume, Step::Commit]);
    sound(&world);
    assert_eq!(started(&world), [0, 0], "{}", world.log.join("\n"));
    check(&mut world, 0, RunVerdict::Unknown);
    assert_eq!(standing(&world, 0), VertexStatus::Failed, "it is one attempt");
    world.steps(&[PAUSE, Step::Commit, Step::Resume]);
    assert_eq!(started(&world), [0, 0], "nothing became dirty in the second pause");
    sound(&world);
}
