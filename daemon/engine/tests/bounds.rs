//! Limits on changes other than contention: the repair limit and windows; and `realize`, which allows one more run.

use crate::contention::{classes, contended, standing, told, undo};
use crate::environment::World;
use crate::races::{check, repair, settled, sound, started, until_quiet};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use std::time::Duration;
use steadfast_engine::{
    Class, HeldReason, Notice, Outcome, RunVerdict, VertexId, VertexStatus, WindowId,
};

const MINUTE: Duration = Duration::from_mins(1);

/// Returns a world of converged vertices with this limit of the repair limit.
fn settled_under_suspension(count: u32, limit: u32) -> World {
    let slots = steadfast_engine::Slots::default();
    let mut world = World::new(&[Shape::of(count)], slots, false).with_repair_limit(Some(limit));
    world.steps(&[Step::Swap { graph: 0, operator: false }]);
    for number in 0..count {
        world.steps(&[Step::Watching(v(number))]);
        check(&mut world, number, RunVerdict::Same);
    }
    world
}

/// The repair limit: repairs stop for a minute if too many are undone; watching continues; the repair limit is
/// reported, and ends by itself.
#[test]
fn e20_the_repair_limit_suspends_repairs_and_ends_by_itself() {
    let count = 20;
    let mut world = settled_under_suspension(count, 45);
    let mut repairs = 0;
    for _ in 0..1000 {
        if world.engine.repairs_suspended_until().is_some() {
            break;
        }
        for number in 0..count {
            world.step(&Step::Changed(v(number)));
            if world.engine.repairs_suspended_until().is_none()
                && world.in_progress(v(number)).is_some()
            {
                repair(&mut world, number);
                repairs += 1;
            }
        }
        world.steps(&[Step::Wait(ms(200))]);
    }
    assert_eq!(
        repairs,
        count + 46,
        "the first repair of each is work, 45 more are within the bound"
    );
    assert_eq!(told(&world, |n| matches!(n, Notice::RepairsSuspended { .. })), 1);
    for number in 0..count {
        world.step(&Step::Changed(v(number)));
    }
    until_quiet(&mut world, |world, id| world.steps(&[Step::Checked(id, RunVerdict::Differs)]));
    let begun = |world: &World| (0..count).map(|n| classes(world, n).len()).sum::<usize>();
    let before = begun(&world);
    assert!(
        (0..count).any(|n| matches!(standing(&world, n), VertexStatus::WaitingForRepairLimit(_)))
    );
    world.steps(&[Step::Wait(Duration::from_secs(50))]);
    assert_eq!(begun(&world), before, "nothing is changed");
    world.steps(&[Step::RetryNow(v(3))]);
    repair(&mut world, 3);
    assert_eq!(begun(&world), before + 1, "but what the operator asks for");
    world.steps(&[Step::Wait(Duration::from_secs(10))]);
    assert_eq!(told(&world, |n| matches!(n, Notice::RepairsResumed)), 1);
    until_quiet(&mut world, |world, id| repair(world, id.0));
    assert!(begun(&world) > before + 10, "what had moved is repaired");
    sound(&world);
}

/// The repair limit delays only vertices that were repaired three times within the last minute.
#[test]
fn e20_the_repair_limit_leaves_other_vertices_alone() {
    let count = 20;
    let mut world = settled_under_suspension(count + 1, 30);
    for _ in 0..1000 {
        if world.engine.repairs_suspended_until().is_some() {
            break;
        }
        for number in 0..count {
            world.step(&Step::Changed(v(number)));
            if world.engine.repairs_suspended_until().is_none()
                && world.in_progress(v(number)).is_some()
            {
                repair(&mut world, number);
            }
        }
        world.steps(&[Step::Wait(ms(200))]);
    }
    assert!(world.engine.repairs_suspended_until().is_some());
    for repairs in 1..=3 {
        world.steps(&[Step::Changed(v(count))]);
        repair(&mut world, count);
        assert_eq!(classes(&world, count).len(), repairs, "it is repaired at once");
        assert_eq!(standing(&world, count), VertexStatus::Settled);
    }
    world.steps(&[Step::Changed(v(count)), Step::Checked(v(count), RunVerdict::Differs)]);
    assert_eq!(classes(&world, count).len(), 3, "a fourth repair waits");
    world.steps(&[Step::Wait(MINUTE)]);
    until_quiet(&mut world, |world, id| repair(world, id.0));
    assert_eq!(classes(&world, count).len(), 4);
    sound(&world);
}

/// The repair limit counts repeated repairs only: repairing everything once is normal work, however much it is.
#[test]
fn e20_a_whole_tree_put_back_once_is_no_storm() {
    let count = 100;
    let mut world = settled_under_suspension(count, 10);
    for number in 0..count {
        world.steps(&[Step::Changed(v(number))]);
        repair(&mut world, number);
    }
    assert_eq!(world.engine.repairs_suspended_until(), None);
    sound(&world);
}

/// `when_allowed`: outside of the window a difference is held and shown; inside, it is repaired at once. A child waits
/// for a parent that never converged.
#[test]
fn e20_windows_hold_changes_and_let_them_in() {
    let shape = Shape::of(2).edge(0, 1).meta(0, |meta| meta.window = Some(WindowId(0)));
    let mut world = World::new(&[shape], steadfast_engine::Slots::default(), false);
    world.steps(&[
        Step::Swap { graph: 0, operator: false },
        Step::Watching(v(0)),
        Step::Watching(v(1)),
        Step::Checked(v(0), RunVerdict::Differs),
    ]);
    let shut = VertexStatus::Held(HeldReason::Window(WindowId(0)));
    assert_eq!(standing(&world, 0), shut);
    assert_eq!(standing(&world, 1), VertexStatus::WaitingFor(vec![v(0)]));
    world.steps(&[Step::Wait(MINUTE), Step::Window { window: 0, open: true }]);
    repair(&mut world, 0);
    repair(&mut world, 1);
    assert_eq!(classes(&world, 0), [Class::Intentional]);
    assert!(world.engine.is_converged());
    world.steps(&[Step::Window { window: 0, open: false }]);
    undo(&mut world, 0);
    check(&mut world, 0, RunVerdict::Differs);
    assert_eq!(standing(&world, 0), shut, "drift is held as well");
    undo(&mut world, 1);
    repair(&mut world, 1);
    assert_eq!(standing(&world, 1), VertexStatus::Settled, "v0 was right once: it blocks nobody");
    undo(&mut world, 0);
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(standing(&world, 0), VertexStatus::Settled, "somebody has put it right");
    sound(&world);
}

/// `realize`: a vertex that a swap removes converges once before, with its ancestors, and is then removed.
#[test]
fn e20_realize_runs_well_once_before_a_swap_removes_it() {
    let with = Shape::of(3).edge(0, 1).meta(1, |meta| meta.realize = true);
    let without = with.clone().without(0).without(1);
    let mut world = World::new(&[with, without], steadfast_engine::Slots::default(), false);
    world.steps(&[Step::Swap { graph: 0, operator: false }]);
    for number in 0..3 {
        world.steps(&[Step::Watching(v(number))]);
    }
    world.steps(&[Step::Swap { graph: 1, operator: false }]);
    assert!(world.told.contains(&Notice::SwapWaits(vec![v(0), v(1)])), "{:?}", world.told);
    repair(&mut world, 0);
    assert_eq!(started(&world), [0, 2, 1]);
    repair(&mut world, 1);
    assert!(world.told.contains(&Notice::Loaded { added: 0, changed: 0, removed: 2, kept: 1 }));
    assert_eq!(world.engine.vertex_status(v(1)), None);
    sound(&world);
}

/// `realize` has a deadline, and a vertex that has failed for good is not waited for.
#[test]
fn e20_realize_waits_no_longer_than_a_swap_does() {
    let with = Shape::of(2).meta(1, |meta| {
        meta.realize = true;
        meta.retry = None;
    });
    let without = with.clone().without(1);
    let gone = Notice::Loaded { added: 0, changed: 0, removed: 1, kept: 1 };
    let mut world =
        World::new(&[with.clone(), without.clone()], steadfast_engine::Slots::default(), false);
    world.steps(&[Step::Swap { graph: 0, operator: false }, Step::Watching(v(1))]);
    check(&mut world, 1, RunVerdict::Unknown);
    world.steps(&[Step::Swap { graph: 1, operator: false }, Step::Wait(Duration::from_secs(29))]);
    assert!(!world.told.contains(&gone));
    if world.in_progress(v(1)).is_some() {
        check(&mut world, 1, RunVerdict::Unknown);
    }
    world.steps(&[Step::Wait(Duration::from_secs(1))]);
    if world.in_progress(v(1)).is_some() {
        world.steps(&[Step::Ended(v(1), Outcome::Interrupted)]);
    }
    assert!(world.told.contains(&gone), "{}", world.log.join("\n"));
    sound(&world);

    let hopeless = with.meta(1, |meta| meta.retry = Some(0));
    let mut world = World::new(&[hopeless, without], steadfast_engine::Slots::default(), false);
    world.steps(&[Step::Swap { graph: 0, operator: false }, Step::Watching(v(1))]);
    check(&mut world, 1, RunVerdict::Unknown);
    world.steps(&[Step::Swap { graph: 1, operator: false }]);
    assert!(world.told.contains(&gone), "it has failed for good");
    sound(&world);
}

/// The contention of a removed vertex is deleted: its number may be given to another one.
#[test]
fn e20_a_removed_vertex_is_no_longer_contended() {
    let shape = Shape::of(2);
    let mut world = contended(shape.clone(), 1);
    undo(&mut world, 1);
    world.graphs = [shape.clone().without(1), shape].iter().map(|s| (s.build(), vec![])).collect();
    world.steps(&[
        Step::Swap { graph: 0, operator: false },
        Step::Swap { graph: 1, operator: false },
        Step::Watching(VertexId(1)),
    ]);
    assert_eq!(started(&world), [1]);
    check(&mut world, 1, RunVerdict::Same);
    assert_eq!(standing(&world, 1), VertexStatus::Settled);
    assert_eq!(world.engine.next_wakeup(), None, "no timer of it is left");
    sound(&world);
}

/// E-15: a paused vertex is not started. A dirty one blocks its descendants and no other vertex, and continues after
/// the pause.
#[test]
fn e15_a_paused_vertex_waits_with_all_below_it() {
    let mut world = settled(&[Shape::of(3).edge(0, 1)]);
    world.steps(&[Step::PauseVertex { vertex: v(0), paused: true }]);
    undo(&mut world, 1);
    repair(&mut world, 1);
    assert_eq!(standing(&world, 0), VertexStatus::Settled, "clean, it is in nobody's way");
    assert!(world.engine.is_converged());
    undo(&mut world, 0);
    undo(&mut world, 1);
    undo(&mut world, 2);
    assert_eq!(standing(&world, 0), VertexStatus::Paused);
    assert_eq!(standing(&world, 1), VertexStatus::WaitingFor(vec![v(0)]));
    repair(&mut world, 2);
    world.steps(&[Step::Look(v(0)), Step::RetryNow(v(0)), Step::Wait(MINUTE)]);
    assert_eq!(world.runs.len(), 0, "nothing of it is started, whoever asks");
    world.steps(&[Step::PauseVertex { vertex: v(0), paused: false }]);
    repair(&mut world, 0);
    repair(&mut world, 1);
    assert!(world.engine.is_converged());
    sound(&world);
}

/// E-15: a run in progress ends as usual; after a restart the vertex is paused before it is loaded.
#[test]
fn e15_active_runs_end_and_a_restart_changes_nothing() {
    let mut world = settled(&[Shape::of(1)]);
    undo(&mut world, 0);
    world.steps(&[Step::PauseVertex { vertex: v(0), paused: true }]);
    repair(&mut world, 0);
    undo(&mut world, 0);
    assert_eq!(standing(&world, 0), VertexStatus::Paused);
    world.steps(&[Step::Crash { kept: 0 }, Step::Watching(v(0)), Step::Wait(MINUTE)]);
    assert_eq!((world.runs.len(), standing(&world, 0)), (0, VertexStatus::Paused));
    world.steps(&[Step::PauseVertex { vertex: v(0), paused: false }]);
    repair(&mut world, 0);
    assert!(world.engine.is_converged());
    sound(&world);
}
