//! E-3, E-10, E-17: attempts along the edges of the new graph, and consecutive swaps that wait.

use crate::contention::standing;
use crate::environment::World;
use crate::races::{check, settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use std::time::Duration;
use steadfast_engine::{Pace, Poll, RunPolicy, RunVerdict, Slots, VertexStatus};

const fn swap(graph: usize) -> Step {
    Step::Swap { graph, operator: false }
}

/// E-17, planted bug 11: a newer graph gives no more time to a run for which the older one has waited.
#[test]
fn e17_a_newer_graph_gives_no_more_time() {
    let old = Shape::of(2);
    let mut world = settled(&[old.clone(), old.clone().define(0, 2), old.define(0, 3)]);
    world.steps(&[Step::Changed(v(0)), swap(1), Step::Wait(Duration::from_secs(20)), swap(2)]);
    world.steps(&[Step::Wait(Duration::from_secs(9))]);
    assert!(world.runs.values().all(|run| !run.cancelled));
    world.steps(&[Step::Wait(Duration::from_secs(2))]);
    assert!(world.runs.values().all(|run| run.cancelled), "30 s after the first");
    sound(&world);
}

/// E-17: a newer graph gives no more time even if that of the older one is over and the run may not be cancelled.
#[test]
fn e17_a_newer_graph_gives_no_second_grace() {
    let old = Shape::of(2)
        .traits(0, |traits| traits.cancellable = false)
        .meta(1, |meta| meta.realize = true);
    let first = old.clone().define(0, 2).without(1);
    let second = old.clone().define(0, 3).without(1);
    let mut world = World::new(&[old, first, second], Slots::default(), false);
    world.steps(&[swap(0), Step::Watching(v(0)), swap(1)]);
    world.steps(&[Step::Wait(Duration::from_secs(31)), swap(2)]);
    check(&mut world, 0, RunVerdict::Same);
    sound(&world);
    assert_eq!(world.engine.vertex_status(v(1)), None, "{}", world.log.join("\n"));
    sound(&world);
}

/// E-3, E-10: a swap that removes the edge gives no attempt to the failed parent.
#[test]
fn e10_a_swap_back_pokes_by_its_own_edges() {
    let shape = Shape::of(2).edge(0, 1);
    let mut loose = shape.clone().define(1, 2);
    loose.edges.clear();
    let mut world = settled(&[shape, loose]);
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Unknown);
    world.starts.clear();
    world.steps(&[swap(1), Step::Watching(v(1))]);
    sound(&world);
    assert_eq!(standing(&world, 0), VertexStatus::Failed, "{}", world.log.join("\n"));
    assert_eq!(started(&world), [1]);
    sound(&world);
}

/// E-3: a swap that marks a vertex for another reason than its load, and puts it below a failed one, back-pokes that
/// one.
#[test]
fn e03_a_swap_back_pokes_for_each_of_its_marks() {
    let mut polled = Shape::of(2).meta(1, |meta| meta.poll = Poll::Every(Duration::from_hours(1)));
    let watched = Shape::of(2).edge(0, 1);
    polled.edges.clear();
    let mut world = settled(&[polled, watched]);
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Unknown);
    world.starts.clear();
    world.steps(&[swap(1)]);
    sound(&world);
    assert_eq!(started(&world), [0], "{}", world.log.join("\n"));
    sound(&world);
}

/// E-12: an operation for events is settled from the swap on that creates it: if its limiter delays it, it blocks no
/// other vertex.
#[test]
fn e12_a_deed_that_a_swap_made_and_that_is_limited_passes() {
    let pace = Pace { period_ns: 60_000_000_000, burst: 1 };
    let old = Shape::of(2).edge(0, 1).meta(0, |meta| meta.pace = Some(pace));
    let new = old.clone().define(0, 2).traits(0, |traits| traits.repeat = RunPolicy::Events);
    let mut world = settled(&[old, new]);
    world.steps(&[Step::Wait(Duration::from_hours(1)), Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Same);
    world.steps(&[swap(1), Step::Watching(v(0)), Step::Wait(ms(10))]);
    world.steps(&[Step::Changed(v(0))]);
    assert!(matches!(standing(&world, 0), VertexStatus::WaitingForLimit(_)));
    world.starts.clear();
    world.steps(&[Step::Changed(v(1))]);
    sound(&world);
    assert_eq!(started(&world), [1], "{}", world.log.join("\n"));
    sound(&world);
}
