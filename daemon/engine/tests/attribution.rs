//! E-20, attribution of reversals: a command's own effect, two vertices that undo each other, another daemon.

use crate::contention::{MINUTE, classes, contended, is_contended, party, standing, undo};
use crate::environment::World;
use crate::races::{check, repair, settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use steadfast_engine::{
    Class, Conflict, Culprit, Event, ExecutorKind, Meta, Notice, Outcome, RunPolicy, RunVerdict,
    VertexStatus,
};

/// E-20: a command without guard that writes its own watched file is not idempotent, and is its own culprit.
#[test]
fn e20_a_command_that_writes_its_own_watch_file() {
    let deed = |traits: &mut steadfast_engine::Traits| {
        traits.repeat = RunPolicy::Once;
        traits.executor = ExecutorKind::Command;
    };
    let mut world =
        World::new(&[Shape::of(1).traits(0, deed)], steadfast_engine::Slots::default(), false);
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

/// A command that a stream of events triggers is not contended, however often it runs.
#[test]
fn e20_a_command_that_others_cause_is_no_contention() {
    let deed = |traits: &mut steadfast_engine::Traits| traits.repeat = RunPolicy::Events;
    let mut world = settled(&[Shape::of(1).traits(0, deed)]);
    for _ in 0..200 {
        undo(&mut world, 0);
        repair(&mut world, 0);
    }
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    assert_eq!(started(&world).len(), 200);
    sound(&world);
}

/// F-10, E-20: two vertices that undo each other (two commands on one object, invisible to claims) name each other.
#[test]
fn f10_two_of_ours_on_one_thing_name_each_other() {
    let command = |traits: &mut steadfast_engine::Traits| traits.executor = ExecutorKind::Command;
    let mut world = settled(&[Shape::of(3).traits(0, command).traits(1, command)]);
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

/// F-10: two daemons with opposite graphs see each other as a foreign party.
#[test]
fn f10_another_daemon_is_another_party() {
    let world = contended(Shape::of(1), 0);
    assert_eq!(party(&world, 0), Some(Culprit::Foreign));
}

/// Marks the run in progress as made from other inputs than the last good one.
fn remade(world: &mut World, number: u32) {
    let (run, _) = world.in_progress(v(number)).expect("a run");
    world.deliver(Event::Remade(run));
}

/// E-20: a run with changed inputs makes an intentional change, whatever triggered the run (an event, a look, a start);
/// drift is still corrective.
#[test]
fn e20_a_remade_vertex_was_reverted_by_nobody() {
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

/// E-20, E-9: a refresh caused by changed inputs is intentional; a refresh after drift is corrective.
#[test]
fn e20_a_refresh_by_a_remade_vertex_is_intentional() {
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

/// E-20: inputs that change again and again (a file that is its own secret, another party that rotates it a hundred
/// times a second) are bounded like a contention, and each change has the right class.
#[test]
fn e20_endless_remakes_are_bounded() {
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

/// E-20: a copy whose source others change again and again is not contended, and each change is intentional. Drift of
/// the copy meanwhile counts all the same, and so do inputs changed by our own runs.
#[test]
fn e20_a_source_that_others_change_is_no_contention() {
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
    assert!(is_contended(&world, 0), "drift is a contention");
    sound(&world);
    let mut world = settled(&[Shape::of(1)]);
    for _ in 0..Meta::REVERSALS {
        follow(&mut world, false);
    }
    assert!(is_contended(&world, 0), "it may be our own doing");
    sound(&world);
}

/// E-20: an operation of each start finds something to do each time. As declared, it is not idempotent and not
/// contended; neither are the vertices that it notifies. The first run, and requested ones, are intentional.
#[test]
fn e20_a_deed_of_each_start_is_not_idempotent() {
    let deed = |traits: &mut steadfast_engine::Traits| {
        (traits.repeat, traits.executor) = (RunPolicy::EachStart, ExecutorKind::Command);
    };
    let shape = Shape::of(2).notify(0, 1).traits(0, deed);
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
        world.steps(&[Step::RetryNow(v(0))]);
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

/// Makes a vertex a command without guard that events trigger.
fn deed(shape: Shape, number: u32) -> Shape {
    shape.traits(number, |traits| {
        (traits.repeat, traits.executor) = (RunPolicy::Once, ExecutorKind::Command);
    })
}

/// Begins the apply of a vertex, and leaves it in progress.
fn begin(world: &mut World, number: u32) {
    world.steps(&[Step::Checked(v(number), RunVerdict::Differs), Step::Commit]);
}

fn end(world: &mut World, number: u32) {
    world.steps(&[Step::Ended(v(number), Outcome::Changed)]);
    while world.step(&Step::Commit) {}
}

/// Triggers v1 by an event each second, while an unrelated command runs all the time.
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

/// E-20: a command that runs all the time counts as one cause only, since it has begun once. An operation that others
/// trigger is not contended beside it.
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

/// E-20: a vertex at work at each reversal is named only if it can have touched the object: a command can, a timer that
/// occupies the slot of a command cannot.
#[test]
fn e20_a_vertex_confined_to_its_claims_is_not_named() {
    for (confined, named) in [(false, Some(Culprit::Ours(v(1)))), (true, None)] {
        let beside = |traits: &mut steadfast_engine::Traits| {
            (traits.executor, traits.confined) = (ExecutorKind::Command, confined);
        };
        let mut world = settled(&[Shape::of(2).traits(1, beside)]);
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

/// E-20: a tick is never attributed, even if a command that it notifies, or another one, begins at each tick.
#[test]
fn e20_a_tick_is_no_contention() {
    let mut world = settled(&[handler(handler(Shape::of(2).notify(0, 1), 0), 1)]);
    for _ in 0..Meta::REVERSALS * 4 {
        // Each tick comes while its handler runs.
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

/// E-20: a command triggered by each run of another one is not contended unless it triggers the other one as well: a
/// chain ends.
#[test]
fn e20_a_chain_of_commands_is_no_contention() {
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

/// Runs v0 and its followers for two minutes, where `sets_off` lists the vertices that trigger each other by files.
/// Returns the number of runs of v0.
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

/// E-20: real loops are bounded: two operations that trigger each other by files, through a handler, or through a third
/// one. Each names another member of the loop.
#[test]
fn e20_deeds_that_set_each_other_off_are_bounded() {
    let three = || deed(deed(deed(Shape::of(3), 0), 1), 2);
    let notified = || handler(deed(Shape::of(3).notify(0, 1), 0), 1);
    let ways = [
        (three(), vec![(0, 1), (1, 0)], 1),
        (three(), vec![(0, 1), (1, 2), (2, 0)], 2),
        (notified(), vec![(1, 0)], 1),
        // Through a file that the command overwrites, and whose repair triggers the command.
        (deed(Shape::of(3), 0), vec![(0, 1), (1, 0)], 1),
    ];
    for (shape, sets_off, by) in ways {
        let (world, runs) = go_round(shape, &sets_off);
        assert!((8..=16).contains(&runs), "{runs} runs, {sets_off:?}");
        assert_eq!(party(&world, 0), Some(Culprit::Ours(v(by))), "{sets_off:?}");
        sound(&world);
    }
}

/// E-20: an operation that was taken for a loop, because its handler runs whenever the next event comes, runs for each
/// foreign event again as soon as one comes alone.
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

/// Makes a vertex a command that runs for refreshes only.
fn handler(shape: Shape, number: u32) -> Shape {
    shape.traits(number, |traits| {
        (traits.repeat, traits.executor) = (RunPolicy::Events, ExecutorKind::Command);
    })
}

/// Returns the reported culprits of contentions, in order.
fn named(world: &World) -> Vec<Culprit> {
    let named = |notice: &Notice| match notice {
        Notice::Contended { party, .. } => Some(*party),
        _ => None,
    };
    world.told.iter().filter_map(named).collect()
}

/// E-20: a party that rewrites a file fifty times a second is at first confused with the handler of the file, which
/// always runs at the time. The party is named as soon as an event comes alone, and reported once.
#[test]
fn e20_a_wrong_culprit_is_corrected() {
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

/// Undoes v0 during a run of v1 if `ours`, else without a run of ours, and repairs v0.
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

/// E-20: the culprit is the party of all the last reversals, even if another one was named before. Two parties that
/// alternate do not cause a notice for each repair.
#[test]
fn e20_the_party_is_who_undoes_it_now() {
    let shape = Shape::of(2).meta(0, |meta| meta.on_conflict = Conflict::Win);
    let mut world = contended(deed(shape, 1), 0);
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
