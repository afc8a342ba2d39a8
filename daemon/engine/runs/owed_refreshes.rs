//! Refreshes owed to children (E-2, E-5): a run that changes something owes them, and they are paid by the runs of the
//! children.

use crate::engine::Engine;
use crate::interface::action::Class;
use crate::interface::ids::{Stamp, VertexId};
use crate::state::vertex::{Causes, Run, Station};

impl Engine {
    /// Returns the vertices that are owed a refresh by a run that changed something: those in its intent, and those
    /// added since. Their refreshes have the class of this change.
    pub(crate) fn debts(&mut self, id: VertexId, run: &Run) -> Vec<VertexId> {
        if let Some(vertex) = self.vertex_mut(id) {
            vertex.intended = run.class == Class::Intentional;
        }
        let mut owes = self.notified(id);
        owes.extend(
            run.owes.iter().filter(|child| self.vertex(**child).is_some_and(|v| !v.leaving)),
        );
        owes.sort_unstable();
        owes.dedup();
        owes
    }

    /// Counts the refreshes owed to a vertex at the start of a good run as paid. Returns the newest of them; none if
    /// nothing was owed. A refresh that became owed during the run stays owed.
    pub(crate) fn pay(&mut self, id: VertexId, run: &Run) -> Option<Stamp> {
        let paid = (run.pays > Stamp::NEVER).then_some(run.pays)?;
        if let Some(vertex) = self.vertex_mut(id)
            && vertex.owed == paid
        {
            vertex.owed = Stamp::NEVER;
            vertex.owed_by = None;
        }
        Some(paid)
    }

    /// Returns the children that this vertex refreshes.
    pub(crate) fn notified(&self, id: VertexId) -> Vec<VertexId> {
        self.topology.children(id).iter().filter(|c| c.notify).map(|c| c.id).collect()
    }

    /// Records that children are owed a refresh. A run that only checked owes nothing.
    pub(crate) fn owe(
        &mut self,
        by: VertexId,
        children: &[VertexId],
        stamp: Stamp,
        station: Station,
    ) {
        if station == Station::Checking {
            return;
        }
        let draining = self.mode == crate::Mode::Draining;
        for id in children {
            let Some(child) = self.vertex_mut(*id) else { continue };
            child.owed = stamp;
            child.owed_by = Some(by);
            child.retries = 0;
            child.drains |= draining;
            self.attempt(*id);
            self.mark(*id, Causes::OWED);
        }
    }
}
