//! E-20: who undoes it, as far as that can be told: a command's own doing, two of ours, another daemon.

use crate::contention::{MINUTE, classes, fought, is_contended, party, standing, undo};
use crate::environment::World;
use crate::races::{check, repair, settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use steadfast_engine::{
    Check, Class, Conflict, Culprit, Event, Meta, Notice, Outcome, RunVerdict, SlotClass,
    VertexStatus,
};

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
            world.steps(&[Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
            world.step(&Step::Changed(v(0)));
            world.steps(&[Step::Ended(v(0), Outcome::Changed), Step::Commit]);
        }
        world.steps(&[Step::Wait(ms(10))]);
    }
    assert!((8..=14).contains(&runs), "{runs} runs in a minute");
    assert_eq!(party(&world, 0), Some(Culprit::Itself));
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
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
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
                world.steps(&[Step::Checked(v(mine), RunVerdict::Differs), Step::Commit]);
                world.step(&Step::Changed(v(other)));
                world.steps(&[Step::Ended(v(mine), Outcome::Changed)]);
                while world.step(&Step::Commit) {}
            }
        }
        world.steps(&[Step::Wait(ms(20))]);
    }
    assert!((12..=40).contains(&repairs), "{repairs} repairs of both in two minutes");
    assert_eq!(party(&world, 0), Some(Culprit::Ours(v(1))));
    assert_eq!(party(&world, 1), Some(Culprit::Ours(v(0))));
    assert_eq!(classes(&world, 0).last(), Some(&Class::NotIdempotent));
    undo(&mut world, 2);
    assert_eq!(world.starts.last().map(|start| start.vertex), Some(v(2)), "a third one goes on");
    sound(&world);
}

/// F-10: two daemons with opposite graphs look to each other like any other party.
#[test]
fn f10_another_daemon_is_another_party() {
    let world = fought(Shape::of(1), 0);
    assert_eq!(party(&world, 0), Some(Culprit::Foreign));
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
        check(&mut world, 0, RunVerdict::Differs);
        remade(&mut world, 0);
        repair(&mut world, 0);
    }
    world.steps(&[Step::Crash { kept: 0 }, Step::Watching(v(0))]);
    remade(&mut world, 0);
    repair(&mut world, 0);
    assert_eq!(classes(&world, 0), [Class::Intentional; Meta::REVERSALS * 4 + 1]);
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
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
    assert_eq!(party(&world, 0), Some(Culprit::Foreign));
    assert_eq!(classes(&world, 0), vec![Class::Intentional; runs]);
    sound(&world);
}

/// E-20: a copy whose source others change again and again is no fight, and each change is intentional; drift of the copy beside it is
/// one all the same, and what is made of something else by our own doing still counts.
#[test]
fn e20_a_source_that_others_change_is_no_fight() {
    let mut world = settled(&[Shape::of(1)]);
    let follow = |world: &mut World, is_supplied: bool| {
        undo(world, 0);
        let (run, _) = world.in_progress(v(0)).expect("a run");
        world.deliver(Event::Remade(run));
        if is_supplied {
            world.deliver(Event::Supplied(run));
        }
        repair(world, 0);
        world.steps(&[Step::Wait(ms(500))]);
    };
    for _ in 0..Meta::REVERSALS * 4 {
        follow(&mut world, true);
    }
    assert_eq!(classes(&world, 0), [Class::Intentional; Meta::REVERSALS * 4]);
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    for _ in 0..Meta::REVERSALS {
        assert!(!is_contended(&world, 0));
        follow(&mut world, true);
        undo(&mut world, 0);
        repair(&mut world, 0);
    }
    assert!(is_contended(&world, 0), "drift is a fight");
    sound(&world);
    let mut world = settled(&[Shape::of(1)]);
    for _ in 0..Meta::REVERSALS {
        follow(&mut world, false);
    }
    assert!(is_contended(&world, 0), "it may be our own doing");
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
        assert_eq!(standing(&world, 0), VertexStatus::Settled);
        assert_eq!(standing(&world, 1), VertexStatus::Settled);
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

/// A command without guard that events run.
fn deed(shape: Shape, number: u32) -> Shape {
    shape.nature(number, |nature| {
        (nature.check, nature.slot) = (Check::Once, SlotClass::Command);
    })
}

/// Begins the apply of that one, and leaves it in progress.
fn begin(world: &mut World, number: u32) {
    world.steps(&[Step::Checked(v(number), RunVerdict::Differs), Step::Commit]);
}

fn end(world: &mut World, number: u32) {
    world.steps(&[Step::Ended(v(number), Outcome::Changed)]);
    while world.step(&Step::Commit) {}
}

/// An event a second sets it off, while an unrelated command runs all the time.
fn beside_a_long_run(shape: Shape) -> World {
    let mut world = settled(&[deed(shape, 1)]);
    world.steps(&[Step::Changed(v(1))]);
    begin(&mut world, 1);
    for _ in 0..Meta::REVERSALS * 4 {
        world.steps(&[Step::Wait(ms(1000)), Step::Changed(v(0))]);
        assert!(world.in_progress(v(0)).is_some(), "{}", world.log.join("\n"));
        repair(&mut world, 0);
    }
    world
}

/// E-20: a command that runs all the while undoes nothing again and again: it has begun once. A deed that others cause is no fight
/// beside it.
#[test]
fn e20_one_long_run_sets_off_nothing_again_and_again() {
    let world = beside_a_long_run(deed(Shape::of(2), 0));
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    sound(&world);
    let mut world = settled(&[deed(Shape::of(2), 1)]);
    world.steps(&[Step::Changed(v(1))]);
    begin(&mut world, 1);
    for _ in 0..Meta::REVERSALS {
        undo(&mut world, 0);
        repair(&mut world, 0);
    }
    assert_eq!(party(&world, 0), Some(Culprit::Foreign));
    sound(&world);
}

/// E-20: who was at work each time is named only if it can have touched the object: a command can, a timer that occupies the slot of
/// a command cannot.
#[test]
fn e20_what_is_confined_to_its_claims_is_not_named() {
    for (confined, named) in [(false, Some(Culprit::Ours(v(1)))), (true, None)] {
        let beside = |nature: &mut steadfast_engine::Nature| {
            (nature.slot, nature.confined) = (SlotClass::Command, confined);
        };
        let mut world = settled(&[Shape::of(2).nature(1, beside)]);
        for _ in 0..Meta::REVERSALS {
            undo(&mut world, 1);
            begin(&mut world, 1);
            undo(&mut world, 0);
            end(&mut world, 1);
            repair(&mut world, 0);
            world.steps(&[Step::Wait(ms(1000))]);
        }
        assert_eq!(party(&world, 0), named, "confined: {confined}");
        sound(&world);
    }
}

/// E-20: nobody can cause a tick, also where a command that it notifies, or another, is begun for each.
#[test]
fn e20_a_tick_is_no_fight() {
    let mut world = settled(&[handler(handler(Shape::of(2).notify(0, 1), 0), 1)]);
    for _ in 0..Meta::REVERSALS * 4 {
        // It ticks while its handler runs, each time.
        world.steps(&[Step::Changed(v(0))]);
        repair(&mut world, 0);
        begin(&mut world, 1);
        world.steps(&[Step::Wait(ms(1000)), Step::Changed(v(0))]);
        repair(&mut world, 0);
        end(&mut world, 1);
        repair(&mut world, 1);
    }
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    assert_eq!(standing(&world, 1), VertexStatus::Settled);
    sound(&world);
}

/// E-20: a command that is set off by each run of another is no fight where that one is not set off by it: a chain ends.
#[test]
fn e20_a_chain_of_commands_is_no_fight() {
    let mut world = settled(&[deed(deed(Shape::of(2), 0), 1)]);
    for _ in 0..Meta::REVERSALS * 4 {
        world.steps(&[Step::Wait(ms(2000)), Step::Changed(v(1))]);
        begin(&mut world, 1);
        world.steps(&[Step::Changed(v(0))]);
        repair(&mut world, 0);
        end(&mut world, 1);
    }
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    assert_eq!(standing(&world, 1), VertexStatus::Settled);
    sound(&world);
}

/// Lets two run, the second of which sets off the first by a file, for two minutes; answers how often the first was run.
fn go_round(shape: Shape, sets_off: &[(u32, u32)]) -> (World, usize) {
    let mut world = settled(&[shape]);
    world.steps(&[Step::Changed(v(0))]);
    let (mut runs, over) = (0, world.now.after(MINUTE * 2));
    while world.now < over {
        sound(&world);
        for number in 0..3 {
            if world.in_progress(v(number)).is_some() {
                runs += usize::from(number == 0);
                begin(&mut world, number);
                for (_, other) in sets_off.iter().filter(|(by, _)| *by == number) {
                    world.step(&Step::Changed(v(*other)));
                }
                end(&mut world, number);
                // Longer than any echo.
                world.steps(&[Step::Wait(ms(150))]);
            }
        }
        world.steps(&[Step::Wait(ms(10))]);
    }
    (world, runs)
}

/// E-20: what really goes round is bounded: two deeds over their files, over a handler, over three; and each names another one of them.
#[test]
fn e20_deeds_that_set_each_other_off_are_bounded() {
    let three = || deed(deed(deed(Shape::of(3), 0), 1), 2);
    let notified = || handler(deed(Shape::of(3).notify(0, 1), 0), 1);
    let ways = [
        (three(), vec![(0, 1), (1, 0)], 1),
        (three(), vec![(0, 1), (1, 2), (2, 0)], 2),
        (notified(), vec![(1, 0)], 1),
        // Over what is no command: a file that it overwrites, and whose repair it hears.
        (deed(Shape::of(3), 0), vec![(0, 1), (1, 0)], 1),
    ];
    for (shape, sets_off, by) in ways {
        let (world, runs) = go_round(shape, &sets_off);
        assert!((8..=16).contains(&runs), "{runs} runs, {sets_off:?}");
        assert_eq!(party(&world, 0), Some(Culprit::Ours(v(by))), "{sets_off:?}");
        sound(&world);
    }
}

/// E-20: a deed that was taken for one that goes round, for its handler is begun for each event and is at it when the next one comes, is
/// done for each event of others again as soon as one comes by itself.
#[test]
fn e20_a_deed_is_let_go_when_others_are_heard() {
    let mut world = settled(&[handler(deed(Shape::of(2).notify(0, 1), 0), 1)]);
    for _ in 0..=Meta::REVERSALS {
        world.steps(&[Step::Changed(v(0)), Step::Wait(ms(1000))]);
        repair(&mut world, 0);
        repair(&mut world, 1);
    }
    assert!(is_contended(&world, 0), "{}", world.log.join("\n"));
    for _ in 0..Meta::REVERSALS {
        world.steps(&[Step::Wait(ms(2000)), Step::Changed(v(0))]);
        if world.in_progress(v(0)).is_none() {
            world.steps(&[Step::Wait(ms(2000))]);
        }
        repair(&mut world, 0);
        repair(&mut world, 1);
    }
    assert_eq!(standing(&world, 0), VertexStatus::Settled, "{}", world.log.join("\n"));
    sound(&world);
}

/// A command that is done for refreshes alone.
fn handler(shape: Shape, number: u32) -> Shape {
    shape.nature(number, |nature| {
        (nature.check, nature.slot) = (Check::Events, SlotClass::Command);
    })
}

/// By whom the fights of a vertex were told to be, one after the other.
fn named(world: &World) -> Vec<Culprit> {
    let named = |notice: &Notice| match notice {
        Notice::Contended { party, .. } => Some(*party),
        _ => None,
    };
    world.told.iter().filter_map(named).collect()
}

/// E-20: who rewrites a file fifty times a second is at first taken for its handler, which is at it each time. He is named as soon as he
/// is heard alone, and that is told once.
#[test]
fn e20_who_was_blamed_wrongly_is_so_no_more() {
    let mut world = settled(&[handler(Shape::of(2).notify(0, 1), 1)]);
    let over = world.now.after(MINUTE);
    while world.now < over {
        sound(&world);
        world.steps(&[Step::Wait(ms(20))]);
        world.step(&Step::Changed(v(0)));
        if world.in_progress(v(0)).is_some() {
            repair(&mut world, 0);
        }
        if world.in_progress(v(1)).is_some() {
            repair(&mut world, 1);
        }
    }
    assert_eq!(party(&world, 0), Some(Culprit::Foreign));
    assert_eq!(named(&world), [Culprit::Ours(v(1)), Culprit::Foreign], "{}", world.log.join("\n"));
    assert_eq!(classes(&world, 0).last(), Some(&Class::Contended));
}

/// Undoes v0 by v1 where that is ours, else by nobody of ours, and lets it be repaired.
fn undone_by(world: &mut World, ours: bool) {
    world.steps(&[Step::Wait(ms(200))]);
    if ours {
        world.steps(&[Step::Changed(v(1))]);
        begin(world, 1);
    }
    world.steps(&[Step::Changed(v(0))]);
    if ours {
        end(world, 1);
    }
    while world.in_progress(v(0)).is_none() {
        sound(world);
        world.steps(&[Step::Wait(ms(500))]);
    }
    repair(world, 0);
}

/// E-20: the party is who is suspected of all the last reversals, also where it was another before; and two that take turns are no line
/// for each repair.
#[test]
fn e20_the_party_is_who_undoes_it_now() {
    let shape = Shape::of(2).meta(0, |meta| meta.on_conflict = Conflict::Win);
    let mut world = fought(deed(shape, 1), 0);
    for _ in 0..Meta::REVERSALS {
        undone_by(&mut world, true);
    }
    assert_eq!(party(&world, 0), Some(Culprit::Ours(v(1))));
    assert_eq!(named(&world).last(), Some(&Culprit::Ours(v(1))));
    undone_by(&mut world, true);
    assert_eq!(classes(&world, 0).last(), Some(&Class::NotIdempotent));
    let before = named(&world);
    for turn in 0..Meta::REVERSALS * 6 {
        undone_by(&mut world, turn / Meta::REVERSALS % 2 == 1);
    }
    assert_eq!(named(&world), before, "the next line is a summary, minutes later");
    sound(&world);
}
