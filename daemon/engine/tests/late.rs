//! E-6, E-18: a look whose check does not answer is stuck, and the host is not converged until it answers.

use crate::contention::standing;
use crate::environment::World;
use crate::races::{settled, sound};
use crate::shape::{Shape, v};
use crate::step::Step;
use steadfast_engine::{Event, Notice, RunId, RunVerdict, VertexStatus};

fn report_late(world: &mut World) -> RunId {
    let (run, _) = world.in_progress(v(0)).expect("a run");
    world.deliver(Event::Late(run));
    run
}

#[test]
fn e6_a_look_that_does_not_answer_is_stuck() {
    for verdict in [RunVerdict::Same, RunVerdict::Differs, RunVerdict::Unknown] {
        let mut world = settled(&[Shape::of(2).edge(0, 1)]);
        world.step(&Step::Look(v(0)));
        assert!(world.engine.is_converged(), "a look alone changes nothing");
        let run = report_late(&mut world);
        assert!(matches!(standing(&world, 0), VertexStatus::Stuck(stuck, _) if stuck == run));
        assert!(!world.engine.is_converged());
        // A second report changes nothing.
        report_late(&mut world);
        let stuck = |notice: &&Notice| matches!(notice, Notice::Stuck(..));
        assert_eq!(world.told.iter().filter(stuck).count(), 1);
        world.step(&Step::Checked(v(0), verdict));
        let is_settled = standing(&world, 0) == VertexStatus::Settled;
        assert_eq!(is_settled, verdict == RunVerdict::Same, "{verdict:?}");
        sound(&world);
    }
}

/// A run for an event counts as unsettled already, and needs no report.
#[test]
fn e6_a_run_for_an_event_waits_for_its_deadline() {
    let mut world = settled(&[Shape::of(1)]);
    world.step(&Step::Changed(v(0)));
    report_late(&mut world);
    assert!(matches!(standing(&world, 0), VertexStatus::Running(..)));
    sound(&world);
}
