//! What a load means for values: who must send again, and who has received something else than what there is.

use super::Driver;
use crate::config::Vertex;
use std::collections::BTreeSet;
use steadfast_engine::{Event, VertexId};
use steadfast_resources::{Origin, Repeat};

impl Driver {
    /// Those of the graph that waits from whom something is to be received that they have not sent.
    pub(super) fn silent_senders(&self) -> BTreeSet<VertexId> {
        let mut silent = BTreeSet::new();
        for recipe in self.table.waiting_receivers().filter_map(|(_, it)| it.recipe.as_ref()) {
            for origin in &recipe.origins {
                if let Origin::Sent { by, key } = origin
                    && !self.values.has(by, key)
                {
                    silent.extend(self.table.number(by));
                }
            }
        }
        silent
    }

    /// Those of them that run already run once more, before their receivers do.
    pub(super) fn ask_to_send(&mut self, silent: BTreeSet<VertexId>) {
        for id in silent {
            let Some(entry) = self.table.get(id) else { continue };
            let is_state = entry.resource.nature().repeat == Repeat::State;
            self.turn(if is_state { Event::Suspect(id) } else { Event::Redo(id) });
        }
    }

    /// those of the graph that waits whose last good run was made of something else than what there is now.
    pub(super) fn outdated_receivers(&self) -> Vec<VertexId> {
        let is_outdated = |(_, entry): &(VertexId, &Vertex)| {
            let recipe = entry.recipe.as_ref();
            recipe.is_some_and(|recipe| self.values.is_outdated(&entry.identity, recipe))
        };
        let outdated = self.table.waiting_receivers().filter(is_outdated);
        outdated.map(|(id, _)| id).collect()
    }
}
