//! E-3, E-10: a vertex whose run fails asks its ancestors before the failure counts.

use crate::environment::World;
use crate::generate::HOURS;
use crate::races::{check, repair, settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use steadfast_engine::{Notice, Outcome, Pace, RunPolicy, RunVerdict, Slots, VertexStatus};

const FAILS: Outcome = Outcome::Failed { touched: false };

/// Runs the child before its parent's event arrives, and lets its apply fail.
fn fail_apply(world: &mut World, number: u32) {
    world.steps(&[
        Step::Checked(v(number), RunVerdict::Differs),
        Step::Commit,
        Step::Ended(v(number), FAILS),
        Step::Commit,
    ]);
}

fn asks(world: &World, number: u32, above: &[u32]) -> bool {
    let above = above.iter().map(|number| v(*number)).collect();
    world.engine.vertex_status(v(number)) == Some(VertexStatus::Asking(above))
}

fn counted(world: &World, number: u32) -> usize {
    let counts = |notice: &&Notice| match notice {
        Notice::Failed(id) | Notice::Retrying(id, _) => *id == v(number),
        _ => false,
    };
    world.told.iter().filter(counts).count()
}

#[test]
fn e03_a_parent_that_moved_unheard_excuses_the_failure() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::Changed(v(1))]);
    fail_apply(&mut world, 1);
    assert!(asks(&world, 1, &[0]), "{:?}", world.engine.vertex_status(v(1)));
    assert!(world.starts.last().is_some_and(|start| start.look), "check only");
    check(&mut world, 0, RunVerdict::Differs);
    assert_eq!(world.engine.vertex_status(v(1)), Some(VertexStatus::WaitingFor(vec![v(0)])));
    repair(&mut world, 0);
    repair(&mut world, 1);
    assert_eq!(started(&world), [1, 0, 0, 1]);
    assert_eq!(counted(&world, 1), 0, "{:?}", world.told);
    assert!(world.engine.is_converged());
    sound(&world);
}

#[test]
fn e03_a_check_that_fails_asks_as_well() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::Changed(v(1)), Step::Checked(v(1), RunVerdict::Unknown)]);
    assert!(asks(&world, 1, &[0]));
    check(&mut world, 0, RunVerdict::Differs);
    repair(&mut world, 0);
    check(&mut world, 1, RunVerdict::Same);
    assert_eq!(counted(&world, 1), 0, "{:?}", world.told);
    sound(&world);
}

/// The question costs one check of each settled ancestor, and nothing else.
#[test]
fn e03_a_failure_counts_when_no_ancestor_differs() {
    let shape = Shape::of(3).edge(0, 1).edge(1, 2).meta(2, |meta| meta.retry = Some(1));
    let mut world = settled(&[shape]);
    world.steps(&[Step::Changed(v(2))]);
    fail_apply(&mut world, 2);
    assert_eq!(counted(&world, 2), 0, "the budget is untouched while it asks");
    check(&mut world, 0, RunVerdict::Same);
    assert!(asks(&world, 2, &[1]));
    check(&mut world, 1, RunVerdict::Same);
    assert_eq!(started(&world), [2, 0, 1], "the farthest is looked at first");
    assert!(matches!(world.engine.vertex_status(v(2)), Some(VertexStatus::Delayed(_))));
    assert_eq!(counted(&world, 2), 1);
    sound(&world);
}

/// A removed tree: each directory is looked at once, and made in order.
#[test]
fn e03_all_settled_ancestors_are_asked_at_once() {
    let mut world = settled(&[Shape::of(4).edge(0, 1).edge(1, 2).edge(2, 3)]);
    world.steps(&[Step::Changed(v(3))]);
    fail_apply(&mut world, 3);
    for number in [0, 1, 2] {
        check(&mut world, number, RunVerdict::Differs);
    }
    for number in [0, 1, 2, 3] {
        repair(&mut world, number);
    }
    assert_eq!(started(&world), [3, 0, 1, 2, 0, 1, 2, 3]);
    assert!(world.told.iter().all(|n| !matches!(n, Notice::Failed(_) | Notice::Retrying(..))));
    sound(&world);
}

/// An operation has no state to look at: its parents are asked instead.
#[test]
fn e03_ancestors_are_asked_through_a_deed() {
    let shape =
        Shape::of(3).edge(0, 1).edge(1, 2).traits(1, |traits| traits.repeat = RunPolicy::Once);
    let mut world = settled(&[shape]);
    world.steps(&[Step::Changed(v(2)), Step::Checked(v(2), RunVerdict::Unknown)]);
    assert!(asks(&world, 2, &[0]));
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(counted(&world, 2), 1);
    sound(&world);
}

/// Siblings that fail together share the look at their parent.
#[test]
fn e03_a_look_that_started_later_is_not_repeated() {
    let mut world = settled(&[Shape::of(3).edge(0, 1).edge(0, 2)]);
    world.steps(&[Step::Changed(v(1)), Step::Changed(v(2))]);
    world.steps(&[Step::Checked(v(1), RunVerdict::Unknown)]);
    check(&mut world, 0, RunVerdict::Same);
    world.steps(&[Step::Checked(v(2), RunVerdict::Unknown)]);
    assert_eq!(started(&world), [1, 2, 0]);
    assert_eq!((counted(&world, 1), counted(&world, 2)), (1, 1));
    sound(&world);
}

/// A parent that is repaired while its child runs excuses the failure without a look.
#[test]
fn e03_a_parent_that_moved_during_the_run_excuses_it() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::Changed(v(1)), Step::Changed(v(0))]);
    repair(&mut world, 0);
    world.steps(&[Step::Checked(v(1), RunVerdict::Unknown)]);
    check(&mut world, 1, RunVerdict::Same);
    assert_eq!(started(&world), [1, 0, 1]);
    assert_eq!(counted(&world, 1), 0, "{:?}", world.told);
    sound(&world);
}

/// A parent that runs when the child fails is waited for; if it is found as declared, it excuses nothing.
#[test]
fn e03_a_parent_that_runs_is_waited_for() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::Changed(v(1)), Step::Changed(v(0))]);
    world.steps(&[Step::Checked(v(1), RunVerdict::Unknown)]);
    assert!(asks(&world, 1, &[0]));
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!((started(&world), counted(&world, 1)), (vec![1, 0], 1));
    sound(&world);
}

/// Three failures in a row are excused, and the next one counts, however often an ancestor changes.
#[test]
fn e03_excuses_have_a_bound() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::Changed(v(1))]);
    for round in 0..4 {
        assert_eq!(counted(&world, 1), 0, "round {round}");
        world.steps(&[Step::Checked(v(1), RunVerdict::Unknown)]);
        if round < 3 {
            check(&mut world, 0, RunVerdict::Differs);
            repair(&mut world, 0);
        }
    }
    assert_eq!(counted(&world, 1), 1);
    sound(&world);
}

#[test]
fn e03_one_pass_asks_nobody() {
    let mut world = World::new(&[Shape::of(2).edge(0, 1)], Slots::default(), true);
    world.steps(&[
        Step::Swap { graph: 0, operator: false },
        Step::Checked(v(0), RunVerdict::Same),
        Step::Checked(v(1), RunVerdict::Unknown),
    ]);
    assert_eq!((started(&world), counted(&world, 1)), (vec![0, 1], 1));
    sound(&world);
}

/// E-15: a pause starts no look; the resume does.
#[test]
fn e03_a_pause_holds_up_the_answer() {
    let mut world = settled(&[Shape::of(3).edge(0, 1).edge(0, 2)]);
    world.steps(&[Step::Changed(v(1)), Step::Look(v(0))]);
    world.steps(&[Step::Checked(v(1), RunVerdict::Unknown)]);
    world.steps(&[Step::Pause { drain: false, length: HOURS }]);
    check(&mut world, 0, RunVerdict::Differs);
    world.steps(&[Step::Commit]);
    assert_eq!(counted(&world, 1), 0);
    world.steps(&[Step::Resume, Step::Commit]);
    repair(&mut world, 0);
    check(&mut world, 1, RunVerdict::Same);
    assert_eq!(counted(&world, 1), 0, "{:?}", world.told);
    sound(&world);
}

/// E-17: if the asked ancestor leaves the graph, the failure counts.
#[test]
fn e03_a_swap_that_removes_the_parent_ends_the_wait() {
    let shape = Shape::of(2).edge(0, 1);
    let mut world =
        settled(&[shape.clone().meta(1, |meta| meta.retry = Some(0)), shape.without(0)]);
    world.steps(&[Step::Changed(v(1)), Step::Checked(v(1), RunVerdict::Unknown)]);
    world.steps(&[Step::Swap { graph: 1, operator: false }]);
    assert!(asks(&world, 1, &[0]), "the look is in progress");
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(counted(&world, 1), 1, "{}", world.log.join("\n"));
    sound(&world);
}

/// E-17: if the awaited parent leaves the graph while another one runs, only that one is waited for.
#[test]
fn e03_a_swap_leaves_nobody_awaited_who_is_gone() {
    let slow = Pace { period_ns: 1_000_000_000, burst: 1 };
    let shape = Shape::of(3).edge(0, 2).edge(1, 2).meta(0, |meta| meta.pace = Some(slow));
    let mut world = settled(&[shape.clone(), shape.without(0)]);
    world.steps(&[Step::Changed(v(2)), Step::Checked(v(2), RunVerdict::Unknown)]);
    check(&mut world, 0, RunVerdict::Differs);
    check(&mut world, 1, RunVerdict::Same);
    assert!(asks(&world, 2, &[0]), "{:?}", world.engine.vertex_status(v(2)));
    world.steps(&[Step::Changed(v(1)), Step::Swap { graph: 1, operator: false }]);
    assert!(asks(&world, 2, &[1]), "{:?}", world.engine.vertex_status(v(2)));
    check(&mut world, 1, RunVerdict::Same);
    assert_eq!(counted(&world, 2), 1);
    sound(&world);
}

/// A parent that is paused on its own is not awaited.
#[test]
fn e03_a_paused_parent_is_not_awaited() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::PauseVertex { vertex: v(0), paused: true }]);
    world.steps(&[Step::Changed(v(1)), Step::Checked(v(1), RunVerdict::Unknown)]);
    assert_eq!((started(&world), counted(&world, 1)), (vec![1], 1));
    sound(&world);
}

/// An event during the wait is checked after it (E-4), whatever the ancestors' checks find.
#[test]
fn e03_an_event_during_the_wait_is_not_lost() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[
        Step::Changed(v(1)),
        Step::Checked(v(1), RunVerdict::Unknown),
        Step::Changed(v(1)),
    ]);
    check(&mut world, 0, RunVerdict::Same);
    world.steps(&[Step::Wait(ms(200))]);
    assert_eq!(started(&world), [1, 0, 1]);
    check(&mut world, 1, RunVerdict::Same);
    assert!(world.engine.is_converged());
    sound(&world);
}
