//! The memory of a vertex, and what a load makes of it.

use crate::action::Holding;
use crate::graph::Recall;
use crate::ids::Stamp;
use crate::meta::{Check, Interrupted};
use crate::vertex::Vertex;

/// What a load means for a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtLoad {
    Process,
    Settled,
    WaitForOperator,
}

impl Vertex {
    /// What is to be remembered of it, should it come back.
    pub(crate) fn recall(&self) -> Recall {
        Recall {
            owed: (self.owed > Stamp::NEVER).then_some((self.owed, self.owed_by)),
            interrupted: self.held_by() == Some(Holding::Operator),
            done: self.done.then_some(self.definition),
        }
    }

    /// What a load means for it, given the definition it last ran well under and whether a run was cut off.
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
