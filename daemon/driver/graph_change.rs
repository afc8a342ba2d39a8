//! What a new graph means for the one that ran before it, by name.

use super::table::{Entry, Table};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_engine::VertexId;

/// So many of a sort are named; all are counted.
const NAMED: usize = 20;

/// What differs between two graphs.
#[derive(Debug, Default)]
pub struct GraphChange {
    /// Resources that only the new one has.
    pub added: Sort,
    /// Those with another definition.
    pub changed: Sort,
    /// Those that only the one before had.
    pub removed: Sort,
    /// How many stayed as they were.
    pub kept: usize,
    /// There was one before: else all is new, and is not named.
    pub again: bool,
}

/// Resources of one sort: how many, and the first of them by name.
#[derive(Debug, Default)]
pub struct Sort {
    /// How many in all.
    pub count: usize,
    /// Some of them, in order: the others come after these.
    pub names: Vec<Arc<str>>,
}

impl Sort {
    fn of(mut names: Vec<Arc<str>>) -> Self {
        names.sort_unstable();
        let count = names.len();
        names.truncate(NAMED);
        Self { count, names }
    }
}

impl GraphChange {
    /// What these would change of the graph that runs.
    pub(super) fn between(running: &Table, new: &BTreeMap<VertexId, Entry>) -> Self {
        let (mut added, mut changed, mut kept) = (Vec::new(), Vec::new(), 0);
        let is_removed = |id: VertexId| running.get(id).is_some_and(|entry| entry.removes);
        let mut removed: Vec<Arc<str>> = running
            .ids()
            .filter(|id| !new.contains_key(id) && !is_removed(*id))
            .filter_map(|id| Some(Arc::clone(&running.get(id)?.identity)))
            .collect();
        for (id, entry) in new {
            let before = running.get(*id).filter(|_| !running.is_buried(*id));
            match before {
                // It has left, whatever has to be done yet.
                Some(before) if before.removes && entry.removes => {}
                _ if entry.removes => removed.push(Arc::clone(&entry.identity)),
                None => added.push(Arc::clone(&entry.identity)),
                Some(before) if before.definition != entry.definition => {
                    changed.push(Arc::clone(&entry.identity));
                }
                Some(_) => kept += 1,
            }
        }
        let again = running.ids().next().is_some();
        let (added, changed) = (Sort::of(added), Sort::of(changed));
        Self { added, changed, removed: Sort::of(removed), kept, again }
    }
}
