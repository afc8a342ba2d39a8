//! A program that drives the engine, for a target without an operating system. Built by tests/purity/run.

use std::hint::black_box;
use steadfast_engine::{Engine, Event, Graph, Slots, Swap, Tick};

fn main() {
    // `black_box` hides the values from the compiler, so that it cannot remove the engine.
    let graph = Graph::new(black_box(Vec::new()), black_box(Vec::new()), black_box(Vec::new()));
    let mut engine = Engine::new(Slots::default(), black_box(false));
    let graph = graph.unwrap_or_else(|_| Graph::empty());
    let swap = Swap { graph: graph.into(), recall: black_box(Default::default()), operator: true };
    for event in black_box(vec![Event::Swap(swap), Event::Wake]) {
        let now = black_box(Tick::default());
        for action in engine.handle(now, event) {
            black_box(action);
        }
        black_box(engine.next_wakeup());
        black_box(engine.counts());
    }
    black_box(engine);
}
