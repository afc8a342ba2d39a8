//! The first state of an exploration: converged, and one repair short of a contention if contention is explored.

use crate::environment::{Station, World};
use crate::model::configurations::budget::Budget;
use crate::model::configurations::features::Configuration;
use crate::model::exploration::explorer::can_be_same;
use crate::shape::ms;
use crate::step::Step;
use steadfast_engine::{Outcome, Poll, RunPolicy, RunVerdict, VertexId, VertexSpec};

/// More steps than any world needs to converge.
const MOST: usize = 10_000;

/// Returns the limit of the repair limit: exactly the repeated repairs of the beginning.
pub(in crate::model) fn repair_limit(configuration: &Configuration) -> Option<u32> {
    let Budget { repairs_suspended, repaired, .. } = configuration.budget;
    let first = configuration.shapes.first();
    let count = first.iter().flat_map(|s| &s.vertices).filter(|v| is_repaired(v)).count();
    let repeated = u32::try_from(count).expect("small") * u32::from(repaired.saturating_sub(1));
    repairs_suspended.then_some(repeated)
}

/// Returns true if drift of the vertex is repaired at the beginning. A vertex with `realize` has never converged, and a
/// polled one gets no events.
fn is_repaired(vertex: &VertexSpec) -> bool {
    !vertex.meta.realize && vertex.meta.poll == Poll::Never && !vertex.meta.noop
}

/// Lets somebody change the vertex `times` times, with a repair each time: a state well after the last write, an
/// operation at once, since only an event after its own write is not attributed to others.
pub(in crate::model) fn drift(world: &mut World, vertex: &VertexSpec, times: u8) {
    if times == 0 || !is_repaired(vertex) {
        return;
    }
    let state = vertex.traits.repeat == RunPolicy::State;
    let echo = u8::from(!state);
    for _ in 0..times + echo {
        if state {
            world.step(&Step::Wait(ms(1100)));
        }
        world.step(&Step::Changed(vertex.id));
        settle(world, Some(vertex.id));
    }
}

/// Lets every vertex converge, except those with `realize`. One vertex is found to have changed.
pub(in crate::model) fn settle(world: &mut World, moved: Option<VertexId>) {
    let is_left = |world: &World, id: VertexId| {
        let vertex = world.oracle.books.vertices.get(&id);
        vertex.is_some_and(|vertex| vertex.declared.meta.realize)
    };
    for _ in 0..MOST {
        if !world.oracle.books.violations.is_empty() {
            return;
        }
        let run = world.runs.values().find(|run| !is_left(world, run.start.vertex)).copied();
        let step = match run {
            _ if !world.store.written.is_empty() => Step::Commit,
            Some(run) if run.station == Station::Apply => {
                Step::Ended(run.start.vertex, Outcome::Changed)
            }
            Some(run) if moved == Some(run.start.vertex) => {
                Step::Checked(run.start.vertex, RunVerdict::Differs)
            }
            Some(run) if can_be_same(world, run.start.vertex) => {
                Step::Checked(run.start.vertex, RunVerdict::Same)
            }
            Some(run) => Step::Checked(run.start.vertex, RunVerdict::Differs),
            None => return,
        };
        world.step(&step);
    }
    world.oracle.violated("a bound on steps: it does not become as declared");
}
