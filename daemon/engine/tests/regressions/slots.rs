//! E-6, E-16: slots that are written off, and the time that a cancelled command has.

use crate::contention::standing;
use crate::environment::World;
use crate::generate::HOURS;
use crate::races::{settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use std::time::Duration;
use steadfast_engine::{ExecutorKind, Mode, RunVerdict, Slots, VertexStatus};

const PATIENCE: Duration = Duration::from_secs(11);

fn command() -> Shape {
    Shape::of(1).traits(0, |traits| traits.executor = ExecutorKind::Command)
}

/// E-6, row H: a replacement slot that is free again replaces the next slot held too long.
#[test]
fn e06_a_spare_slot_that_came_back_is_used_again() {
    let slots = Slots { threads: 1, commands: 1, replaceable: 1 };
    let mut world = World::new(&[Shape::of(3)], slots, false);
    world.steps(&[Step::Swap { graph: 0, operator: false }]);
    world.steps(&[Step::Watching(v(0)), Step::Watching(v(1)), Step::Watching(v(2))]);
    assert_eq!(started(&world), [0]);
    world.steps(&[Step::Wait(PATIENCE)]);
    assert_eq!(started(&world), [0, 1]);
    world.steps(&[Step::Wait(PATIENCE)]);
    assert_eq!(started(&world), [0, 1], "the cap is reached");
    world.steps(&[Step::Checked(v(0), RunVerdict::Same)]);
    sound(&world);
    assert_eq!(
        started(&world),
        [0, 1, 2],
        "v1 has held its slot for 11 s\n{}",
        world.log.join("\n")
    );
    sound(&world);
}

/// E-6, row H: at the limit nothing is due, so the engine requests no wake-up.
#[test]
fn e06_a_slot_that_cannot_be_replaced_wakes_nobody() {
    let slots = Slots { threads: 1, commands: 1, replaceable: 0 };
    let mut world = World::new(&[Shape::of(2)], slots, false);
    world.steps(&[Step::Swap { graph: 0, operator: false }]);
    world.steps(&[Step::Watching(v(0)), Step::Watching(v(1)), Step::Wait(HOURS)]);
    assert_eq!(world.engine.next_wakeup(), None);
    assert_eq!(started(&world), [0]);
    sound(&world);
}

/// E-16, row J: a stop waits for a cancelled command for the time that its processes may take to end.
#[test]
fn e16_a_stop_leaves_a_command_its_time_to_return() {
    let mut world = settled(&[command()]);
    world.steps(&[Step::Changed(v(0)), Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
    world.steps(&[Step::Stop { grace: ms(0) }, Step::Wait(ms(2999))]);
    assert_eq!(world.engine.mode(), Mode::Stopping);
    world.steps(&[Step::Wait(ms(1))]);
    assert!(world.stopped);
    sound(&world);
}

/// E-6, planted bug 4: a command is stuck three seconds after its cancel, not one.
#[test]
fn e06_a_command_is_stuck_after_three_seconds() {
    let mut world = settled(&[command().meta(0, |meta| meta.timeout = Some(ms(500)))]);
    world.steps(&[Step::Changed(v(0)), Step::Wait(ms(3499))]);
    assert!(!matches!(standing(&world, 0), VertexStatus::Stuck(..)));
    world.steps(&[Step::Wait(ms(1))]);
    assert!(matches!(standing(&world, 0), VertexStatus::Stuck(..)));
    sound(&world);
}

/// E-6, planted bug 6: a loaded vertex gets the slot before a look.
#[test]
fn e06_loaded_vertices_go_before_a_look() {
    let slots = Slots { threads: 1, commands: 1, replaceable: 0 };
    let mut world = World::new(&[Shape::of(2), Shape::of(3)], slots, false);
    world.steps(&[Step::Swap { graph: 0, operator: false }, Step::Watching(v(0))]);
    world.steps(&[Step::Watching(v(1)), Step::Checked(v(0), RunVerdict::Same)]);
    world.steps(&[Step::Checked(v(1), RunVerdict::Same)]);
    world.starts.clear();
    world.steps(&[Step::Changed(v(0)), Step::Look(v(1))]);
    world.steps(&[Step::Swap { graph: 1, operator: false }, Step::Watching(v(2))]);
    world.steps(&[Step::Checked(v(0), RunVerdict::Same)]);
    assert_eq!(started(&world), [0, 2], "the load before the look");
    sound(&world);
}
