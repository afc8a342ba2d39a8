//! The checks at the end of a schedule, when nothing is left to happen.

use super::{E2_POKE, E4_EVENT, E9_REFRESH, E20_WINDOW};
use crate::environment::World;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_engine::{HeldReason, Tick, VertexId, VertexStatus};

/// The longest time that a swap waits for the vertices that it changes.
const SWAP: Duration = Duration::from_secs(30);

/// Checks the end after everything succeeded: each vertex is settled, or has a reason not to be. No refresh is owed
/// unless it is blocked.
///
/// `tick`: the time of the next poll tick, the only event to come. The end is valid only if nothing else is due before
/// the tick: a tick must not be the only event that wakes a stalled vertex.
pub(crate) fn at_the_end(world: &mut World, tick: Option<Tick>) {
    let Some(graph) = world.running.clone() else { return };
    let mut found = Vec::new();
    if !world.is_quiet() {
        found.push(format!("{E2_POKE}\n    something is in flight for ever"));
    }
    let mut excused: BTreeMap<VertexId, bool> = BTreeMap::new();
    for id in graph.order() {
        let standing = world.engine.vertex_status(*id);
        let excuse = match &standing {
            Some(VertexStatus::Settled) => false,
            // A paused vertex waits for the operator, too.
            Some(
                VertexStatus::Failed
                | VertexStatus::Paused
                | VertexStatus::Held(HeldReason::Operator),
            ) => true,
            Some(VertexStatus::Held(HeldReason::Window(window))) => {
                if world.open.contains(window) {
                    found.push(format!("{E20_WINDOW}\n    {id} is held and its window is open"));
                }
                true
            }
            Some(VertexStatus::Held(_)) => {
                let vertex = graph.vertices().find(|vertex| vertex.id == *id);
                if vertex.is_some_and(|vertex| !vertex.meta.noop) {
                    found.push(format!("{E2_POKE}\n    {id} is held and not in noop"));
                }
                true
            }
            Some(VertexStatus::WaitingFor(above) | VertexStatus::Asking(above)) => {
                if !above.iter().any(|a| excused.get(a) == Some(&true)) {
                    found.push(format!("{E2_POKE}\n    {id} waits for {above:?} for ever"));
                }
                true
            }
            other if is_due_later(world, other.as_ref(), tick) => true,
            other => {
                found.push(format!("{E2_POKE}\n    {id} rests as {other:?}"));
                true
            }
        };
        excused.insert(*id, excuse);
        let books = &world.oracle.books;
        if !excuse && books.debts.contains_key(id) && !books.vertices[id].declared.meta.noop {
            found.push(format!("{E9_REFRESH}\n    {id} is still owed a refresh"));
        }
        let looks = !excuse && !books.paused_vertices.contains(id);
        if looks && books.vertices[id].look.is_some_and(|(_, required)| required) {
            found.push(format!("{E4_EVENT}\n    {id} was never looked at"));
        }
    }
    if !excused.values().any(|excuse| *excuse) && !world.engine.is_at_rest() && !has_polls(world) {
        found.push(format!("{E2_POKE}\n    all is settled and it is not at rest"));
    }
    world.oracle.books.violations.extend(found);
}

/// Returns true if the vertex continues by itself, and not before that tick.
fn is_due_later(world: &World, standing: Option<&VertexStatus>, tick: Option<Tick>) -> bool {
    let Some(tick) = tick else { return false };
    match standing {
        Some(
            VertexStatus::Delayed(at)
            | VertexStatus::WaitingForLimit(at)
            | VertexStatus::WaitingForRepairLimit(at)
            | VertexStatus::Contended { next: Some(at), .. },
        ) => *at >= tick,
        // Converged at the moment.
        Some(VertexStatus::Contended { next: None, .. }) => true,
        Some(VertexStatus::Suspended) => {
            let pending = world.oracle.books.pending.as_ref();
            pending.is_some_and(|(_, since)| since.after(SWAP) >= tick)
        }
        _ => false,
    }
}

fn has_polls(world: &World) -> bool {
    world.engine.next_wakeup().is_some()
}
