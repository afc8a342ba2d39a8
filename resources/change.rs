//! What a check finds and how an apply ends.

use crate::failure::Failure;
use std::any::Any;

/// What a check found.
#[derive(Debug)]
pub enum CheckResult {
    /// As declared.
    Same,
    /// Not as declared: this would make it so.
    Differs(Change),
    /// It could not be told.
    Unknown(Failure),
}

/// What has to be done: shown by `plan`, done by `apply`. They are the same value.
#[derive(Debug)]
pub struct Change {
    /// What differs, one entry for each aspect, in a stable order; never empty.
    pub differences: Vec<Difference>,
    /// Something that exists will be gone afterwards (a file removed, a link replaced by a file): shown last and by name.
    pub destructive: bool,
    /// What was found where the differences do not tell all of it (a long content): another number stands for something else that
    /// was found. 0 where they do.
    pub seal: u64,
    /// Nothing of it is there yet: once this is done, it is ours (B-17).
    pub creates: bool,
    /// What is at the path that it claims is another thing afterwards, or none: made, written anew or gone, not merely given other
    /// attributes.
    pub replaces: bool,
    /// What the kind's own `apply` wants to find again (the premise of the check).
    pub premise: Box<dyn Any + Send>,
}

/// One aspect that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which aspect: `content`, `mode`, `owner`, `state`, `command`, …
    pub aspect: &'static str,
    /// How it is; empty where it is not there.
    pub from: String,
    /// How it will be; empty where it will be gone.
    pub to: String,
    /// A unified diff for texts, already bounded in size; none for secrets and binary content.
    pub diff: Option<String>,
}

/// How an apply ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is proven that nothing was changed, and all is as declared.
    Unchanged,
    /// Changed, and as declared now. The words say what was done, for the log (`content`, `ran: exit 0`).
    Changed(Vec<String>),
    /// Not as declared.
    Failed {
        /// Why.
        trouble: Failure,
        /// False only where it is proven that nothing was changed (E-9).
        touched: bool,
    },
    /// Cut off because the permit was revoked; something may have been changed.
    Interrupted,
}
