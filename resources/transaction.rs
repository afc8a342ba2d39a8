//! Transactions of several resources: a kind names the resources that can share one (E-19), and applies them
//! together.

use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::host::Host;
use crate::permit::Permit;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// The kind's own data of one resource, passed back when several are united.
pub type Member = Arc<dyn Any + Send + Sync>;

/// The conditions of a common transaction.
#[derive(Clone)]
pub struct Grouping {
    /// Resources with equal keys can share a transaction; the key begins with the kind's name.
    pub key: String,
    /// The kind's data of this resource.
    pub part: Member,
    /// Makes one transaction of several members, in this order.
    pub unite: fn(Vec<Member>) -> Arc<dyn Transaction>,
}

impl Debug for Grouping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grouping").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Several resources of one kind that are checked and applied together. Each has its own check result, change
/// and outcome, in the order of the members.
pub trait Transaction: Debug + Send + Sync {
    /// Checks each member, as [`crate::Resource::check`] does.
    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, Vec<CheckResult>>;

    /// Applies the changes of the members that have one. A member that fails does not prevent the others. The
    /// result has one outcome for each member; the outcome of a member without a change has no meaning.
    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        changes: Vec<Option<Change>>,
    ) -> Answer<'a, Vec<Outcome>>;
}
