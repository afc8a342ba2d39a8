//! The memory of a vertex, and what a load makes of it.

use crate::action::HeldReason;
use crate::graph::RestoredState;
use crate::ids::Stamp;
use crate::meta::{Check, Interrupted};
use crate::vertex::Vertex;

/// The meaning of a load for a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtLoad {
    Process,
    Settled,
    WaitForOperator,
}

impl Vertex {
    /// The record that the vertex starts from if it comes back.
    pub(crate) fn recall(&self) -> RestoredState {
        RestoredState {
            owed: (self.owed > Stamp::NEVER).then_some((self.owed, self.owed_by)),
            interrupted: self.held_by() == Some(HeldReason::Operator),
            done: self.done.then_some(self.definition),
        }
    }

    /// Decides the meaning of a load from the definition of the last good run, and from a run that was cut off.
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
            (Check::Events, _, _) => AtLoad::Settled,
        }
    }
}
