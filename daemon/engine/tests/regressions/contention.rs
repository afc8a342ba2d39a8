//! E-20: vertices that yield, and the end of a contention.

use crate::contention::{contended, is_contended, undo};
use crate::generate::HOURS;
use crate::races::{repair, settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use std::time::Duration;
use steadfast_engine::{Conflict, Meta};

const LONGER: Duration = Duration::from_mins(6);

fn yielding() -> Shape {
    Shape::of(1).meta(0, |meta| meta.on_conflict = Conflict::Yield)
}

/// E-20, row B: a vertex that yields needs a quiet time after a pause of any length before it repairs.
#[test]
fn e20_a_pause_is_no_listening() {
    let mut world = contended(yielding(), 0);
    undo(&mut world, 0);
    world.steps(&[Step::Pause { drain: false, length: HOURS }, Step::Commit]);
    world.steps(&[Step::Wait(LONGER), Step::Resume]);
    sound(&world);
    assert_eq!(started(&world), [0; 0], "{}", world.log.join("\n"));
    world.steps(&[Step::Wait(Meta::REVERSAL_WINDOW)]);
    assert_eq!(started(&world), [0], "nobody was heard for a minute");
    sound(&world);
}

/// E-20, row B: a vertex that yields and was paused on its own needs a quiet time, too.
#[test]
fn e20_a_paused_vertex_is_unmuted_first() {
    let mut world = contended(yielding(), 0);
    undo(&mut world, 0);
    world.steps(&[Step::PauseVertex { vertex: v(0), paused: true }, Step::Wait(LONGER)]);
    world.steps(&[Step::PauseVertex { vertex: v(0), paused: false }]);
    sound(&world);
    assert_eq!(started(&world), [0; 0], "{}", world.log.join("\n"));
    undo(&mut world, 0);
    world.steps(&[Step::Wait(Meta::REVERSAL_WINDOW)]);
    assert_eq!(started(&world), [0; 0], "somebody was heard");
    sound(&world);
}

/// E-20, planted bug 8: a changed metaparam without relation to conflicts does not end a contention.
#[test]
fn e20_another_delay_ends_no_contention() {
    let shape = Shape::of(1);
    let other = shape.clone().meta(0, |meta| meta.delay = ms(700));
    let mut world = settled(&[shape, other]);
    for _ in 0..Meta::REVERSALS {
        undo(&mut world, 0);
        repair(&mut world, 0);
    }
    assert!(is_contended(&world, 0));
    world.steps(&[Step::Swap { graph: 1, operator: false }]);
    sound(&world);
    assert!(is_contended(&world, 0), "{}", world.log.join("\n"));
    sound(&world);
}
