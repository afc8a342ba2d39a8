//! Notices about one vertex come in the order of its runs.

use crate::contention::standing;
use crate::environment::World;
use crate::races::{check, repair, settled, sound};
use crate::shape::{Shape, v};
use crate::step::Step;
use steadfast_engine::{Notice, Outcome, RunVerdict, VertexStatus, WindowId};

fn place(world: &World, is: impl Fn(&Notice) -> bool) -> usize {
    world.told.iter().position(is).unwrap_or_else(|| panic!("never told: {:?}", world.told))
}

/// Returns a world with a vertex that runs again before the end of its repair is durable.
fn run_again() -> World {
    let mut world = settled(&[Shape::of(1).meta(0, |meta| meta.window = Some(WindowId(0)))]);
    world.steps(&[Step::Window { window: 0, open: true }, Step::Changed(v(0))]);
    world.steps(&[Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
    world.steps(&[Step::Ended(v(0), Outcome::Changed), Step::Changed(v(0))]);
    world
}

/// Row Y: the success of a run is reported before the failure of the next one.
#[test]
fn a_failed_check_is_told_after_the_run_before_it() {
    let mut world = run_again();
    check(&mut world, 0, RunVerdict::Unknown);
    world.steps(&[Step::Commit]);
    let ran = place(&world, |notice| matches!(notice, Notice::Ran(..)));
    let unchecked = place(&world, |notice| matches!(notice, Notice::CheckFailed(..)));
    let failed = place(&world, |notice| matches!(notice, Notice::Failed(..)));
    sound(&world);
    assert!(ran < unchecked && unchecked < failed, "{:?}", world.told);
    sound(&world);
}

/// Row Y: a rejected begin is reported after the success of the run before it.
#[test]
fn a_refused_begin_is_told_after_the_run_before_it() {
    let mut world = run_again();
    check(&mut world, 0, RunVerdict::Differs);
    world.steps(&[Step::Commit, Step::Refuse]);
    let ran = place(&world, |notice| matches!(notice, Notice::Ran(..)));
    let failed = place(&world, |notice| matches!(notice, Notice::Failed(..)));
    sound(&world);
    assert!(ran < failed, "{:?}", world.told);
    sound(&world);
}

/// Row M: a look that finds a failed vertex converged is a recovery, even if its window had held it meanwhile.
#[test]
fn a_look_in_a_closed_window_tells_a_recovery() {
    let mut world = settled(&[Shape::of(1).meta(0, |meta| meta.window = Some(WindowId(0)))]);
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Unknown);
    assert_eq!(standing(&world, 0), VertexStatus::Failed);
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Differs);
    assert!(matches!(standing(&world, 0), VertexStatus::Held(_)));
    world.steps(&[Step::Look(v(0))]);
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    let recovered = place(&world, |notice| *notice == Notice::Recovered(v(0)));
    let converged = world.told.iter().rposition(|notice| *notice == Notice::Converged);
    sound(&world);
    assert!(Some(recovered) < converged, "{:?}", world.told);
    repair_once(&mut world);
    sound(&world);
}

fn repair_once(world: &mut World) {
    world.steps(&[Step::Window { window: 0, open: true }, Step::Changed(v(0))]);
    repair(world, 0);
    let told = world.told.iter().filter(|notice| **notice == Notice::Recovered(v(0))).count();
    assert_eq!(told, 1, "and it is told once");
}
