//! E-20: failed attempts are no repairs, unless events cause them.

use crate::contention::is_contended;
use crate::environment::World;
use crate::races::{repair, settled, sound};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use steadfast_engine::{Notice, Outcome, RunVerdict};

fn fail(world: &mut World) {
    world.steps(&[Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
    world.steps(&[Step::Ended(v(0), Outcome::Failed { touched: false })]);
    while world.step(&Step::Commit) {}
}

/// Returns a world of one vertex with retries without end, after an event.
fn changed() -> World {
    let shape = Shape::of(1).all(|meta| {
        meta.retry = None;
        meta.delay = ms(100);
        meta.delay_max = ms(200);
    });
    let mut world = settled(&[shape]);
    world.step(&Step::Changed(v(0)));
    world
}

/// A full disk: one event, and then retries that change nothing. The retries keep their delays.
#[test]
fn e20_retries_that_change_nothing_are_no_contention() {
    let mut world = changed();
    let mut attempts = 0;
    while attempts < 20 {
        if world.in_progress(v(0)).is_some() {
            fail(&mut world);
            attempts += 1;
            sound(&world);
        }
        world.steps(&[Step::Wait(ms(50))]);
    }
    assert!(world.now.0 < 20_000_000_000, "the retries keep their delays");
    assert!(!world.told.iter().any(|notice| matches!(notice, Notice::Contended { .. })));
    assert!(!is_contended(&world, 0));
    while world.in_progress(v(0)).is_none() {
        world.steps(&[Step::Wait(ms(50))]);
    }
    repair(&mut world, 0);
    assert!(world.engine.is_converged());
}

/// E-10: dependents wait for the first run of a vertex whose failure does not block, and not for its success.
#[test]
fn e10_a_failure_that_does_not_block_lets_dependents_start() {
    for blocks in [true, false] {
        let shape = Shape::of(2).edge(0, 1).traits(0, |traits| traits.failure_blocks = blocks);
        let shape = shape.all(|meta| {
            meta.retry = None;
            meta.delay = ms(1000);
            meta.delay_max = ms(1000);
        });
        let mut world = settled(&[shape]);
        world.steps(&[Step::Changed(v(0)), Step::Changed(v(1))]);
        assert!(world.in_progress(v(0)).is_some() && world.in_progress(v(1)).is_none());
        fail(&mut world);
        assert_eq!(world.in_progress(v(1)).is_some(), !blocks);
        sound(&world);
    }
}

/// A run that changes a part and fails has not reached the declared state: its retries keep their delays.
#[test]
fn e20_retries_that_change_a_part_are_no_contention() {
    let mut world = changed();
    for _ in 0..20 {
        while world.in_progress(v(0)).is_none() {
            world.steps(&[Step::Wait(ms(50))]);
        }
        world.steps(&[Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
        world.steps(&[Step::Ended(v(0), Outcome::Failed { touched: true })]);
        while world.step(&Step::Commit) {}
        sound(&world);
    }
    assert!(world.now.0 < 20_000_000_000, "the retries keep their delays");
    assert!(!is_contended(&world, 0));
}
