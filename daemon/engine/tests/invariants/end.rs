//! What must be when nothing is left to happen.

use super::{E2_POKE, E4_EVENT, E9_REFRESH, E20_WINDOW};
use crate::world::World;
use std::collections::BTreeMap;
use steadfast_engine::{Holding, Standing, VertexId};

/// Everything went well at last: each vertex is settled, or is told why it is not; nothing is owed where nothing stands in the way.
pub(crate) fn at_the_end(world: &mut World) {
    let Some(graph) = world.running.clone() else { return };
    let mut found = Vec::new();
    if !world.is_quiet() {
        found.push(format!("{E2_POKE}\n    something is in flight for ever"));
    }
    let mut excused: BTreeMap<VertexId, bool> = BTreeMap::new();
    for id in graph.order() {
        let standing = world.engine.standing(*id);
        let excuse = match &standing {
            Some(Standing::Settled) => false,
            Some(Standing::Failed | Standing::Held(Holding::Operator)) => true,
            Some(Standing::Held(Holding::Window(window))) => {
                if world.open.contains(window) {
                    found.push(format!("{E20_WINDOW}\n    {id} is held and its window is open"));
                }
                true
            }
            Some(Standing::Held(_)) => {
                let vertex = graph.vertices().find(|vertex| vertex.id == *id);
                if vertex.is_some_and(|vertex| !vertex.meta.noop) {
                    found.push(format!("{E2_POKE}\n    {id} is held and not in noop"));
                }
                true
            }
            Some(Standing::WaitingFor(above)) => {
                if !above.iter().any(|a| excused.get(a) == Some(&true)) {
                    found.push(format!("{E2_POKE}\n    {id} waits for {above:?} for ever"));
                }
                true
            }
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
        if !excuse && books.vertices[id].look.is_some_and(|(_, required)| required) {
            found.push(format!("{E4_EVENT}\n    {id} was never looked at"));
        }
    }
    if !excused.values().any(|excuse| *excuse) && !world.engine.is_at_rest() && !has_polls(world) {
        found.push(format!("{E2_POKE}\n    all is settled and it is not at rest"));
    }
    world.oracle.books.violations.extend(found);
}

fn has_polls(world: &World) -> bool {
    world.engine.next_wakeup().is_some()
}
