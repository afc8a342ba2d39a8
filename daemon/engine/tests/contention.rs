//! E-20: one test for each rule of contention, and one for each known defect of other programs, by name.

use crate::environment::World;
use crate::races::{check, repair, settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use std::time::Duration;
use steadfast_engine::{
    Action, Class, Conflict, Culprit, ExecutorKind, Meta, Notice, Outcome, RunPolicy, RunVerdict,
    VertexStatus,
};

pub(crate) const MINUTE: Duration = Duration::from_mins(1);

/// Undoes the repair of a vertex, later than any echo of it.
pub(crate) fn undo(world: &mut World, number: u32) {
    world.steps(&[Step::Wait(ms(200)), Step::Changed(v(number))]);
}

/// Returns a world in which another party contends for vertex `number` of the shape from now on.
pub(crate) fn contended(shape: Shape, number: u32) -> World {
    let mut world = settled(&[shape]);
    for _ in 0..Meta::REVERSALS {
        undo(&mut world, number);
        repair(&mut world, number);
    }
    assert!(is_contended(&world, number), "{}", world.log.join("\n"));
    world.starts.clear();
    world
}

pub(crate) fn standing(world: &World, number: u32) -> VertexStatus {
    world.engine.vertex_status(v(number)).expect("a vertex of the graph")
}

pub(crate) fn is_contended(world: &World, number: u32) -> bool {
    matches!(standing(world, number), VertexStatus::Contended { .. })
}

pub(crate) fn party(world: &World, number: u32) -> Option<Culprit> {
    match standing(world, number) {
        VertexStatus::Contended { party, .. } => party,
        other => panic!("v{number} is not contended: {other:?}"),
    }
}

/// Undoes the vertex at every opportunity for `length`. Returns the times of its repairs, in milliseconds from now.
fn besiege(world: &mut World, number: u32, length: Duration) -> Vec<u64> {
    let (began, end) = (world.now, world.now.after(length));
    let mut repairs = Vec::new();
    while world.now < end {
        // No time passes once a rule is broken.
        sound(world);
        if world.in_progress(v(number)).is_some() {
            repair(world, number);
            repairs.push((world.now.0 - began.0) / 1_000_000);
        }
        world.steps(&[Step::Wait(ms(50))]);
        world.step(&Step::Changed(v(number)));
    }
    repairs
}

pub(crate) fn classes(world: &World, number: u32) -> Vec<Class> {
    let begins = world.turns.iter().flat_map(|(_, _, actions, _)| actions);
    begins
        .filter_map(|action| match action {
            Action::Begin(intent) if intent.vertex == v(number) => Some(intent.class),
            _ => None,
        })
        .collect()
}

pub(crate) fn told(world: &World, wanted: fn(&Notice) -> bool) -> usize {
    world.told.iter().filter(|notice| wanted(notice)).count()
}

/// E-20, F-9: five reversals within a minute are a contention; then repairs wait 1 s, 2 s, 4 s … up to 5 min, minus a
/// jitter.
#[test]
fn e20_repairs_back_off_with_a_cap_and_jitter() {
    let mut world = contended(Shape::of(1), 0);
    let repairs = besiege(&mut world, 0, Duration::from_hours(1));
    let mut wait = Meta::FIRST_BACKOFF;
    let mut whole = 0;
    for pair in [0].into_iter().chain(repairs.iter().copied()).collect::<Vec<_>>().windows(2) {
        let waited = ms(pair[1] - pair[0]);
        assert!(waited >= wait.mul_f64(0.75), "{waited:?} of {wait:?}");
        assert!(waited <= wait + ms(200), "{waited:?} of {wait:?}");
        whole += usize::from(waited >= wait);
        wait = (wait * 2).min(Meta::LONGEST_BACKOFF);
    }
    assert!((18..=26).contains(&repairs.len()), "{repairs:?}");
    assert!(whole < repairs.len() / 2, "no wait is left out in part: there is no jitter");
    assert_eq!(told(&world, |n| matches!(n, Notice::Contended { .. })), 1, "one line");
    let summaries = told(&world, |n| matches!(n, Notice::StillContended { .. }));
    assert!((4..=6).contains(&summaries), "a summary each ten minutes: {summaries}");
    sound(&world);
}

/// E-20: an engine repeats its jitter exactly, and two vertices have different ones.
#[test]
fn e20_jitter_is_neither_chance_nor_shared() {
    let run = |number: u32| {
        let mut world = contended(Shape::of(2), number);
        besiege(&mut world, number, Duration::from_mins(2))
    };
    assert_eq!(run(0), run(0));
    assert_ne!(run(0), run(1));
}

/// E-20: each repair of drift has its class, from the first to the last.
#[test]
fn e20_each_change_has_its_class() {
    let mut world = World::new(&[Shape::of(1)], steadfast_engine::Slots::default(), false);
    world.steps(&[Step::Swap { graph: 0, operator: false }, Step::Watching(v(0))]);
    repair(&mut world, 0);
    for _ in 0..6 {
        undo(&mut world, 0);
        world.steps(&[Step::Wait(ms(1000))]);
        repair(&mut world, 0);
    }
    world.steps(&[Step::RetryNow(v(0))]);
    repair(&mut world, 0);
    let corrective = [Class::Corrective; 5];
    let mut expected = vec![Class::Intentional];
    expected.extend(corrective);
    expected.extend([Class::Contended, Class::Intentional]);
    assert_eq!(classes(&world, 0), expected);
    sound(&world);
}

/// E-20: a refresh has the class of the last change of its parent, even after another look at the parent.
#[test]
fn e20_a_refresh_is_of_the_class_of_its_cause() {
    let shape = Shape::of(2).notify(0, 1).traits(1, |traits| traits.repeat = RunPolicy::Events);
    let mut world = World::new(&[shape], steadfast_engine::Slots::default(), false);
    world.steps(&[Step::Swap { graph: 0, operator: false }]);
    world.steps(&[Step::Watching(v(0)), Step::Watching(v(1))]);
    let looked_at_again = |world: &mut World| {
        repair(world, 0);
        world.steps(&[Step::Changed(v(0))]);
        check(world, 0, RunVerdict::Same);
        repair(world, 1);
    };
    looked_at_again(&mut world);
    undo(&mut world, 0);
    looked_at_again(&mut world);
    for number in [0, 1] {
        assert_eq!(classes(&world, number), [Class::Intentional, Class::Corrective]);
    }
    sound(&world);
}

/// E-20: neighbours are repaired at once. Children of a contended parent run, and do not starve.
#[test]
fn e20_neighbours_and_children_go_on() {
    let mut world = contended(Shape::of(3).edge(0, 1), 0);
    undo(&mut world, 0);
    assert!(matches!(standing(&world, 0), VertexStatus::Contended { next: Some(_), .. }));
    let before = world.now;
    world.steps(&[Step::Changed(v(1)), Step::Changed(v(2))]);
    assert_eq!(started(&world), [1, 2], "{}", world.log.join("\n"));
    repair(&mut world, 1);
    repair(&mut world, 2);
    assert_eq!(world.now, before, "and no time had to pass");
    assert!(!world.engine.is_converged(), "what is contended is not converged");
    sound(&world);
}

/// E-20: a child of a vertex that never converged under its definition waits for it, contended or not.
#[test]
fn e20_a_new_definition_begins_without_the_old_contention() {
    let shape = Shape::of(2).edge(0, 1);
    let mut world = contended(shape.clone(), 0);
    undo(&mut world, 0);
    world.graphs =
        [shape.clone(), shape.define(0, 2)].iter().map(|s| (s.build(), vec![])).collect();
    world.steps(&[Step::Swap { graph: 1, operator: false }, Step::Watching(v(0))]);
    assert_eq!(started(&world), [0], "at once, whatever its wait was");
    world.steps(&[Step::Changed(v(1))]);
    assert_eq!(started(&world), [0], "v1 waits for the new v0");
    repair(&mut world, 0);
    assert_eq!(classes(&world, 0).last(), Some(&Class::Intentional));
    assert_eq!(started(&world), [0, 1]);
    assert!(!is_contended(&world, 0));
    sound(&world);
}

/// Defect of others: a back-off counter that never resets. E-20: a quiet time longer than the wait ends the contention,
/// reported once.
#[test]
fn e20_a_counter_that_never_resets() {
    let mut world = contended(Shape::of(1), 0);
    besiege(&mut world, 0, Duration::from_secs(20));
    world.steps(&[Step::Wait(MINUTE)]);
    if world.in_progress(v(0)).is_some() {
        repair(&mut world, 0);
    }
    world.steps(&[Step::Wait(MINUTE * 2)]);
    assert_eq!(standing(&world, 0), VertexStatus::Settled, "{}", world.log.join("\n"));
    assert_eq!(told(&world, |n| matches!(n, Notice::ContentionEnded(_))), 1);
    assert!(world.engine.is_converged());
    world.starts.clear();
    undo(&mut world, 0);
    assert_eq!(started(&world), [0], "at once, as at the beginning");
    sound(&world);
}

/// Defect of others: a counter that resets too early. E-20: a quiet time shorter than the wait, or than the window,
/// ends nothing.
#[test]
fn e20_a_counter_that_resets_too_early() {
    let mut world = contended(Shape::of(1), 0);
    // Undone 40 s after each repair: longer than the first waits, and still too early.
    let mut waits = Vec::new();
    for _ in 0..9 {
        world.steps(&[Step::Wait(Duration::from_secs(40)), Step::Changed(v(0))]);
        let before = world.now;
        for _ in 0..10_000 {
            if world.in_progress(v(0)).is_some() {
                break;
            }
            world.steps(&[Step::Wait(ms(100))]);
        }
        waits.push(world.now.0 - before.0);
        repair(&mut world, 0);
        assert!(is_contended(&world, 0), "{}", world.log.join("\n"));
    }
    assert_eq!(waits[0], 0);
    assert!(waits.last() > Some(&60_000_000_000), "it went on to double: {waits:?}");
    assert_eq!(told(&world, |n| matches!(n, Notice::ContentionEnded(_))), 0);
    sound(&world);
}

/// Defect of others: one failed sync blocks all later ones; after one failed check nothing is updated any more.
#[test]
fn e20_one_failure_that_blocks_all_that_follows() {
    let mut world = settled(&[Shape::of(2).meta(0, |meta| meta.retry = Some(1))]);
    undo(&mut world, 0);
    check(&mut world, 0, RunVerdict::Unknown);
    world.steps(&[Step::Wait(ms(100))]);
    check(&mut world, 0, RunVerdict::Unknown);
    assert_eq!(standing(&world, 0), VertexStatus::Failed);
    world.starts.clear();
    undo(&mut world, 1);
    undo(&mut world, 0);
    assert_eq!(
        started(&world),
        [1, 0],
        "the other one goes on, and so does it with the next event"
    );
    repair(&mut world, 1);
    world.steps(&[
        Step::Checked(v(0), RunVerdict::Differs),
        Step::Commit,
        Step::Ended(v(0), Outcome::Failed { touched: true }),
        Step::Commit,
        Step::Wait(ms(400)),
    ]);
    repair(&mut world, 0);
    undo(&mut world, 0);
    repair(&mut world, 0);
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    sound(&world);
}

/// Defect of others: configured delays are ignored. A failure waits its `delay`, also in a contention and with events.
#[test]
fn e20_configured_delays_ignored() {
    let shape = Shape::of(1).meta(0, |meta| {
        meta.retry = None;
        meta.delay = ms(5000);
    });
    let mut world = contended(shape, 0);
    world.steps(&[Step::Wait(ms(1000)), Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Unknown);
    world.starts.clear();
    for _ in 0..49 {
        world.steps(&[Step::Wait(ms(100))]);
        world.step(&Step::Changed(v(0)));
    }
    assert_eq!(started(&world), [0; 0]);
    world.steps(&[Step::Wait(ms(200))]);
    assert_eq!(started(&world), [0]);
    sound(&world);
}

/// Defect of others: own changes count as drift. Effects of our own repair, during it and after it, are looked at,
/// found converged, and not counted: three repairs a minute are not a contention, although each causes three events.
#[test]
fn e20_own_changes_counted_as_drift() {
    let mut world = settled(&[Shape::of(1)]);
    for _ in 0..20 {
        undo(&mut world, 0);
        world.steps(&[
            Step::Checked(v(0), RunVerdict::Differs),
            Step::Commit,
            Step::Changed(v(0)),
            Step::Ended(v(0), Outcome::Changed),
            Step::Commit,
        ]);
        check(&mut world, 0, RunVerdict::Same);
        // The driver turns echoes into looks.
        world.steps(&[Step::Look(v(0))]);
        check(&mut world, 0, RunVerdict::Same);
        world.steps(&[Step::Wait(ms(20_000))]);
    }
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    assert_eq!(classes(&world, 0), [Class::Corrective; 20]);
    sound(&world);
}

/// E-20: another received value is no reversal: each is applied at once, with an intentional change and without
/// contention. Neither the repair limit nor a contention delays it.
#[test]
fn e20_values_that_come_are_no_contention() {
    let mut world = settled(&[Shape::of(1)]);
    for _ in 0..Meta::REVERSALS * 4 {
        world.steps(&[Step::Wait(ms(200)), Step::Received(v(0))]);
        repair(&mut world, 0);
    }
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    let all = classes(&world, 0);
    assert_eq!(all, vec![Class::Intentional; all.len()]);
    assert_eq!(all.len(), Meta::REVERSALS * 4);
    sound(&world);

    let mut world = contended(Shape::of(1), 0);
    world.steps(&[Step::Received(v(0))]);
    assert_eq!(started(&world), [0], "a contention does not put off what its sender wants");
    repair(&mut world, 0);
    assert!(is_contended(&world, 0), "nor does that end the contention");
    sound(&world);
}

/// Defect of others: the last of two quick changes is lost. In a contention, too, a check starts later than the last
/// event.
#[test]
fn e20_the_last_of_two_quick_changes_lost() {
    let mut world = contended(Shape::of(1), 0);
    undo(&mut world, 0);
    assert!(!world.step(&Step::Changed(v(0))), "it is muted: a check follows whatever comes");
    world.steps(&[Step::Wait(ms(1000))]);
    assert_eq!(started(&world), [0]);
    assert!(world.step(&Step::Changed(v(0))), "it listens before the check starts");
    repair(&mut world, 0);
    world.steps(&[Step::Wait(ms(2000))]);
    assert_eq!(started(&world), [0, 0], "what came during the repair makes another run");
    check(&mut world, 0, RunVerdict::Same);
    sound(&world);
}

/// E-20, F-9: a known contention needs no events: they are not delivered until the next check, and then again.
#[test]
fn e20_events_of_a_contention_are_not_delivered_while_it_waits() {
    let mut world = contended(Shape::of(1), 0);
    let mut heard = 0;
    let mut starts = 0;
    for _ in 0..60_000 {
        world.steps(&[Step::Wait(ms(1))]);
        heard += usize::from(world.step(&Step::Changed(v(0))));
        if world.in_progress(v(0)).is_some() {
            starts += 1;
            repair(&mut world, 0);
        }
    }
    assert!((4..=7).contains(&starts), "{starts} repairs in a minute");
    assert!(heard <= 2 * starts + 2, "{heard} events of 60 000 delivered for {starts} repairs");
    sound(&world);
}

/// `win`: repairs continue, never closer than the minimum. `yield`: no repairs until nobody changes the vertex for a
/// minute.
#[test]
fn e20_on_conflict_says_who_gives_way() {
    let shape = |conflict| Shape::of(1).meta(0, move |meta| meta.on_conflict = conflict);
    let mut world = contended(shape(Conflict::Win), 0);
    let repairs = besiege(&mut world, 0, MINUTE);
    assert!((150..=240).contains(&repairs.len()), "{} repairs", repairs.len());
    assert!(repairs.windows(2).all(|pair| pair[1] - pair[0] >= 250));
    sound(&world);

    let mut world = contended(shape(Conflict::Yield), 0);
    assert!(besiege(&mut world, 0, Duration::from_hours(2)).is_empty(), "it gives way");
    assert!(is_contended(&world, 0));
    let summaries = told(&world, |n| matches!(n, Notice::StillContended { .. }));
    assert!(
        (7..=12).contains(&summaries),
        "a summary each ten minutes, a little late: {summaries}"
    );
    world.steps(&[Step::Wait(Meta::LONGEST_BACKOFF + MINUTE)]);
    assert_eq!(started(&world), [0], "nobody has touched it for a minute");
    repair(&mut world, 0);
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    sound(&world);
}

/// `yield`: our own looks, as in a sweep, do not count as changes by others. The simulation has found a vertex that
/// waited for ever.
#[test]
fn e20_looks_do_not_hold_off_who_gives_way() {
    let shape = Shape::of(1).meta(0, |meta| meta.on_conflict = Conflict::Yield);
    let mut world = contended(shape, 0);
    world.steps(&[Step::Changed(v(0))]);
    let mut waited = Duration::ZERO;
    while started(&world).is_empty() {
        assert!(waited < Meta::LONGEST_BACKOFF + MINUTE * 3, "it waits for ever");
        world.steps(&[Step::Wait(MINUTE / 2), Step::Look(v(0))]);
        waited += MINUTE / 2;
    }
    assert_eq!(started(&world), [0]);
    repair(&mut world, 0);
    assert_eq!(standing(&world, 0), VertexStatus::Settled);
    sound(&world);
}

/// `yield`: a `retry` or a reload of the operator starts another attempt at once.
#[test]
fn e20_the_operator_ends_a_contention() {
    for step in [Step::RetryNow(v(0)), Step::Swap { graph: 0, operator: true }] {
        let shape = Shape::of(1).meta(0, |meta| meta.on_conflict = Conflict::Yield);
        let mut world = contended(shape, 0);
        undo(&mut world, 0);
        assert_eq!(started(&world), [0; 0]);
        world.steps(&[step]);
        assert_eq!(started(&world), [0], "{step:?}");
        repair(&mut world, 0);
        assert!(!is_contended(&world, 0));
        sound(&world);
    }
}

/// F-9, E-20: an adversary so fast that every apply fails is recognised as well: failures wait, too.
#[test]
fn e20_an_adversary_that_makes_each_apply_fail_is_recognised() {
    for done in [true, false] {
        let shape = Shape::of(1);
        let slots = steadfast_engine::Slots::default();
        let mut world = World::new(&[shape], slots, false);
        world.steps(&[Step::Swap { graph: 0, operator: false }, Step::Watching(v(0))]);
        if done {
            check(&mut world, 0, RunVerdict::Same);
        }
        let end = world.now.after(MINUTE);
        let mut applies = 0;
        while world.now < end {
            sound(&world);
            world.steps(&[Step::Wait(ms(1))]);
            world.step(&Step::Changed(v(0)));
            if world.in_progress(v(0)).is_some() {
                world.steps(&[Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
                world.step(&Step::Changed(v(0)));
                world.steps(&[Step::Ended(v(0), Outcome::Failed { touched: false })]);
                while world.step(&Step::Commit) {}
                applies += 1;
            }
        }
        assert!((8..=16).contains(&applies), "{applies} applies in a minute");
        assert!(world.told.iter().any(|n| matches!(n, Notice::Contended { .. })));
        sound(&world);
    }
}

/// Returns the last culprit reported if each repair is undone at once and no event arrives afterwards.
fn undone_at_once(shape: Shape) -> Option<Culprit> {
    let mut world = settled(&[shape]);
    for _ in 0..8 {
        // The echo of its own apply: a look that finds a difference again.
        world.steps(&[Step::Look(v(0))]);
        if world.in_progress(v(0)).is_some() {
            check(&mut world, 0, RunVerdict::Differs);
        }
        world.steps(&[Step::Wait(Duration::from_secs(5))]);
        repair_in_progress(&mut world, 0);
    }
    sound(&world);
    world.told.iter().rev().find_map(|notice| match notice {
        Notice::Contended { party, .. } => Some(*party),
        _ => None,
    })
}

/// E-20, F-10: a command whose check is never satisfied is not idempotent; for any other kind, somebody undoes the
/// repair at once.
#[test]
fn e20_an_immediate_difference_without_an_event_has_a_class() {
    let command = Shape::of(1).traits(0, |traits| traits.executor = ExecutorKind::Command);
    assert_eq!(undone_at_once(command), Some(Culprit::Itself));
    assert_eq!(undone_at_once(Shape::of(1)), Some(Culprit::Foreign));
}

fn repair_in_progress(world: &mut World, number: u32) {
    if world.in_progress(v(number)).is_some_and(|(_, run)| run.start.look) {
        check(world, number, RunVerdict::Differs);
    }
    if world.in_progress(v(number)).is_some() {
        repair(world, number);
    }
}
