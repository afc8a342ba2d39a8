//! A model checker explores every order of everything that may happen, through the very `handle` that ships.
//!
//! The state is the engine, the world and the oracle; it is recognised by ranks in place of numbers that only grow. By default
//! all graphs of up to 3 vertices (each edge absent, plain or notifying) under small budgets. More:
//! `cargo test -p steadfast-engine --release --test engine model -- --ignored`.

use crate::model::explorer::{Budget, Explorer};
use crate::shape::Shape;

mod explorer;
mod hashing;

/// All acyclic graphs of that many vertices, in the order of their numbers.
fn graphs(count: u32) -> Vec<Shape> {
    let pairs: Vec<(u32, u32)> =
        (0..count).flat_map(|from| (from + 1..count).map(move |to| (from, to))).collect();
    let mut all = vec![Shape::of(count)];
    for (from, to) in pairs {
        all = all
            .into_iter()
            .flat_map(|shape| [shape.clone(), shape.clone().edge(from, to), shape.notify(from, to)])
            .collect();
    }
    all
}

/// Explores each, and asks that all together have shown all that there is to see.
fn explore(name: &str, shapes: Vec<Vec<Shape>>, budget: Budget) {
    let mut seen = explorer::Sights::default();
    let mut states = 0;
    for shapes in shapes {
        let found = Explorer::new(&shapes, budget).explore();
        states += found.states;
        seen.extend(found.sights);
    }
    assert!(states > 100, "{name}: {states} states are none");
    budget.must_have_seen(name, &seen);
}

fn alone(shapes: Vec<Shape>) -> Vec<Vec<Shape>> {
    shapes.into_iter().map(|shape| vec![shape]).collect()
}

/// Events and failures, on all 27 graphs of 3 vertices, all 3 of 2, and 1 of 1.
#[test]
fn model_events_and_failures() {
    let small = graphs(1).into_iter().chain(graphs(2)).collect();
    let budget = Budget { events: 2, failures: 1, ..Budget::NONE };
    explore("small graphs", alone(small), budget);
    let budget = Budget { events: 1, failures: 1, total_events: 1, ..Budget::NONE };
    explore("3 vertices", alone(graphs(3)), budget);
}

/// A pause, with and without drain, and a resume, anywhere.
#[test]
fn model_pause_and_resume() {
    let small = graphs(1).into_iter().chain(graphs(2)).collect();
    explore("small graphs", alone(small), Budget { events: 1, pauses: 1, ..Budget::NONE });
    explore("3 vertices", alone(graphs(3)), Budget { pauses: 1, drains: false, ..Budget::NONE });
}

/// A crash between any two actions, with any prefix of what was written kept.
#[test]
fn model_crash() {
    let small = graphs(1).into_iter().chain(graphs(2)).collect();
    let budget = Budget { events: 1, crashes: 1, failures: 1, ..Budget::NONE };
    explore("small graphs", alone(small), budget);
    explore("3 vertices", alone(graphs(3)), Budget { crashes: 1, ..Budget::NONE });
}

/// A swap that changes, adds or removes one vertex, anywhere.
#[test]
fn model_swap() {
    let pairs = |count: u32| -> Vec<Vec<Shape>> {
        graphs(count)
            .into_iter()
            .flat_map(|shape| {
                let changed = shape.clone().define(0, 2);
                let removed = shape.clone().without(count - 1);
                [
                    vec![shape.clone(), changed],
                    vec![removed.clone(), shape.clone()],
                    vec![shape, removed],
                ]
            })
            .collect()
    };
    explore("2 vertices", pairs(2), Budget { events: 1, swaps: 1, failures: 1, ..Budget::NONE });
    explore("3 vertices", pairs(3), Budget { swaps: 1, ..Budget::NONE });
}

/// One semaphore of 1 over all, and one slot.
#[test]
fn model_semaphore_and_slot() {
    let narrow = |shape: Shape| {
        let count = u32::try_from(shape.vertices.len()).expect("small");
        (0..count).fold(shape.semaphore(1), |shape, number| shape.uses(number, 0))
    };
    let shapes: Vec<Shape> = graphs(3).into_iter().map(narrow).collect();
    let budget = Budget { events: 1, total_events: 1, ..Budget::NONE };
    explore("one semaphore", alone(shapes), budget);
    let budget = Budget { one_slot: true, ..budget };
    explore("one slot", alone(graphs(3)), budget);
}

/// More of everything together: minutes, not seconds.
#[test]
#[ignore = "takes minutes: cargo test -p steadfast-engine --release --test engine model -- --ignored"]
fn model_everything_at_once() {
    let budget =
        Budget { events: 1, total_events: 2, failures: 1, pauses: 1, crashes: 1, ..Budget::NONE };
    explore("all", alone(graphs(2).into_iter().chain(graphs(3)).collect()), budget);
}
