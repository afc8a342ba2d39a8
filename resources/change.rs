//! The result of a check and the outcome of an apply.

use crate::failure::Failure;
use std::any::Any;

/// The result of a check.
#[derive(Debug)]
pub enum CheckResult {
    /// The resource is as declared.
    Same,
    /// The resource is not as declared; the change would make it so.
    Differs(Change),
    /// The check could not find out.
    Unknown(Failure),
}

/// The work of one apply. `plan` shows this value, and `apply` carries out the same value.
#[derive(Debug)]
pub struct Change {
    /// The differences, one entry for each aspect, in a stable order; never empty.
    pub differences: Vec<Difference>,
    /// Something that exists will be gone afterwards (a file removed, a link replaced by a file). A plan shows
    /// such changes last and by name.
    pub destructive: bool,
    /// A hash of the state found by the check, for differences that do not show all of it (long content): another
    /// number means another state. 0 where the differences show everything.
    pub premise_digest: u64,
    /// Nothing of the object exists yet: after the apply the resource owns the object as *created* (B-17).
    pub creates: bool,
    /// The apply makes, rewrites or removes the object at the claimed path, beyond a change of its attributes.
    pub replaces: bool,
    /// The state that the kind's own `apply` must find again before it changes anything (the premise of the
    /// check).
    pub premise: Box<dyn Any + Send>,
}

impl Change {
    /// Makes a change that creates, destroys and replaces nothing, and that applies without data of its check.
    #[must_use]
    pub fn of(differences: Vec<Difference>) -> Self {
        Self {
            differences,
            destructive: false,
            premise_digest: 0,
            creates: false,
            replaces: false,
            premise: Box::new(()),
        }
    }
}

/// One aspect that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name of the aspect: `content`, `mode`, `owner`, `state`, `command`, …
    pub aspect: &'static str,
    /// The present value; empty where there is none.
    pub from: String,
    /// The declared value; empty where nothing will be left.
    pub to: String,
    /// A unified diff of texts, bounded in size; none for secrets and binary content.
    pub diff: Option<String>,
}

/// The end of an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was changed, which is proven, and the resource is as declared.
    Unchanged,
    /// Something was changed, and the resource is as declared now. The texts name the actions for the log
    /// (`content`, `ran: exit 0`).
    Changed(Vec<String>),
    /// The resource is not as declared.
    Failed {
        /// The reason.
        failure: Failure,
        /// False only where it is proven that nothing was changed (E-9).
        touched: bool,
    },
    /// The run was cut off because its permit was revoked; something may have been changed.
    Interrupted,
}
