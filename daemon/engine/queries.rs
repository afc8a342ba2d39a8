//! Queries on single vertices: the status of a vertex, and the vertices that it waits for.

use crate::engine::Engine;
use crate::interface::ids::{SemaphoreId, Stamp, VertexId};
use crate::interface::query_replies::{TakenSemaphore, VertexStatus, Why};
use crate::state::vertex::{Causes, Phase, Place, RunKind, Vertex, Watch};
use std::collections::BTreeSet;

/// A stamp later than every real one: any clearance but `CLEAR` is earlier.
const UNBLOCKED: Stamp = Stamp(u64::MAX - 1);

impl Engine {
    /// Returns the status of a vertex; `None` if the vertex is not in the graph.
    #[must_use]
    pub fn vertex_status(&self, id: VertexId) -> Option<VertexStatus> {
        let vertex = self.vertex(id)?;
        Some(match &vertex.phase {
            Phase::Running(run) if run.stuck => VertexStatus::Stuck(run.id, run.since),
            Phase::Running(run) => match run.kind {
                RunKind::Process => VertexStatus::Running(run.id, run.since),
                RunKind::Look(Some(holding)) => VertexStatus::Held(holding),
                RunKind::Look(None) if vertex.causes.any() => self.waiting(id, vertex),
                RunKind::Look(None) if vertex.contended => self.contended(id, vertex),
                RunKind::Look(None) => VertexStatus::Settled,
            },
            Phase::Delayed(until) => VertexStatus::Delayed(*until),
            Phase::Failed { .. } => VertexStatus::Failed,
            Phase::Asking(asking) if asking.awaited.is_empty() => {
                VertexStatus::Asking(self.blockers(id, UNBLOCKED))
            }
            Phase::Asking(asking) => VertexStatus::Asking(asking.awaited.clone()),
            Phase::Held(holding) if vertex.awaits_operator() => VertexStatus::Held(*holding),
            Phase::Resting | Phase::Held(_) if vertex.causes.any() => self.waiting(id, vertex),
            Phase::Held(holding) => VertexStatus::Held(*holding),
            Phase::Resting if vertex.contended => self.contended(id, vertex),
            Phase::Resting => VertexStatus::Settled,
        })
    }

    /// Returns the cause of the run in progress; `None` if there is no run.
    #[must_use]
    pub fn why(&self, id: VertexId) -> Option<Why> {
        let causes = self.vertex(id)?.run()?.causes;
        let each = [
            (Causes::OPERATOR, Why::Operator),
            (Causes::EVENT, Why::Event),
            (Causes::VALUE, Why::Value),
            (Causes::OWED.and(Causes::SUPPOSED), Why::Refresh),
            (Causes::AGAIN, Why::Again),
            (Causes::LOAD, Why::Load),
            (Causes::LOOK, Why::Look),
            (Causes::POLL, Why::Poll),
        ];
        let found = each.into_iter().find(|(cause, _)| causes.has(*cause));
        // Only a look is started without a cause.
        Some(found.map_or(Why::Look, |(_, why)| why))
    }

    /// Returns true if a look at the vertex is due; the look may find work to do.
    #[must_use]
    pub fn is_to_be_looked_at(&self, id: VertexId) -> bool {
        self.vertex(id).is_some_and(|vertex| vertex.look)
    }

    /// Returns true if the vertex is owed a refresh.
    #[must_use]
    pub fn owes_refresh(&self, id: VertexId) -> bool {
        self.vertex(id).is_some_and(|vertex| vertex.owed > Stamp::NEVER)
    }

    /// Returns true if the vertex is contended (E-20), in any phase.
    #[must_use]
    pub fn is_contended(&self, id: VertexId) -> bool {
        self.vertex(id).is_some_and(|vertex| vertex.contended)
    }

    /// Returns the position of a vertex in the topological order: parents come before their children. The driver
    /// delivers events that it read together in this order, so that no child starts before the event of its parent is
    /// known (E-3).
    #[must_use]
    pub fn position(&self, id: VertexId) -> usize {
        self.topology.place(id)
    }

    /// Returns the parents and the children of a vertex.
    #[must_use]
    pub fn neighbours(&self, id: VertexId) -> (Vec<VertexId>, Vec<VertexId>) {
        if self.vertex(id).is_none() {
            return (Vec::new(), Vec::new());
        }
        let children = self.topology.children(id).iter().map(|child| child.id).collect();
        (self.topology.parents(id).to_vec(), children)
    }

    /// Returns the semaphores that a vertex waits for, with their holders.
    #[must_use]
    pub fn semaphores_waited_for(&self, id: VertexId) -> Vec<TakenSemaphore> {
        let Some(vertex) = self.vertex(id).filter(|vertex| vertex.place == Place::Semaphores)
        else {
            return Vec::new();
        };
        let taken = vertex.meta.semaphores.iter().filter_map(|id| {
            let semaphore = self.semaphores.0.get(id.0 as usize)?;
            let holders = self.in_flight.values().copied();
            let holders = holders.filter(|holder| self.held_by(*holder).contains(id)).collect();
            (!semaphore.admits(vertex.ticket)).then_some(TakenSemaphore {
                semaphore: *id,
                count: semaphore.count,
                holders,
            })
        });
        taken.collect()
    }

    /// Returns the vertices that wait for a vertex: its descendants, and vertices that wait for a semaphore that it
    /// holds. At most `most` descendants are examined.
    #[must_use]
    pub fn waiters(&self, id: VertexId, most: usize) -> Vec<VertexId> {
        let (mut found, mut seen, mut next) = (BTreeSet::new(), BTreeSet::new(), vec![id]);
        while let Some(at) = next.pop() {
            for child in self.topology.children(at) {
                if seen.len() >= most || !seen.insert(child.id) {
                    continue;
                }
                next.push(child.id);
                let standing = self.vertex_status(child.id);
                if matches!(standing, Some(VertexStatus::WaitingFor(all) | VertexStatus::Asking(all)) if all.contains(&id))
                {
                    found.insert(child.id);
                }
            }
        }
        for semaphore in self.held_by(id) {
            if let Some(semaphore) = self.semaphores.0.get(semaphore.0 as usize) {
                found.extend(semaphore.queue.values());
            }
        }
        found.into_iter().collect()
    }

    /// Returns the semaphores that a run in progress holds; a look holds none.
    fn held_by(&self, id: VertexId) -> &[SemaphoreId] {
        match self.vertex(id) {
            Some(vertex) if vertex.run().is_some_and(|run| run.kind == RunKind::Process) => {
                &vertex.meta.semaphores
            }
            Some(_) | None => &[],
        }
    }

    fn contended(&self, id: VertexId, vertex: &Vertex) -> VertexStatus {
        let contention = self.contentions.get(&id);
        let next = match vertex.place {
            Place::Backoff(at) => Some(at),
            Place::Nowhere
            | Place::Shelf
            | Place::Limit(_)
            | Place::Semaphores
            | Place::Slot(_)
            | Place::Look(_) => None,
        };
        VertexStatus::Contended {
            party: contention.and_then(|contention| contention.party),
            repairs: contention.map_or(0, |contention| contention.repairs),
            since: contention.and_then(|contention| contention.since).unwrap_or(self.now),
            next,
        }
    }

    fn waiting(&self, id: VertexId, vertex: &Vertex) -> VertexStatus {
        match vertex.place {
            Place::Limit(at) => VertexStatus::WaitingForLimit(at),
            Place::Backoff(_) if vertex.contended => self.contended(id, vertex),
            Place::Backoff(at) => VertexStatus::WaitingForRepairLimit(at),
            Place::Semaphores => VertexStatus::WaitingForSemaphore,
            Place::Slot(_) | Place::Look(_) => VertexStatus::WaitingForSlot,
            Place::Shelf => VertexStatus::Suspended,
            Place::Nowhere if self.paused_vertices.contains(&id) => VertexStatus::Paused,
            Place::Nowhere if vertex.gate.least <= vertex.dirty_since => {
                VertexStatus::WaitingFor(self.blockers(id, vertex.dirty_since))
            }
            Place::Nowhere if vertex.watch == Watch::Asked => VertexStatus::WaitingForWatch,
            Place::Nowhere => VertexStatus::Suspended,
        }
    }

    /// Returns the nearest ancestors that themselves block a vertex that became dirty at `since`.
    fn blockers(&self, id: VertexId, since: Stamp) -> Vec<VertexId> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut next = vec![id];
        while let Some(at) = next.pop() {
            for parent in self.topology.parents(at) {
                let Some(above) = self.vertex(*parent).filter(|p| p.clearance <= since) else {
                    continue;
                };
                if above.own_clearance() <= since {
                    found.insert(*parent);
                } else if seen.insert(*parent) {
                    next.push(*parent);
                }
            }
        }
        found.into_iter().collect()
    }
}
