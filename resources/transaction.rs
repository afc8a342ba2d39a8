//! Several resources as one deed: a kind says which of them can be (E-19), and gets them together.

use crate::change::{Change, CheckResult, Outcome};
use crate::host::Host;
use crate::permit::Permit;
use crate::resource::{Answer, CheckRequest};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// What a kind knows of one of its resources, given back to it when several are united.
pub type Member = Arc<dyn Any + Send + Sync>;

/// How a resource can be one transaction with others.
#[derive(Clone)]
pub struct Grouping {
    /// Those with one key can be one transaction; it begins with the kind.
    pub key: String,
    /// What the kind knows of this one.
    pub part: Member,
    /// Makes one transaction of several, in this order.
    pub unite: fn(Vec<Member>) -> Arc<dyn Transaction>,
}

impl Debug for Grouping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grouping").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Several resources of one kind that are checked and applied together. Each keeps its own verdict, change and outcome, in the
/// order in which they were united.
pub trait Transaction: Debug + Send + Sync {
    /// Looks at each, as [`crate::Resource::check`] does.
    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, Vec<CheckResult>>;

    /// Makes those so for which there is a change. What cannot be done with the others is done without them: one that fails
    /// keeps no other from being done. An outcome for each; that of one without a change does not count.
    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        changes: Vec<Option<Change>>,
    ) -> Answer<'a, Vec<Outcome>>;
}
