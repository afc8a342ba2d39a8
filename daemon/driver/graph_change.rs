//! What a new graph means for the one that ran before it, by name.

use super::table::{Entry, Table};
use super::{Driver, News};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use steadfast_engine::VertexId;

/// So many of a sort are named; all are counted.
const NAMED: usize = 20;

/// What differs between two graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// A graph that was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Its name.
    pub graph: String,
    /// What it means for the one before.
    pub change: GraphChange,
    /// It runs as soon as these rest; at once where there is none.
    pub waits: Vec<String>,
    /// All of it is only looked at.
    #[serde(default)]
    pub looks_only: bool,
}

/// Resources of one sort: how many, and the first of them by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sort {
    /// How many in all.
    pub count: usize,
    /// Some of them, in order: the others come after these.
    pub names: Vec<String>,
}

impl Sort {
    fn of(mut names: Vec<Arc<str>>) -> Self {
        names.sort_unstable();
        let count = names.len();
        names.truncate(NAMED);
        Self { count, names: names.iter().map(ToString::to_string).collect() }
    }
}

impl Driver {
    /// A graph is not taken: the one that runs goes on.
    pub(super) fn refuse(&mut self, why: String) {
        self.audience.hear(&News::Refused(&why));
        if self.settings.one_shot {
            (self.recalled, self.refused) = (None, Some(why.clone()));
        }
        self.fate = Err(why);
    }

    /// The graph that waits to run is taken; it runs when these rest.
    pub(super) fn note_taken(&mut self, waits: &[VertexId]) {
        if let Some((graph, change)) = self.table.change() {
            let (graph, change) = (graph.to_owned(), change.clone());
            let (waits, looks_only) = (self.names(waits), self.ownership.looks_only());
            self.fate = Ok(Taken { graph, change, waits, looks_only });
        }
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
