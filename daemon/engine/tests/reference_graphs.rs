//! W-1 to W-15: graphs on which another engine was measured, with the number of `CheckApply` that this engine needs.
//!
//! Times are measured by the bench target. The tests count the work, which does not depend on the machine.

use crate::environment::World;
use crate::races::{check, repair, settled, sound, started};
use crate::shape::{Shape, ms, v};
use crate::step::Step;
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::{
    Action, Engine, Event, Notice, Outcome, Pace, Pause, RunId, RunPolicy, RunVerdict, Slots,
    Start, Swap, Tick, VertexId, VertexStatus,
};

/// An engine over a large graph whose checks all find the declared state, with a list of them.
struct Plain {
    engine: Engine,
    checks: Vec<VertexId>,
    now: Tick,
}

impl Plain {
    fn new() -> Self {
        let slots = Slots { threads: 1000, commands: 1000, replaceable: 0 };
        Self { engine: Engine::new(slots, false), checks: Vec::new(), now: Tick(0) }
    }

    fn load(shape: &Shape) -> Self {
        let mut plain = Self::new();
        plain.swap(shape);
        plain
    }

    fn swap(&mut self, shape: &Shape) {
        let recall = std::collections::BTreeMap::new();
        self.handle(Event::Swap(Swap { graph: shape.build(), recall, operator: false }));
    }

    /// Delivers one event, completes everything that follows, and returns the number of checks.
    fn handle(&mut self, event: Event) -> usize {
        let before = self.checks.len();
        let mut events = std::collections::VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let checks = self.checks.len() - before;
            assert!(checks <= 100_000, "E-5, a bound on steps: {checks} checks for one event");
            self.now = self.now.after(Duration::from_nanos(1));
            for action in self.engine.handle(self.now, event) {
                events.extend(self.answer(&action));
            }
        }
        self.checks.len() - before
    }

    fn answer(&mut self, action: &Action) -> Option<Event> {
        match action {
            Action::Watch(id) => Some(Event::Watching(*id)),
            Action::Start(start) => {
                self.checks.push(start.vertex);
                Some(Event::Checked(start.run, RunVerdict::Same))
            }
            Action::SavePause(_) => Some(Event::PauseSaved),
            Action::Begin(_) | Action::Apply(..) | Action::End(_) | Action::Cancel(..) => {
                panic!("nothing is applied here: {action:?}")
            }
            Action::Mute(_) | Action::Unmute(_) => None,
            Action::Unwatch(_) | Action::Forget(..) | Action::Notify(_) => None,
        }
    }
}

/// Returns a tree in which each vertex has `fan` children.
pub(crate) fn tree(count: u32, fan: u32) -> Shape {
    (1..count).fold(Shape::of(count), |shape, number| shape.edge((number - 1) / fan, number))
}

/// W-1: A → C (notify), B → C, nothing between A and B: a change of A alone reaches C at once.
#[test]
fn w01_a_change_of_one_root_reaches_the_child() {
    let mut world = settled(&[Shape::of(3).notify(0, 2).edge(1, 2)]);
    world.steps(&[Step::Changed(v(0)), Step::Checked(v(0), RunVerdict::Differs), Step::Commit]);
    world.steps(&[Step::Ended(v(0), Outcome::Changed)]);
    assert_eq!(started(&world), [0, 2], "and B is left alone");
    assert!(world.starts[1].refresh);
    sound(&world);
}

/// W-2: a star of 1000 leaves, one leaf event: 1 `CheckApply`.
#[test]
fn w02_a_leaf_of_a_star_costs_one_check() {
    let shape = (1..=1000).fold(Shape::of(1001), |shape, leaf| shape.edge(0, leaf));
    let mut plain = Plain::load(&shape);
    assert_eq!(plain.checks.len(), 1001);
    assert_eq!(plain.handle(Event::Changed(v(500))), 1);
    assert_eq!(plain.checks.last(), Some(&v(500)));
    assert_eq!(
        plain.handle(Event::Changed(v(0))),
        1,
        "nor does the centre re-run its clean leaves"
    );
}

/// W-3: a chain of 1000, an event at the tail: 1 `CheckApply`.
#[test]
fn w03_the_tail_of_a_chain_costs_one_check() {
    let shape = (1..1000).fold(Shape::of(1000), |shape, number| shape.edge(number - 1, number));
    let mut plain = Plain::load(&shape);
    assert_eq!(plain.checks, (0..1000).map(v).collect::<Vec<_>>(), "in order");
    assert_eq!(plain.handle(Event::Changed(v(999))), 1);
    assert_eq!(plain.handle(Event::Changed(v(0))), 1);
}

/// W-4: a tree of 10 000, fan 10: n `CheckApply`, then silence.
#[test]
fn w04_a_tree_starts_with_one_check_each() {
    let mut plain = Plain::load(&tree(10_000, 10));
    assert_eq!(plain.checks.len(), 10_000);
    assert!(plain.engine.is_converged());
    assert_eq!(plain.engine.next_wakeup(), None);
    assert_eq!(plain.handle(Event::Wake), 0);
}

/// W-5: a tree of 10 000, fan 10: a reload of the same graph, a pause and a resume: 0 `CheckApply`.
#[test]
fn w05_an_unchanged_reload_and_a_pause_cost_no_check() {
    let shape = tree(10_000, 10);
    let mut plain = Plain::load(&shape);
    plain.swap(&shape);
    let until = Tick(u64::MAX / 2);
    plain.handle(Event::Pause(Pause { drain: false, until, recorded: false }));
    plain.handle(Event::Resume);
    assert_eq!(plain.checks.len(), 10_000);
    let other = shape.define(7777, 2);
    plain.swap(&other);
    assert_eq!(plain.checks[10_000..], [v(7777)], "one changed definition is one check");
}

/// W-6: 30 layers of 10, each joined to all of the next: one check each.
#[test]
fn w06_full_layers_settle_with_one_check_each() {
    let shape = layers(30, 10);
    let mut plain = Plain::load(&shape);
    assert_eq!(plain.checks.len(), 300);
    assert_eq!(plain.handle(Event::Changed(v(0))), 1);
    assert_eq!(plain.handle(Event::Changed(v(299))), 1);
}

pub(crate) fn layers(count: u32, width: u32) -> Shape {
    let mut shape = Shape::of(count * width);
    for layer in 1..count {
        for from in 0..width {
            for to in 0..width {
                shape = shape.edge((layer - 1) * width + from, layer * width + to);
            }
        }
    }
    shape
}

/// W-7: fan-in 10 000 → 1: one check each, the last one last.
#[test]
fn w07_a_fan_in_runs_the_last_one_once() {
    let shape = (0..10_000).fold(Shape::of(10_001), |shape, leaf| shape.edge(leaf, 10_000));
    let mut plain = Plain::load(&shape);
    assert_eq!(plain.checks.len(), 10_001);
    assert_eq!(plain.checks.last(), Some(&v(10_000)));
    assert_eq!(plain.handle(Event::Changed(v(3))), 1);
}

/// W-8: R → A → C, R → B → C (notify); B changes while C refreshes for A: 2 changes, 2 refreshes.
#[test]
fn w08_two_changes_are_two_refreshes() {
    let shape = Shape::of(4).edge(0, 1).edge(0, 2).notify(1, 3).notify(2, 3);
    let mut world = settled(&[shape]);
    world.steps(&[Step::Changed(v(1))]);
    repair(&mut world, 1);
    world.steps(&[Step::Checked(v(3), RunVerdict::Differs), Step::Commit, Step::Changed(v(2))]);
    repair(&mut world, 2);
    world.steps(&[Step::Ended(v(3), Outcome::Changed)]);
    assert_eq!(started(&world), [1, 3, 2, 3]);
    assert!(world.starts[1].refresh && world.starts[3].refresh);
    world.steps(&[Step::Commit]);
    repair(&mut world, 3);
    assert_eq!(started(&world).len(), 4, "and no third");
    assert!(world.engine.is_converged());
    sound(&world);
}

/// W-9: limit 1/s, burst 1, 50 events at once: the next repair is at most a second later, and uses no time of a parent.
#[test]
fn w09_events_take_no_tokens() {
    let pace = Pace { period_ns: 1_000_000_000, burst: 1 };
    let mut world = settled(&[Shape::of(2).edge(0, 1).meta(0, |meta| meta.pace = Some(pace))]);
    world.steps(&[Step::Wait(ms(5000))]);
    for _ in 0..50 {
        world.steps(&[Step::Changed(v(0))]);
    }
    check(&mut world, 0, RunVerdict::Same);
    assert_eq!(started(&world), [0]);
    assert!(matches!(
        world.engine.vertex_status(v(0)),
        Some(VertexStatus::WaitingForLimit(at)) if at.0 - world.now.0 == 1_000_000_000
    ));
    world.steps(&[Step::Changed(v(1))]);
    assert_eq!(started(&world), [0, 1], "a parent that is merely limited blocks nobody");
    world.steps(&[Step::Wait(ms(999))]);
    assert_eq!(started(&world), [0, 1]);
    world.steps(&[Step::Wait(ms(1))]);
    assert_eq!(started(&world), [0, 1, 0]);
    sound(&world);
}

/// W-10: 50 roots under one semaphore, a pause: paused after the end of the one that runs.
#[test]
fn w10_a_pause_waits_for_one_run_only() {
    let shape = (0..50).fold(Shape::of(50).semaphore(1), |shape, root| shape.uses(root, 0));
    let mut world = World::new(&[shape], Slots::default(), false);
    world.oracle.enabled = false;
    world.steps(&[Step::Swap { graph: 0, operator: false }]);
    for root in 0..50 {
        world.steps(&[Step::Watching(v(root))]);
    }
    for root in 0..3 {
        check(&mut world, root, RunVerdict::Same);
    }
    world.steps(&[Step::Pause { drain: false, length: ms(60_000) }, Step::Commit]);
    assert!(world.told.contains(&Notice::Pausing(vec![v(3)])));
    check(&mut world, 3, RunVerdict::Same);
    assert!(world.told.contains(&Notice::Paused));
    assert_eq!(started(&world), [0, 1, 2, 3], "first come, first served");
}

/// W-12: a parent fails for ever and its converged child drifts: shown as waiting for the parent, not converged.
#[test]
fn w12_a_child_of_a_failed_parent_is_shown() {
    let mut world = settled(&[Shape::of(2).edge(0, 1)]);
    world.steps(&[Step::Changed(v(0))]);
    check(&mut world, 0, RunVerdict::Unknown);
    world.steps(&[Step::Changed(v(1))]);
    check(&mut world, 0, RunVerdict::Unknown);
    assert_eq!(world.engine.vertex_status(v(1)), Some(VertexStatus::WaitingFor(vec![v(0)])));
    assert!(!world.engine.is_converged());
    assert_eq!(world.engine.counts().failed, 1);
    assert_eq!(world.engine.counts().waiting, 1);
    world.steps(&[Step::RetryNow(v(0))]);
    check(&mut world, 0, RunVerdict::Same);
    check(&mut world, 1, RunVerdict::Same);
    assert!(world.engine.is_converged());
    sound(&world);
}

/// W-13: an idle vertex has no timer and no action. The bench measures its bytes.
#[test]
fn w13_an_idle_vertex_asks_for_nothing() {
    let mut plain = Plain::load(&tree(100, 10));
    assert_eq!(plain.engine.next_wakeup(), None);
    assert!(plain.engine.handle(Tick(u64::MAX / 4), Event::Wake).is_empty());
    assert!(plain.engine.is_at_rest());
}

/// W-14: a clock that steps back stalls nothing: the engine's time never goes back.
#[test]
fn w14_a_clock_that_steps_back_does_no_harm() {
    let mut engine = Engine::new(Slots::default(), false);
    let graph = Shape::of(1).meta(0, |meta| meta.retry = None).build();
    let swap = Swap { graph, recall: std::collections::BTreeMap::new(), operator: false };
    drop(engine.handle(Tick(5_000_000_000), Event::Swap(swap)));
    let actions = engine.handle(Tick(4_000_000_000), Event::Watching(v(0)));
    let start = Start { run: RunId(1), vertex: v(0), look: false, refresh: false, noop: false };
    assert_eq!(actions, [Action::Start(start)]);
    let failed = engine.handle(Tick(1), Event::Checked(RunId(1), RunVerdict::Unknown));
    let due = Tick(5_100_000_000);
    assert!(failed.contains(&Action::Notify(Notice::Retrying(v(0), due))), "{failed:?}");
    assert_eq!(engine.next_wakeup(), Some(due));
    assert_eq!(engine.handle(Tick(2), Event::Wake), []);
    assert_eq!(engine.handle(due, Event::Wake).len(), 1);
}

/// W-15: `timer → exec`: the plain edge runs the command once, the notify edge each time the timer fires.
#[test]
fn w15_a_timer_notifies_each_interval() {
    for notify in [false, true] {
        let shape = Shape::of(2)
            .traits(0, |traits| traits.repeat = RunPolicy::Events)
            .traits(1, |traits| traits.repeat = RunPolicy::Once);
        let shape = if notify { shape.notify(0, 1) } else { shape.edge(0, 1) };
        let mut world = World::new(&[shape], Slots::default(), false);
        world.steps(&[Step::Swap { graph: 0, operator: false }]);
        world.steps(&[Step::Watching(v(0)), Step::Watching(v(1))]);
        repair(&mut world, 1);
        for _ in 0..3 {
            world.steps(&[Step::Changed(v(0))]);
            repair(&mut world, 0);
            if notify {
                repair(&mut world, 1);
            }
        }
        let runs = started(&world).iter().filter(|number| **number == 1).count();
        assert_eq!(runs, if notify { 4 } else { 1 });
        assert!(world.engine.is_converged());
        sound(&world);
    }
}

/// A swap shares the graph and does not copy it.
#[test]
fn a_swap_takes_the_graph_by_reference() {
    let graph = Shape::of(10).build();
    let recall = std::collections::BTreeMap::new();
    let mut engine = Engine::new(Slots::default(), true);
    let swap = Swap { graph: Arc::clone(&graph), recall, operator: false };
    let actions = engine.handle(Tick(0), Event::Swap(swap));
    assert_eq!(actions.iter().filter(|a| matches!(a, Action::Start(_))).count(), 10);
    assert!(!actions.iter().any(|a| matches!(a, Action::Watch(_))), "one shot: no watches");
}
