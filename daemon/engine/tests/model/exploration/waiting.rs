//! The passing of time: deadlines that come by themselves, and states that need the tick of a poll.

use crate::environment::World;
use crate::model::exploration::explorer::State;
use crate::oracle_log::Vertex;
use steadfast_engine::{Mode, Poll, Tick};

/// Returns the time of the next poll tick, by the oracle's records.
pub(in crate::model) fn next_tick(world: &World) -> Option<Tick> {
    let books = &world.oracle.books;
    let next = |vertex: &Vertex| {
        let Poll::Every(interval) = vertex.declared.meta.poll else { return None };
        let length = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        let passed = books.now.0.saturating_sub(vertex.loaded.0) / length;
        Some(Tick(vertex.loaded.0 + (passed + 1) * length))
    };
    books.vertices.values().filter_map(next).min()
}

/// Returns true if a poll tick is the next deadline. Ticks come for ever, so each must be paid from the budget. Earlier
/// deadlines are free.
pub(in crate::model) fn is_tick_next(world: &World) -> bool {
    let wakeup = world.engine.next_wakeup();
    next_tick(world).is_some_and(|tick| wakeup.is_none_or(|wakeup| wakeup >= tick))
}

/// Returns true if only time changes the state from here, or if a stop is in progress.
pub(in crate::model) fn is_waiting_for_time(state: &State) -> bool {
    let world = &state.world;
    match world.engine.mode() {
        Mode::Stopping => true,
        Mode::Draining | Mode::Pausing | Mode::Paused => state.left.lapses && world.is_quiet(),
        // A swap may wait for a vertex that cannot converge; only time ends that.
        Mode::Running if world.is_quiet() && world.oracle.books.pending.is_some() => true,
        Mode::Running if world.is_quiet() => {
            world.oracle.books.order.iter().any(|id| world.waits_for_time(*id))
        }
        Mode::Running | Mode::Stopped => false,
    }
}

/// Returns true if nothing is in flight, nothing is due but a poll tick, and the engine runs.
pub(in crate::model) fn is_at_rest(state: &State) -> bool {
    let world = &state.world;
    let is_due = is_waiting_for_time(state) && !is_tick_next(world);
    world.is_quiet() && world.engine.mode() == Mode::Running && !is_due
}
