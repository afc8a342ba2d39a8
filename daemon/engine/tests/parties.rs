//! E-20: who undoes it, as far as that can be told: a command's own doing, two of ours, another daemon.

use crate::fights::{MINUTE, classes, fought, party, standing, undo};
use crate::races::{check, repair, settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use crate::world::World;
use steadfast_engine::{Check, Class, Event, Meta, Outcome, Party, SlotClass, Standing, Verdict};

/// E-20: a command without guard that writes its own watch file is not idempotent; it is the one that says so.
#[test]
fn e20_a_command_that_writes_its_own_watch_file() {
    let deed = |nature: &mut steadfast_engine::Nature| {
        nature.check = Check::Once;
        nature.slot = SlotClass::Command;
    };
    let mut world =
        World::new(&[Shape::of(1).nature(0, deed)], steadfast_engine::Slots::default(), false);
    world.steps(&[Step::Swap { graph: 0, operator: false }, Step::Watching(v(0))]);
    let mut runs = 0;
    let end = world.now.after(MINUTE);
    while world.now < end {
        sound(&world);
        if world.in_progress(v(0)).is_some() {
            runs += 1;
            world.steps(&[Step::Checked(v(0), Verdict::Differs), Step::Commit]);
            world.step(&Step::Changed(v(0)));
            world.steps(&[Step::Ended(v(0), Outcome::Changed), Step::Commit]);
        }
        world.steps(&[Step::Wait(ms(10))]);
    }
    assert!((8..=14).contains(&runs), "{runs} runs in a minute");
    assert_eq!(party(&world, 0), Some(Party::Itself));
    assert_eq!(classes(&world, 0).last(), Some(&Class::NotIdempotent));
    sound(&world);
}

/// A command that a stream of events runs is no fight, however often it runs.
#[test]
fn e20_a_command_that_others_cause_is_no_fight() {
    let deed = |nature: &mut steadfast_engine::Nature| nature.check = Check::Events;
    let mut world = settled(&[Shape::of(1).nature(0, deed)]);
    for _ in 0..200 {
        undo(&mut world, 0);
        repair(&mut world, 0);
    }
    assert_eq!(standing(&world, 0), Standing::Settled);
    assert_eq!(started(&world).len(), 200);
    sound(&world);
}

/// F-10, E-20: two of ours that undo each other (two commands on one thing, where claims cannot see it) name each other.
#[test]
fn f10_two_of_ours_on_one_thing_name_each_other() {
    let command = |nature: &mut steadfast_engine::Nature| nature.slot = SlotClass::Command;
    let mut world = settled(&[Shape::of(3).nature(0, command).nature(1, command)]);
    let mut repairs = 0;
    world.steps(&[Step::Changed(v(0))]);
    let end = world.now.after(MINUTE * 2);
    while world.now < end {
        sound(&world);
        for (mine, other) in [(0, 1), (1, 0)] {
            if world.in_progress(v(mine)).is_some() {
                repairs += 1;
                world.steps(&[Step::Checked(v(mine), Verdict::Differs), Step::Commit]);
                world.step(&Step::Changed(v(other)));
                world.steps(&[Step::Ended(v(mine), Outcome::Changed)]);
                while world.step(&Step::Commit) {}
            }
        }
        world.steps(&[Step::Wait(ms(20))]);
    }
    assert!((12..=40).contains(&repairs), "{repairs} repairs of both in two minutes");
    assert_eq!(party(&world, 0), Some(Party::Ours(v(1))));
    assert_eq!(party(&world, 1), Some(Party::Ours(v(0))));
    assert_eq!(classes(&world, 0).last(), Some(&Class::NotIdempotent));
    undo(&mut world, 2);
    assert_eq!(world.starts.last().map(|start| start.vertex), Some(v(2)), "a third one goes on");
    sound(&world);
}

/// F-10: two daemons with opposite graphs look to each other like any other party.
#[test]
fn f10_another_daemon_is_another_party() {
    let world = fought(Shape::of(1), 0);
    assert_eq!(party(&world, 0), Some(Party::Foreign));
}

/// What the check of this run compares is made of something else than before.
fn remade(world: &mut World, number: u32) {
    let (run, _) = world.in_progress(v(number)).expect("a run");
    world.deliver(Event::Remade(run));
}

/// E-20: however it is noticed that a run is made of something else (an event, a look, a start), its change is intentional; drift is still drift.
#[test]
fn e20_what_is_made_of_something_else_was_undone_by_nobody() {
    let mut world = settled(&[Shape::of(1)]);
    for _ in 0..Meta::REVERSALS * 2 {
        world.steps(&[Step::Wait(MINUTE)]);
        undo(&mut world, 0);
        remade(&mut world, 0);
        repair(&mut world, 0);
        world.steps(&[Step::Wait(MINUTE), Step::Look(v(0))]);
        remade(&mut world, 0);
        check(&mut world, 0, Verdict::Differs);
        remade(&mut world, 0);
        repair(&mut world, 0);
    }
    world.steps(&[Step::Crash { kept: 0 }, Step::Watching(v(0))]);
    remade(&mut world, 0);
    repair(&mut world, 0);
    assert_eq!(classes(&world, 0), [Class::Intentional; Meta::REVERSALS * 4 + 1]);
    assert_eq!(standing(&world, 0), Standing::Settled);
    undo(&mut world, 0);
    repair(&mut world, 0);
    assert_eq!(classes(&world, 0).last(), Some(&Class::Corrective), "drift is still drift");
    sound(&world);
}

/// E-20, E-9: who is refreshed because something is made of something else was undone by nobody, either; after drift it was.
#[test]
fn e20_who_is_refreshed_by_what_is_made_of_something_else() {
    let mut world = settled(&[Shape::of(2).notify(0, 1)]);
    for rotated in [true, false] {
        undo(&mut world, 0);
        if rotated {
            remade(&mut world, 0);
        }
        repair(&mut world, 0);
        repair(&mut world, 1);
    }
    assert_eq!(classes(&world, 1), [Class::Intentional, Class::Corrective]);
    sound(&world);
}

/// E-20: what is made of something else again and again, by whomever (a file that is its own secret, another party that rotates it a
/// hundred times a second), is bounded as a fight is, and each change says what it is.
#[test]
fn e20_what_is_made_of_something_else_for_ever_is_bounded() {
    let mut world = settled(&[Shape::of(1)]);
    let (mut runs, end) = (0, world.now.after(MINUTE));
    while world.now < end {
        world.step(&Step::Changed(v(0)));
        if world.in_progress(v(0)).is_some() {
            runs += 1;
            assert!(runs <= 16, "{runs} runs in less than a minute");
            remade(&mut world, 0);
            repair(&mut world, 0);
        }
        world.steps(&[Step::Wait(ms(10))]);
    }
    assert!(runs >= 5, "{runs} runs in a minute");
    assert_eq!(party(&world, 0), Some(Party::Foreign));
    assert_eq!(classes(&world, 0), vec![Class::Intentional; runs]);
    sound(&world);
}

/// E-20: what is done at each start finds something to do each time: that is not idempotent, by what is declared, and no fight; nor is
/// what it notifies. The first time, and what is asked for, is intentional.
#[test]
fn e20_a_deed_of_each_start_is_not_idempotent() {
    let deed = |nature: &mut steadfast_engine::Nature| {
        (nature.check, nature.slot) = (Check::EachStart, SlotClass::Command);
    };
    let shape = Shape::of(2).notify(0, 1).nature(0, deed);
    let mut world = World::new(&[shape], steadfast_engine::Slots::default(), false);
    world.steps(&[Step::Swap { graph: 0, operator: false }]);
    for _ in 0..Meta::REVERSALS * 2 {
        world.steps(&[Step::Watching(v(0)), Step::Watching(v(1))]);
        repair(&mut world, 0);
        repair(&mut world, 1);
        assert_eq!(standing(&world, 0), Standing::Settled);
        assert_eq!(standing(&world, 1), Standing::Settled);
        world.steps(&[Step::Crash { kept: 0 }]);
    }
    world.steps(&[Step::Watching(v(0)), Step::Watching(v(1))]);
    for _ in 0..2 {
        repair(&mut world, 0);
        repair(&mut world, 1);
        world.steps(&[Step::Redo(v(0))]);
    }
    repair(&mut world, 0);
    repair(&mut world, 1);
    for number in [0, 1] {
        let all = classes(&world, number);
        assert_eq!(all.first(), Some(&Class::Intentional));
        let again = all.iter().skip(1).take(Meta::REVERSALS * 2 - 1);
        assert!(again.eq(&[Class::NotIdempotent; Meta::REVERSALS * 2 - 1]), "{number}: {all:?}");
    }
    assert_eq!(classes(&world, 0).last(), Some(&Class::Intentional), "it was asked for");
    sound(&world);
}
