//! What a check decides and an apply does.

use crate::change::Difference;
use crate::host::files::{Attributes, Seen};

/// What has to be done with one thing, and what it was decided from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// What was there.
    pub(super) found: Option<Seen>,
    /// It must go first.
    pub(super) clear: bool,
    /// What follows then.
    pub(super) work: Work,
}

/// What has to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing more.
    Remove,
    /// Write the file anew; the mode is always set.
    Write { attributes: Attributes, mode: u32 },
    /// Make the link.
    Link(Attributes),
    /// Make the directory.
    Directory(Attributes),
    /// Leave it, and give it these.
    Attributes(Attributes),
}

/// A plan and how it is shown.
pub(super) struct Finding {
    pub(super) plan: Plan,
    pub(super) differences: Vec<Difference>,
    pub(super) destructive: bool,
}

/// What an apply finds again.
#[derive(Debug)]
pub(super) struct Premise {
    /// What has to be done with the thing itself.
    pub(super) top: Option<Plan>,
    /// Whether something below it differs. What, is found again when it is done: a tree may be large.
    pub(super) below: bool,
    /// The state of all that is copied from.
    pub(super) origins: Vec<Seen>,
}

/// What a check found, and how it is shown.
pub(super) struct Found {
    pub(super) premise: Premise,
    pub(super) differences: Vec<Difference>,
    pub(super) destructive: bool,
}
