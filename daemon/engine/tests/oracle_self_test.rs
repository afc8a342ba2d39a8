//! Tests of the oracle itself: a true trace with one falsified turn must be rejected, by the rule that the
//! falsification breaks.

use crate::environment::World;
use crate::invariants::{
    E1_ORDER, E3_BACK_POKE, E4_EVENT, E5_COALESCE, E6_ONCE, E7_GRANT, E8_COST, E9_REFRESH,
    E10_FAILURE, E12_LIMIT, E14_SEMAPHORE, E15_PAUSE, E16_STOP, E17_SWAP, E18_CONVERGED, HANDSHAKE,
};
use crate::oracle::Oracle;
use crate::races::settled;
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use steadfast_engine::{
    Action, Event, Notice, Outcome, Pace, Record, RunId, RunVerdict, Stamp, Start, VertexId,
};

/// Records a trace with a parent, a child that it refreshes, two vertices under one semaphore, one that fails, and one
/// that is limited.
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
        Step::Checked(v(0), RunVerdict::Differs),
        Step::Commit,
        Step::Ended(v(0), Outcome::Changed),
        Step::Commit,
        Step::Checked(v(1), RunVerdict::Same),
        Step::Commit,
        Step::Changed(v(2)),
        Step::Changed(v(3)),
        Step::Checked(v(2), RunVerdict::Same),
        Step::Checked(v(3), RunVerdict::Same),
        Step::Changed(v(4)),
        Step::Checked(v(4), RunVerdict::Unknown),
        Step::Wake,
        Step::Checked(v(4), RunVerdict::Same),
        Step::Changed(v(5)),
        Step::Checked(v(5), RunVerdict::Same),
        Step::Changed(v(0)),
        Step::Swap { graph: 1, operator: false },
        Step::Checked(v(0), RunVerdict::Same),
        Step::Watching(v(0)),
        Step::Pause { drain: false, length: ms(60_000) },
        Step::Changed(v(2)),
        Step::Commit,
        Step::Checked(v(0), RunVerdict::Same),
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

/// Shows the oracle the trace with falsified turns. Returns the rules that are broken.
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

/// Returns the index of the first turn with this event, from index `from` on.
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

/// A falsification: its name, the rule that it breaks, the index of its turn, and the change.
type Lie = (&'static str, &'static str, usize, fn(&mut Turn));

fn each_is_found_out(world: &World, lies: &[Lie]) {
    for (name, rule, wanted, lie) in lies {
        let found = told(world, &|at, turn| {
            if at == *wanted {
                lie(turn);
            }
        });
        assert!(found.iter().any(|found| found.starts_with(rule)), "{name}: {found:?}");
    }
}

fn first_turn(world: &World, wanted: fn(&Event) -> bool) -> usize {
    world.turns.iter().position(|(_, event, ..)| wanted(event)).expect("it is in the trace")
}

/// Starts that no rule allows.
#[test]
fn wrong_starts_are_found_out() {
    let world = trace();
    let first = turn(&world, 0, &Event::Changed(v(0)));
    let second = turn(&world, 0, &Event::Changed(v(1)));
    let third = turn(&world, 0, &Event::Changed(v(3)));
    // A third start with a burst of two: the load's was the first.
    let limited = turn(&world, 0, &Event::Changed(v(5))) + 1;
    let right = turn(&world, 0, &Event::Changed(v(4))) + 3;
    let pause = first_turn(&world, |event| matches!(event, Event::Pause(_)));
    let stop = first_turn(&world, |event| matches!(event, Event::Stop { .. }));
    each_is_found_out(
        &world,
        &[
            ("before its parent", E1_ORDER, second, |turn| turn.1.push(start(900, 1))),
            ("twice", E6_ONCE, first, |turn| turn.1.push(start(900, 0))),
            ("clean", E8_COST, first, |turn| turn.1.push(start(900, 4))),
            ("again at its end", E5_COALESCE, right, |turn| turn.1.push(start(900, 4))),
            ("without a token", E12_LIMIT, limited, |turn| turn.1.push(start(900, 5))),
            ("two holders of one", E14_SEMAPHORE, third, |turn| turn.1.push(start(900, 3))),
            ("in a pause", E15_PAUSE, pause + 1, |turn| turn.1.push(start(900, 2))),
            ("after the stop", E16_STOP, stop, |turn| turn.1.push(start(900, 4))),
            ("none at all", E4_EVENT, first, |turn| {
                without(turn, |action| matches!(action, Action::Start(_)));
            }),
        ],
    );
}

/// Ignored events of ancestors or descendants.
#[test]
fn ignored_actions_are_found() {
    let shape = Shape::of(4).edge(0, 1).semaphore(1).uses(1, 0).uses(2, 0);
    let mut failed = settled(std::slice::from_ref(&shape));
    failed.steps(&[
        Step::Changed(v(0)),
        Step::Checked(v(0), RunVerdict::Unknown),
        Step::Changed(v(3)),
    ]);
    let mut queued = settled(&[shape]);
    queued.steps(&[Step::Changed(v(2)), Step::Changed(v(1)), Step::Changed(v(3))]);
    let lie = |turn: &mut Turn, number| *turn = (Event::Changed(v(number)), Vec::new());
    for (world, rule, number) in [(failed, E3_BACK_POKE, 1), (queued, E7_GRANT, 0)] {
        assert_eq!(told(&world, &|_, _| {}), Vec::<String>::new());
        let last = turn(&world, 0, &Event::Changed(v(3)));
        let found = told(&world, &|at, turn| {
            if at == last {
                lie(turn, number);
            }
        });
        assert!(found.iter().any(|found| found.starts_with(rule)), "{rule}: {found:?}");
    }
}

/// Wrong records and refreshes.
#[test]
fn wrong_records_are_found_out() {
    let world = trace();
    let first = turn(&world, 0, &Event::Changed(v(0)));
    let ended = first_turn(&world, |event| matches!(event, Event::Ended(..)));
    each_is_found_out(
        &world,
        &[
            ("the end owes nobody", E9_REFRESH, ended, |turn| {
                for action in &mut turn.1 {
                    if let Action::End(record) = action {
                        record.owes.clear();
                    }
                }
            }),
            ("the child is not told", E9_REFRESH, ended, |turn| {
                for action in &mut turn.1 {
                    if let Action::Start(start) = action {
                        start.refresh = false;
                    }
                }
            }),
            ("an end without a run", HANDSHAKE, first, |turn| {
                turn.1.push(Action::End(Record {
                    run: RunId(1),
                    vertex: VertexId(0),
                    definition: 1,
                    outcome: Outcome::Changed,
                    begun: None,
                    stamp: Stamp(1),
                    owes: vec![],
                    paid: None,
                }));
            }),
        ],
    );
}

/// Wrong notices, and missing ones.
#[test]
fn wrong_notices_are_found_out() {
    let world = trace();
    let ended = first_turn(&world, |event| matches!(event, Event::Ended(..)));
    let fails = turn(&world, 0, &Event::Changed(v(4))) + 1;
    let again = turn(&world, 0, &Event::Changed(v(0))) + 1;
    let swap = turn(&world, again, &Event::Changed(v(0))) + 1;
    each_is_found_out(
        &world,
        &[
            ("the failure is kept silent", E10_FAILURE, fails, |turn| {
                without(turn, |action| matches!(action, Action::Notify(Notice::Retrying(..))));
            }),
            ("a swap is taken too early", E17_SWAP, swap, |turn| {
                let (added, changed, removed, kept) = (0, 1, 0, 5);
                turn.1.push(Action::Notify(Notice::Loaded { added, changed, removed, kept }));
            }),
            ("converged in the middle", E18_CONVERGED, ended, |turn| {
                turn.1.push(Action::Notify(Notice::Converged));
            }),
        ],
    );
}
