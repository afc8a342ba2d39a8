//! The oracle itself is tested: a true trace with one lie in it must be found out, by the rule that the lie breaks.

use crate::invariants::{
    E1_ORDER, E4_EVENT, E6_ONCE, E8_COST, E9_REFRESH, E10_FAILURE, E12_LIMIT, E14_SEMAPHORE,
    E15_PAUSE, E16_STOP, E17_SWAP, E18_CONVERGED, HANDSHAKE,
};
use crate::oracle::Oracle;
use crate::races::settled;
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use crate::world::World;
use steadfast_engine::{
    Action, Event, Notice, Outcome, Pace, Record, RunId, Stamp, Start, Verdict, VertexId,
};

/// A parent, a child that it refreshes, two under one semaphore, one that fails, one that is limited.
fn trace() -> World {
    let pace = Pace { period_ns: 1_000_000_000, burst: 2 };
    let shape = Shape::of(6)
        .notify(0, 1)
        .semaphore(1)
        .uses(2, 0)
        .uses(3, 0)
        .meta(4, |meta| meta.retry = Some(1))
        .meta(5, |meta| meta.pace = Some(pace));
    let mut world = settled(&[shape.clone(), shape.define(0, 2)]);
    world.steps(&[
        Step::Changed(v(0)),
        Step::Changed(v(1)),
        Step::Checked(v(0), Verdict::Differs),
        Step::Commit,
        Step::Ended(v(0), Outcome::Changed),
        Step::Commit,
        Step::Checked(v(1), Verdict::Same),
        Step::Commit,
        Step::Changed(v(2)),
        Step::Changed(v(3)),
        Step::Checked(v(2), Verdict::Same),
        Step::Checked(v(3), Verdict::Same),
        Step::Changed(v(4)),
        Step::Checked(v(4), Verdict::Unknown),
        Step::Wake,
        Step::Checked(v(4), Verdict::Same),
        Step::Changed(v(5)),
        Step::Checked(v(5), Verdict::Same),
        Step::Changed(v(0)),
        Step::Swap { graph: 1, operator: false },
        Step::Checked(v(0), Verdict::Same),
        Step::Watching(v(0)),
        Step::Pause { drain: false, length: ms(60_000) },
        Step::Changed(v(2)),
        Step::Commit,
        Step::Checked(v(0), Verdict::Same),
        Step::Resume,
        Step::Commit,
        Step::Stop { grace: ms(1000) },
        Step::Wait(ms(1000)),
        Step::Ended(v(2), Outcome::Interrupted),
    ]);
    assert!(world.stopped, "{}", world.log.join("\n"));
    world
}

type Turn = (Event, Vec<Action>);

/// Shows the oracle the trace with what a lie makes of its turns. Answers the rules that are broken.
fn told(world: &World, lie: &dyn Fn(usize, &mut Turn)) -> Vec<String> {
    let mut oracle = Oracle::new(world.slots, world.one_shot);
    oracle.books.given = vec![1];
    for (at, (now, event, actions, engine)) in world.turns.iter().enumerate() {
        let mut turn = (event.clone(), actions.clone());
        lie(at, &mut turn);
        oracle.observe(*now, &turn.0, &turn.1, engine);
    }
    oracle.books.violations
}

/// The turn of the first event that is that one, from there on.
fn turn(world: &World, from: usize, event: &Event) -> usize {
    let found = world.turns.iter().skip(from).position(|(_, e, ..)| e == event);
    from + found.unwrap_or_else(|| panic!("{event:?} is in the trace"))
}

fn start(run: u64, number: u32) -> Action {
    let (run, vertex) = (RunId(run), VertexId(number));
    Action::Start(Start { run, vertex, look: false, refresh: false, noop: false })
}

fn without(turn: &mut Turn, gone: impl Fn(&Action) -> bool) {
    let before = turn.1.len();
    turn.1.retain(|action| !gone(action));
    assert!(turn.1.len() < before, "the lie leaves something out");
}

#[test]
fn the_truth_is_believed() {
    assert_eq!(told(&trace(), &|_, _| {}), Vec::<String>::new());
}

#[test]
fn each_lie_is_found_out() {
    let world = trace();
    let first = turn(&world, 0, &Event::Changed(v(0)));
    let second = turn(&world, 0, &Event::Changed(v(1)));
    let third = turn(&world, 0, &Event::Changed(v(3)));
    let pause = world.turns.iter().position(|(_, e, ..)| matches!(e, Event::Pause(_))).unwrap();
    let ended = world.turns.iter().position(|(_, e, ..)| matches!(e, Event::Ended(..))).unwrap();
    let stop = world.turns.iter().position(|(_, e, ..)| matches!(e, Event::Stop { .. })).unwrap();
    let swap = turn(&world, first, &Event::Changed(v(0)));
    let swap = turn(&world, swap + 1, &Event::Changed(v(0))) + 1;
    let limited = turn(&world, 0, &Event::Changed(v(5)));
    let fails = turn(&world, 0, &Event::Changed(v(4))) + 1;
    let loaded = |a: &Action| matches!(a, Action::Tell(Notice::Loaded { .. }));
    let at = |wanted: usize, lie: fn(&mut Turn)| {
        move |at: usize, turn: &mut Turn| {
            if at == wanted {
                lie(turn);
            }
        }
    };
    let is_start = |a: &Action| matches!(a, Action::Start(_));
    let cases: Vec<(&str, &str, Box<dyn Fn(usize, &mut Turn)>)> = vec![
        (
            "the child starts while its parent runs",
            E1_ORDER,
            Box::new(at(second, |turn| turn.1.push(start(900, 1)))),
        ),
        (
            "an event is forgotten",
            E4_EVENT,
            Box::new(at(first, |turn| without(turn, |a| matches!(a, Action::Start(_))))),
        ),
        ("a vertex starts twice", E6_ONCE, Box::new(at(first, |turn| turn.1.push(start(900, 0))))),
        ("a clean vertex starts", E8_COST, Box::new(at(first, |turn| turn.1.push(start(900, 4))))),
        (
            "the end owes nobody",
            E9_REFRESH,
            Box::new(at(ended, |turn| {
                for action in &mut turn.1 {
                    if let Action::End(record) = action {
                        record.owes.clear();
                    }
                }
            })),
        ),
        (
            "the child is not told",
            E9_REFRESH,
            Box::new(at(ended, |turn| {
                for action in &mut turn.1 {
                    if let Action::Start(start) = action {
                        start.refresh = false;
                    }
                }
            })),
        ),
        (
            "an end without a run",
            HANDSHAKE,
            Box::new(at(first, |turn| {
                let (run, vertex) = (RunId(1), VertexId(0));
                let (outcome, stamp) = (Outcome::Changed, Stamp(1));
                let (owes, paid, definition) = (vec![], None, 1);
                let begun = None;
                let record = Record { run, vertex, definition, outcome, begun, stamp, owes, paid };
                turn.1.push(Action::End(record));
            })),
        ),
        (
            "the failure is kept silent",
            E10_FAILURE,
            Box::new(at(fails, |turn| {
                without(turn, |a| matches!(a, Action::Tell(Notice::Retrying(..))));
            })),
        ),
        (
            "a start without a token",
            E12_LIMIT,
            // A third one of a burst of two: the load's was the first.
            Box::new(at(limited + 1, |turn| turn.1.push(start(900, 5)))),
        ),
        (
            "two hold a semaphore of one",
            E14_SEMAPHORE,
            Box::new(at(third, |turn| turn.1.push(start(900, 3)))),
        ),
        (
            "a start in a pause",
            E15_PAUSE,
            Box::new(at(pause + 1, |turn| turn.1.push(start(900, 2)))),
        ),
        ("a start after the stop", E16_STOP, Box::new(at(stop, |turn| turn.1.push(start(900, 4))))),
        (
            "a swap is taken while what it changes runs",
            E17_SWAP,
            Box::new(at(swap, |turn| {
                let (added, changed, removed, kept) = (0, 1, 0, 5);
                turn.1.push(Action::Tell(Notice::Loaded { added, changed, removed, kept }));
            })),
        ),
        (
            "converged is told in the middle",
            E18_CONVERGED,
            Box::new(at(ended, |turn| turn.1.push(Action::Tell(Notice::Converged)))),
        ),
    ];
    let loads = world.turns.iter().filter(|(_, _, actions, _)| actions.iter().any(loaded)).count();
    assert_eq!(loads, 2);
    assert!(world.turns[first].2.iter().any(is_start));
    let mut believed = Vec::new();
    for (name, rule, lie) in &cases {
        let found = told(&world, lie.as_ref());
        if !found.iter().any(|found| found.starts_with(rule)) {
            believed.push(format!("{name}: {found:?}"));
        }
    }
    assert!(believed.is_empty(), "{}", believed.join("\n"));
}
