//! Durability of ends before their notices, and the treatment of runs without an end at a start.

use crate::environment::World;
use crate::generate::HOURS;
use crate::races::{settled, sound, started, until_quiet};
use crate::shape::{Shape, v};
use crate::step::Step;
use crate::store::Entry;
use steadfast_engine::{Notice, Outcome, RunVerdict, Slots};

const PAUSE: Step = Step::Pause { drain: false, length: HOURS };

fn has_told(world: &World, notice: &Notice) -> bool {
    world.told.contains(notice)
}

/// B-4: the outcome of a run is reported only when its end is durable. Internal pokes need only that the end precedes
/// their own begin in the log.
#[test]
fn b04_nothing_is_told_before_its_end_is_durable() {
    let mut world = settled(&[Shape::of(2).notify(0, 1)]);
    let ran =
        |world: &World| world.told.iter().filter(|told| matches!(told, Notice::Ran(..))).count();
    world.steps(&[Step::Changed(v(0)), Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
    world.steps(&[Step::Ended(v(0), Outcome::Changed)]);
    assert_eq!(started(&world), [0, 1], "poked");
    world.steps(&[Step::Checked(v(1), RunVerdict::Differs)]);
    let log: Vec<_> = world.store.written.iter().collect();
    assert!(
        matches!(log[..], [Entry::End(end), Entry::Begin(begin)] if end.vertex == v(0) && begin.vertex == v(1)),
        "{log:?}"
    );
    assert_eq!(ran(&world), 0, "{:?}", world.told);
    assert!(!world.engine.is_converged());
    world.steps(&[Step::Commit]);
    assert_eq!(ran(&world), 1, "{:?}", world.told);
    world.steps(&[Step::Commit, Step::Ended(v(1), Outcome::Changed)]);
    assert_eq!(ran(&world), 1, "{:?}", world.told);
    assert!(!world.engine.is_converged() && !has_told(&world, &Notice::Converged));
    world.steps(&[Step::Commit]);
    assert!(world.engine.is_converged() && has_told(&world, &Notice::Converged));
    sound(&world);
}

/// B-8: a run without an end is looked at first among the ready vertices, as soon as its ancestors converge. The
/// refreshes of its intent are owed.
#[test]
fn b08_interrupted_vertices_are_checked_first() {
    for after in [None, Some(1)] {
        let mut shape = Shape::of(6).notify(4, 3);
        if let Some(parent) = after {
            shape = shape.edge(parent, 4);
        }
        let mut world = settled(&[shape]);
        world.slots = Slots { threads: 1, ..Slots::default() };
        world.oracle.books.slots = world.slots;
        // Its begin and the pause are durable, its end is not: after the start all vertices are ready at one moment.
        world.steps(&[Step::Changed(v(4)), Step::Checked(v(4), RunVerdict::Differs), Step::Commit]);
        world.steps(&[PAUSE, Step::Ended(v(4), Outcome::Changed)]);
        let kept = world.store.written.iter().position(|entry| matches!(entry, Entry::End(_)));
        world.starts.clear();
        world.steps(&[Step::Crash { kept: kept.expect("an end") }]);
        let owed =
            |world: &World| world.store.durable.vertices.get(&v(3)).and_then(|kept| kept.owed);
        assert!(owed(&world).is_some(), "its intent owes v3");
        for number in 0..6 {
            world.step(&Step::Watching(v(number)));
        }
        assert_eq!(started(&world), [0; 0], "paused");
        world.steps(&[Step::Resume]);
        until_quiet(&mut world, |world, id| {
            world.steps(&[Step::Checked(id, RunVerdict::Same)]);
            while world.step(&Step::Commit) {}
        });
        let order = started(&world);
        let at = |number: u32| order.iter().position(|other| *other == number).expect("started");
        match after {
            None => assert_eq!(at(4), 0, "{order:?}"),
            Some(parent) => assert_eq!(at(4), at(parent) + 1, "{order:?}"),
        }
        assert_eq!(owed(&world), None, "and it is paid");
        assert!(world.engine.is_converged());
        sound(&world);
    }
}
