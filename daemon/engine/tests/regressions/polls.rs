//! E-13: polls that outlive swaps.

use crate::contention::{MINUTE, standing};
use crate::races::{check, settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use std::time::Duration;
use steadfast_engine::{Outcome, Poll, RunVerdict, VertexStatus};

const INTERVAL: Duration = Duration::from_secs(10);

/// E-13, row A: a polled vertex with a hung run is removed and added again: the next tick runs it.
#[test]
fn e13_a_poll_goes_on_after_its_vertex_came_back() {
    let shape = Shape::of(2).meta(0, |meta| {
        meta.poll = Poll::Every(INTERVAL);
        meta.timeout = Some(ms(500));
    });
    let mut world = settled(&[shape.clone(), shape.without(0)]);
    world.steps(&[Step::Wait(INTERVAL), Step::Wait(ms(2000))]);
    assert_eq!(started(&world), [0]);
    assert!(matches!(standing(&world, 0), VertexStatus::Stuck(..)));
    let swap = |graph| Step::Swap { graph, operator: false };
    world.steps(&[swap(1), swap(0), Step::Ended(v(0), Outcome::Interrupted)]);
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    world.starts.clear();
    world.steps(&[Step::Wait(MINUTE)]);
    sound(&world);
    assert_eq!(started(&world), [0], "{}", world.log.join("\n"));
    sound(&world);
}

/// E-13, row A: a lost poll wakes nobody, and the oracle reports it in the same turn.
#[test]
fn e13_a_wait_ends_with_a_turn() {
    let mut world = settled(&[Shape::of(1)]);
    let turns = world.turns.len();
    world.steps(&[Step::Wait(MINUTE)]);
    assert!(world.turns.len() > turns, "the oracle is asked at the end of each wait");
    sound(&world);
}
