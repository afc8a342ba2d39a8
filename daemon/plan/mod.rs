//! Plans as data: the steps that a dry run found, stored in a file, and the guard of the apply that follows the plan.
//!
//! An apply of a [`Plan`] must never change anything that the plan does not contain. The plan is a
//! [`Guard`](crate::driver::Guard) of the driver: a check that finds anything else fails, and its error names the
//! aspect that differs.
//!
//! Reading order: this file (steps and their collector), `file` (the plan and its file), `still_fits` (before the
//! apply), `apply_guard` (during the apply).

mod apply_guard;
mod file;
mod still_fits;

pub use file::{Plan, Unusable};

use crate::api::{Action, Differing, Step};
use crate::driver::{Notification, Observer};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steadfast_engine::HeldReason;

impl Step {
    /// Records if the resource was removed from the graph. A change of a removed resource counts as a removal, even if
    /// nothing is deleted (a service that is stopped).
    pub fn note_leaving(&mut self, pending_removal: bool) {
        self.pending_removal = pending_removal;
        if pending_removal && self.action == Action::Change {
            self.action = Action::Remove;
        }
        self.removes |= pending_removal && self.action == Action::Unknown;
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
            (self.differences, self.premise_digest) = (known.differences, known.premise_digest);
            self.follows = known.follows;
        }
    }
}

/// An observer of the driver that collects the steps of a dry run. Clones share one collection.
#[derive(Clone, Debug, Default)]
pub struct StepCollector(Arc<Heard>);

#[derive(Debug, Default)]
struct Heard {
    steps: Mutex<Vec<Step>>,
    /// The undeclared resources whose objects stay, each with the reason.
    left: Mutex<Vec<(String, String)>>,
    /// The resources with `noop: true`: an apply leaves them unchanged too.
    noop: BTreeSet<Arc<str>>,
    /// True if the steps of an apply are wanted; false if only the present differences are.
    is_plan: bool,
}

impl StepCollector {
    /// Creates a collector for a plan. `noop` lists the resources that are declared `noop`.
    #[must_use]
    pub fn new(noop: BTreeSet<Arc<str>>) -> Self {
        Self(Arc::new(Heard { noop, is_plan: true, ..Heard::default() }))
    }

    /// Creates a collector of the present differences only. `noop` lists the resources that are declared `noop`.
    #[must_use]
    pub fn of_now(noop: BTreeSet<Arc<str>>) -> Self {
        Self(Arc::new(Heard { noop, ..Heard::default() }))
    }

    /// Takes all collected steps, in no particular order.
    #[must_use]
    pub fn take(&self) -> Vec<Step> {
        std::mem::take(&mut *self.lock())
    }

    /// Takes the undeclared resources whose objects stay on the host, each with the reason, in order.
    #[must_use]
    pub fn take_left(&self) -> Vec<(String, String)> {
        let mut left = self.0.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.sort();
        std::mem::take(&mut *left)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Step>> {
        self.0.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for StepCollector {
    fn hear(&mut self, news: &Notification<'_>) {
        if let Notification::Undeclared { identity, message, removed: false } = news {
            let mut left = self.0.left.lock().unwrap_or_else(PoisonError::into_inner);
            left.push(((*identity).to_owned(), (*message).to_owned()));
        }
        let Notification::Held {
            identity,
            holding,
            until,
            differences,
            destructive,
            creates,
            premise_digest,
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
            pending_removal: false,
            removes: false,
            differences: differences.iter().map(Differing::from).collect(),
            premise_digest: *premise_digest,
            creates: action == Action::Change && *creates,
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
