//! The stored state of a vertex, and its effect at a load.

use crate::interface::action::HeldReason;
use crate::interface::graph::RestoredState;
use crate::interface::ids::{Stamp, VertexId};
use crate::state::vertex::Vertex;
use steadfast_traits::{OnInterrupt, RunPolicy};

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
        match (self.traits.repeat, interrupted, self.traits.on_interrupt) {
            (RunPolicy::State, _, _) => AtLoad::Process,
            (RunPolicy::Once | RunPolicy::EachStart, true, OnInterrupt::Skip) => AtLoad::Settled,
            (RunPolicy::Once | RunPolicy::EachStart, true, OnInterrupt::Wait) => {
                AtLoad::WaitForOperator
            }
            (RunPolicy::Once | RunPolicy::EachStart, true, OnInterrupt::Again)
            | (RunPolicy::EachStart, false, _) => AtLoad::Process,
            (RunPolicy::Once, false, _) => {
                if done {
                    AtLoad::Settled
                } else {
                    AtLoad::Process
                }
            }
            (RunPolicy::Events, true, OnInterrupt::Wait) => AtLoad::WaitForOperator,
            (RunPolicy::Events, _, _) => AtLoad::Settled,
        }
    }

    /// Returns the refresh that a load leaves owed. A run that was cut off and is skipped counts as done, with the
    /// refreshes that it was doing; a later refresh stays owed.
    pub(crate) fn owed_at_load(&self, recall: &RestoredState) -> Option<(Stamp, Option<VertexId>)> {
        let is_skipped = recall.interrupted
            && self.traits.repeat != RunPolicy::State
            && self.traits.on_interrupt == OnInterrupt::Skip;
        recall.owed.filter(|(stamp, _)| !is_skipped || *stamp > recall.pays)
    }
}
