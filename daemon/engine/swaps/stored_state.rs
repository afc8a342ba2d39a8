//! The stored state of a vertex, and its effect at a load.

use crate::interface::action::HeldReason;
use crate::interface::graph::RestoredState;
use crate::interface::ids::{Stamp, VertexId};
use crate::interface::metaparams::{Check, Interrupted};
use crate::state::vertex::Vertex;

/// The effect of a load on a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtLoad {
    Process,
    Settled,
    WaitForOperator,
}

impl Vertex {
    /// Returns the state to restore if the vertex comes back.
    pub(crate) fn recall(&self) -> RestoredState {
        RestoredState {
            owed: (self.owed > Stamp::NEVER).then_some((self.owed, self.owed_by)),
            interrupted: self.held_by() == Some(HeldReason::Operator),
            pays: Stamp::NEVER,
            done: self.done.then_some(self.definition),
        }
    }

    /// Decides the effect of a load from the definition of the last good run, and from a run that was cut off.
    pub(crate) fn at_load(&self, done: Option<u64>, interrupted: bool) -> AtLoad {
        let done = done == Some(self.definition);
        match (self.nature.check, interrupted, self.nature.interrupted) {
            (Check::State, _, _) => AtLoad::Process,
            (Check::Once | Check::EachStart, true, Interrupted::Skip) => AtLoad::Settled,
            (Check::Once | Check::EachStart, true, Interrupted::Wait) => AtLoad::WaitForOperator,
            (Check::Once | Check::EachStart, true, Interrupted::Again)
            | (Check::EachStart, false, _) => AtLoad::Process,
            (Check::Once, false, _) => {
                if done {
                    AtLoad::Settled
                } else {
                    AtLoad::Process
                }
            }
            (Check::Events, true, Interrupted::Wait) => AtLoad::WaitForOperator,
            (Check::Events, _, _) => AtLoad::Settled,
        }
    }

    /// Returns the refresh that a load leaves owed. A run that was cut off and is skipped counts as done, with the
    /// refreshes that it was doing; a later refresh stays owed.
    pub(crate) fn owed_at_load(&self, recall: &RestoredState) -> Option<(Stamp, Option<VertexId>)> {
        let is_skipped = recall.interrupted
            && self.nature.check != Check::State
            && self.nature.interrupted == Interrupted::Skip;
        recall.owed.filter(|(stamp, _)| !is_skipped || *stamp > recall.pays)
    }
}
