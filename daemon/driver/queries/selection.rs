//! The resources that selectors are compared with, and the status of a selection.

use super::phase;
use super::statistics::Moment;
use crate::api::{Phase, SelectedResources};
use crate::config::Vertex;
use crate::driver::Driver;
use crate::selection::Selectable;
use std::sync::Arc;
use steadfast_engine::{HeldReason, VertexId, VertexStatus};

/// The longest chain of unknown ancestors that is followed.
const CHAIN: usize = 100;

impl Driver {
    /// Returns all declared resources.
    pub(super) fn selectable(&self) -> Vec<Selectable> {
        let vertices = self.graph.ids().filter_map(|id| self.graph.get(id));
        let each = |vertex: &Vertex| Selectable {
            identity: Arc::clone(&vertex.identity),
            labels: Arc::clone(&vertex.labels),
        };
        vertices.map(each).collect()
    }

    /// Returns true if only `noop` holds a resource, or an ancestor without whose change the resource is unknown.
    pub(super) fn is_held_by_noop(&self, standing: &VertexStatus) -> bool {
        let mut standing = standing.clone();
        // A chain of ancestors has no cycle; the limit bounds the time.
        for _ in 0..CHAIN {
            standing = match standing {
                VertexStatus::Held(HeldReason::WouldChange | HeldReason::WouldRefresh) => {
                    return true;
                }
                VertexStatus::Held(HeldReason::UnknownUntil(above)) => {
                    match self.current_status(above) {
                        Some(above) => above,
                        None => return false,
                    }
                }
                _ => return false,
            };
        }
        false
    }

    /// Returns the status of these resources, worst first; an error are the unknown identities.
    pub(super) fn selected(
        &self,
        names: &[String],
        limit: usize,
    ) -> Result<SelectedResources, Vec<String>> {
        let strangers = self.strangers(names);
        if !strangers.is_empty() {
            return Err(strangers);
        }
        let vertex = |name: &String| {
            let id = self.running(name)?;
            Some((id, self.current_status(id)?))
        };
        let mut rows: Vec<(Phase, VertexId, VertexStatus)> = names
            .iter()
            .filter_map(vertex)
            .map(|(id, standing)| (phase(&standing), id, standing))
            .collect();
        rows.sort_by_key(|(phase, id, _)| (*phase, *id));
        let mut found = SelectedResources { total: rows.len(), ..SelectedResources::default() };
        for (phase, id, standing) in &rows {
            found.changes += u64::from(self.runs.statistics.changes(*id));
            found.last_change =
                match (found.last_change, self.runs.statistics.age(*id, Moment::Changed)) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
            let pause = self.commands.pauses.status(*id, standing);
            found.noop += usize::from(self.is_held_by_noop(standing));
            found.paused += usize::from(pause.is_some_and(|pause| pause.at_rest));
            match phase {
                Phase::Settled => found.converged += 1,
                Phase::Stuck | Phase::Failed => found.failed += 1,
                Phase::Delayed => found.retrying += 1,
                Phase::Contended
                | Phase::Held
                | Phase::Waiting
                | Phase::Running
                | Phase::Inactive => {}
            }
        }
        let part = rows.into_iter().take(limit);
        found.rows = part.map(|(_, id, standing)| self.resource_status(id, &standing)).collect();
        Ok(found)
    }
}
