//! Plans as data: the steps that a dry run found, stored in a file, and the guard of the apply that follows the plan.
//!
//! An apply of a [`Plan`] must never change anything that the plan does not contain. The plan is a
//! [`Guard`](crate::driver::Guard) of the driver: a check that finds anything else fails, and its error names the
//! aspect that differs.
//!
//! Reading order: this file (steps and their collector), `file` (the plan and its file), `planned_changes`.

mod file;
mod planned_changes;

pub use file::{Plan, Unusable};

use crate::driver::status::Differing;
use crate::driver::{Notification, Observer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steadfast_engine::HeldReason;

/// A planned change of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// `kind[name]`.
    pub resource: String,
    /// The sort of the step.
    pub action: Action,
    /// For *unknown*: the resource that must be changed first. For *held*: the window, if a window holds the resource.
    pub until: Option<String>,
    /// True if the resource was removed from the graph.
    #[serde(default)]
    pub leaves: bool,
    /// True for an *unknown* step that, as found now, would remove an existing object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removes: bool,
    /// The differences; for an *unknown* step, those found before the step became uncertain.
    pub differences: Vec<Differing>,
    /// See [`steadfast_resources::Change::seal`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seal: u64,
    /// True if the result depends on objects that earlier steps create. The seal is then of the host at the time of the
    /// plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows: bool,
}

impl Step {
    /// Records if the resource was removed from the graph. A change of a removed resource counts as a removal, even if
    /// nothing is deleted (a service that is stopped).
    pub fn note_leaving(&mut self, leaves: bool) {
        self.leaves = leaves;
        if leaves && self.action == Action::Change {
            self.action = Action::Remove;
        }
        self.removes |= leaves && self.action == Action::Unknown;
    }

    /// Returns true if the step removes an existing object, as far as that is known.
    #[must_use]
    pub fn is_removal(&self) -> bool {
        self.removes || self.action == Action::Remove
    }

    /// Copies the differences of an earlier observation into an *unknown* step, so that a later change is noticed.
    fn mark_uncertain(&mut self, known: Self) {
        if self.action == Action::Unknown && self.differences.is_empty() {
            self.removes = known.is_removal();
            (self.differences, self.seal) = (known.differences, known.seal);
            self.follows = known.follows;
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A sort of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The resource is changed.
    Change,
    /// An existing object is removed.
    Remove,
    /// Nothing differs, and the resource is refreshed.
    Refresh,
    /// The result is unknown until another resource is changed.
    Unknown,
    /// The resource differs and is left unchanged: `noop: true`, or outside of its window.
    Held,
}

/// An observer of the driver that collects the steps of a dry run. Clones share one collection.
#[derive(Clone, Debug, Default)]
pub struct StepCollector(Arc<Heard>);

#[derive(Debug, Default)]
struct Heard {
    steps: Mutex<Vec<Step>>,
    /// The resources with `noop: true`: an apply leaves them unchanged too.
    noop: BTreeSet<Arc<str>>,
    /// True if the steps of an apply are wanted; false if only the present differences are.
    is_plan: bool,
}

impl StepCollector {
    /// Creates a collector for a plan. `noop` lists the resources that are declared `noop`.
    #[must_use]
    pub fn new(noop: BTreeSet<Arc<str>>) -> Self {
        Self(Arc::new(Heard { steps: Mutex::default(), noop, is_plan: true }))
    }

    /// Creates a collector of the present differences only. `noop` lists the resources that are declared `noop`.
    #[must_use]
    pub fn of_now(noop: BTreeSet<Arc<str>>) -> Self {
        Self(Arc::new(Heard { steps: Mutex::default(), noop, is_plan: false }))
    }

    /// Takes all collected steps, in no particular order.
    #[must_use]
    pub fn take(&self) -> Vec<Step> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Step>> {
        self.0.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for StepCollector {
    fn hear(&mut self, news: &Notification<'_>) {
        let Notification::Held {
            identity,
            holding,
            until,
            differences,
            destructive,
            seal,
            follows,
            ..
        } = news
        else {
            return;
        };
        let action = match holding {
            HeldReason::Operator => return,
            _ if self.0.noop.contains(*identity) => Action::Held,
            HeldReason::Window(_) => Action::Held,
            HeldReason::UnknownUntil(_) => Action::Unknown,
            HeldReason::WouldRefresh => Action::Refresh,
            HeldReason::WouldChange if *destructive => Action::Remove,
            HeldReason::WouldChange => Action::Change,
        };
        let is_shown = action != Action::Held || matches!(holding, HeldReason::Window(_));
        let until = until.filter(|_| is_shown);
        let mut step = Step {
            resource: (*identity).to_owned(),
            action,
            until: until.map(ToOwned::to_owned),
            leaves: false,
            removes: false,
            differences: differences.iter().map(Differing::from).collect(),
            seal: *seal,
            follows: *follows,
        };
        let mut steps = self.lock();
        // A vertex may be held again for another reason: the last notification counts.
        if let Some(at) = steps.iter().position(|known| known.resource == step.resource) {
            step.mark_uncertain(steps.swap_remove(at));
        }
        steps.push(step);
    }

    fn wants_foresight(&self) -> bool {
        self.0.is_plan
    }
}
