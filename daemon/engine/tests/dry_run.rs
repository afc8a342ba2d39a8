//! E-11: findings in a plan that are uncertain until another vertex is changed.

use crate::shape::{Shape, v};
use std::collections::BTreeMap;
use steadfast_engine::{
    Action, Engine, Event, HeldReason, Notice, RunId, RunPolicy, RunVerdict, Slots, Start, Swap,
    Tick, VertexId, VertexStatus,
};

/// Returns a plan with these findings: 0 changes, 1 has the verdict `found`, 2 is refreshed by 1, 3 comes after 1.
fn planned(found: RunVerdict) -> Engine {
    let shape = Shape::of(4)
        .notify(1, 2)
        .edge(1, 3)
        .traits(2, |traits| traits.repeat = RunPolicy::Events)
        .all(|meta| (meta.noop, meta.planned) = (true, true));
    let mut engine = Engine::new(Slots::default(), true);
    let swap = Swap { graph: shape.build(), recall: BTreeMap::new(), operator: true };
    let begun = engine.handle(Tick(1), Event::Swap(swap));
    let verdicts = [RunVerdict::Differs, found, RunVerdict::Differs, RunVerdict::Same];
    let mut starts = starts(&begun);
    while let Some(start) = starts.pop() {
        let verdict = verdicts[start.vertex.0 as usize];
        let next = engine.handle(Tick(2), Event::Checked(start.run, verdict));
        starts.extend(self::starts(&next));
    }
    assert!(engine.is_at_rest());
    engine
}

fn starts(actions: &[Action]) -> Vec<Start> {
    let start = |action: &Action| match action {
        Action::Start(start) => Some(*start),
        _ => None,
    };
    actions.iter().filter_map(start).collect()
}

fn run_of(actions: &[Action], number: u32) -> RunId {
    let start = starts(actions).into_iter().find(|start| start.vertex == v(number));
    start.expect("it is asked").run
}

const UNKNOWN: VertexStatus = VertexStatus::Held(HeldReason::UnknownUntil(VertexId(0)));

/// E-11: an uncertain finding is unknown, and so is the refresh that it would cause.
#[test]
fn e11_a_doubted_vertex_and_its_refreshes_are_unknown() {
    for found in [RunVerdict::Same, RunVerdict::Differs] {
        let mut engine = planned(found);
        let told = engine.handle(Tick(3), Event::Doubt { vertex: v(1), until: v(0) });
        let notice = Notice::Held(v(1), HeldReason::UnknownUntil(v(0)));
        assert!(told.contains(&Action::Notify(notice)), "{told:?}");
        assert_eq!(engine.vertex_status(v(1)), Some(UNKNOWN));
        let run = run_of(&told, 2);
        drop(engine.handle(Tick(4), Event::Checked(run, RunVerdict::Differs)));
        let perhaps = VertexStatus::Held(HeldReason::UnknownUntil(v(1)));
        assert_eq!(engine.vertex_status(v(2)), Some(perhaps), "{found:?}");
        assert_eq!(engine.vertex_status(v(3)), Some(VertexStatus::Settled));
        assert!(engine.is_at_rest());
    }
}

/// E-11: a failed check is unknown as well, and the vertices after it are looked at.
#[test]
fn e11_a_failed_check_below_a_doubt_is_unknown() {
    let mut engine = planned(RunVerdict::Unknown);
    assert_eq!(engine.vertex_status(v(1)), Some(VertexStatus::Failed));
    let told = engine.handle(Tick(3), Event::Doubt { vertex: v(1), until: v(0) });
    assert_eq!(engine.vertex_status(v(1)), Some(UNKNOWN));
    assert_eq!(engine.counts().failed, 0);
    let run = run_of(&told, 3);
    drop(engine.handle(Tick(4), Event::Checked(run, RunVerdict::Same)));
    assert_eq!(engine.vertex_status(v(3)), Some(VertexStatus::Settled));
}

/// E-11: a failed check below an uncertain vertex, refreshed by it or not, is repeated: the failure is no longer
/// certain.
#[test]
fn e11_a_vertex_that_failed_below_a_doubt_is_checked_again() {
    for shape in [Shape::of(3).notify(1, 2), Shape::of(3).edge(1, 2)] {
        is_asked_again(&shape);
    }
}

fn is_asked_again(shape: &Shape) {
    let shape = shape.clone().all(|meta| (meta.noop, meta.planned) = (true, true));
    let mut engine = Engine::new(Slots::default(), true);
    let swap = Swap { graph: shape.build(), recall: BTreeMap::new(), operator: true };
    let mut starts = starts(&engine.handle(Tick(1), Event::Swap(swap)));
    let verdicts = [RunVerdict::Differs, RunVerdict::Same, RunVerdict::Unknown];
    while let Some(start) = starts.pop() {
        let verdict = verdicts[start.vertex.0 as usize];
        starts.extend(self::starts(&engine.handle(Tick(2), Event::Checked(start.run, verdict))));
    }
    assert_eq!(engine.vertex_status(v(2)), Some(VertexStatus::Failed));
    let told = engine.handle(Tick(3), Event::Doubt { vertex: v(1), until: v(0) });
    let run = run_of(&told, 2);
    drop(engine.handle(Tick(4), Event::Checked(run, RunVerdict::Unknown)));
    let unknown = VertexStatus::Held(HeldReason::UnknownUntil(v(1)));
    assert_eq!(engine.vertex_status(v(2)), Some(unknown));
    assert!(engine.is_at_rest());
}

/// An uncertainty is reported once and does not change; outside of plans the event has no effect.
#[test]
fn a_doubt_is_said_once_and_in_plans_alone() {
    let mut engine = planned(RunVerdict::Same);
    drop(engine.handle(Tick(3), Event::Doubt { vertex: v(1), until: v(0) }));
    assert_eq!(engine.handle(Tick(4), Event::Doubt { vertex: v(1), until: v(3) }), []);
    let mut engine = Engine::new(Slots::default(), true);
    let graph = Shape::of(1).build();
    let swap = Swap { graph, recall: BTreeMap::new(), operator: true };
    let begun = engine.handle(Tick(1), Event::Swap(swap));
    drop(engine.handle(Tick(2), Event::Checked(run_of(&begun, 0), RunVerdict::Same)));
    assert_eq!(engine.handle(Tick(3), Event::Doubt { vertex: v(0), until: v(0) }), []);
}

#[test]
fn transitive_order_is_known() {
    let graph = Shape::of(4).edge(0, 1).edge(1, 2).build();
    let mut engine = Engine::new(Slots::default(), true);
    let swap = Swap { graph, recall: BTreeMap::new(), operator: true };
    drop(engine.handle(Tick(1), Event::Swap(swap)));
    assert_eq!(engine.not_after(v(0), &[v(1), v(2)]), None);
    assert_eq!(engine.not_after(v(0), &[v(2), v(3), v(1)]), Some(v(3)));
    assert_eq!(engine.not_after(v(2), &[v(0)]), Some(v(0)));
    assert_eq!(engine.not_after(v(0), &[v(0)]), Some(v(0)));
}

/// E-11: a check that fails after the changes of its ancestors is known to fail, until an ancestor is uncertain.
#[test]
fn e11_a_failure_that_is_expected_is_known() {
    let shape = Shape::of(4).edge(0, 1).edge(1, 2);
    let shape = shape.all(|meta| (meta.noop, meta.planned) = (true, true));
    let mut engine = Engine::new(Slots::default(), true);
    let swap = Swap { graph: shape.build(), recall: BTreeMap::new(), operator: true };
    let mut starts = starts(&engine.handle(Tick(1), Event::Swap(swap)));
    let verdicts =
        [RunVerdict::Differs, RunVerdict::Differs, RunVerdict::Unknown, RunVerdict::Same];
    while let Some(start) = starts.pop() {
        if start.vertex == v(2) {
            let unseen = |seen: &[u32]| engine.unseen_above(v(2), |id| seen.contains(&id.0));
            assert_eq!(unseen(&[0, 1]), None);
            assert_eq!((unseen(&[1]), unseen(&[0])), (Some(v(0)), Some(v(1))));
            engine.expect_failure(v(2));
        }
        let verdict = verdicts[start.vertex.0 as usize];
        starts.extend(self::starts(&engine.handle(Tick(2), Event::Checked(start.run, verdict))));
    }
    assert_eq!(engine.vertex_status(v(2)), Some(VertexStatus::Failed));
    assert!(engine.is_before(v(0), v(2)) && engine.is_before(v(0), v(1)));
    for (one, other) in [(2, 0), (3, 2), (0, 3), (1, 1)] {
        assert!(!engine.is_before(v(one), v(other)), "{one} {other}");
    }
    let told = engine.handle(Tick(3), Event::Doubt { vertex: v(1), until: v(3) });
    let run = run_of(&told, 2);
    drop(engine.handle(Tick(4), Event::Checked(run, RunVerdict::Unknown)));
    let unknown = VertexStatus::Held(HeldReason::UnknownUntil(v(1)));
    assert_eq!(engine.vertex_status(v(2)), Some(unknown));
}
