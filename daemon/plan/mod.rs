//! A plan as data: what a pass that changes nothing has found, kept in a file, and held against the pass that then does it.
//!
//! Who planned is told no other thing than what is done, or nothing is done: [`Plan`] is a [`Guard`](crate::driver::Guard) of the driver, and a check that
//! finds anything else than was planned counts as one that failed, with the aspect that moved.

mod file;
mod guard;

pub use file::{Plan, Unusable};

use crate::driver::status::Differing;
use crate::driver::{Notification, Observer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use steadfast_engine::HeldReason;

/// What would be done to one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// `kind[name]`.
    pub resource: String,
    /// What sort of step it is.
    pub action: Action,
    /// For *unknown*: the resource that must be changed first. For *held*: what holds it, where that is a window.
    pub until: Option<String>,
    /// It has left the graph.
    #[serde(default)]
    pub leaves: bool,
    /// Of *unknown*: as found now, something that exists would be gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removes: bool,
    /// What differs; of *unknown* what differs now, where that was found before it was in doubt.
    pub differences: Vec<Differing>,
    /// See [`steadfast_resources::Change::seal`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seal: u64,
    /// The result depends on what earlier steps make; the seal is that of the host as it was at the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows: bool,
}

impl Step {
    /// Notes whether its resource has left the graph: what is changed of it then is gone, also where nothing is deleted (a service
    /// that is stopped).
    pub fn note_leaving(&mut self, leaves: bool) {
        self.leaves = leaves;
        if leaves && self.action == Action::Change {
            self.action = Action::Remove;
        }
        self.removes |= leaves && self.action == Action::Unknown;
    }

    /// Whether something that exists would be gone, as far as that is known.
    #[must_use]
    pub fn is_removal(&self) -> bool {
        self.removes || self.action == Action::Remove
    }

    /// It is in doubt: what was found of it before is kept, so that it is noticed where that moves.
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
    /// It is changed.
    Change,
    /// Something that exists is gone afterwards.
    Remove,
    /// Nothing differs, and it is refreshed.
    Refresh,
    /// It cannot be told before another is changed.
    Unknown,
    /// It differs and is left so: `noop: true`, or outside of its window.
    Held,
}

/// The steps that are heard of while a driver looks. Clones are the same ones.
#[derive(Clone, Debug, Default)]
pub struct StepCollector(Arc<Heard>);

#[derive(Debug, Default)]
struct Heard {
    steps: Mutex<Vec<Step>>,
    /// Those that would be left alone by an apply too.
    noop: BTreeSet<Arc<str>>,
    /// What an apply would do is asked for, not only what differs now.
    is_plan: bool,
}

impl StepCollector {
    /// For a graph in which these are declared `noop`.
    #[must_use]
    pub fn new(noop: BTreeSet<Arc<str>>) -> Self {
        Self(Arc::new(Heard { steps: Mutex::default(), noop, is_plan: true }))
    }

    /// The same where it is asked what differs now.
    #[must_use]
    pub fn of_now(noop: BTreeSet<Arc<str>>) -> Self {
        Self(Arc::new(Heard { steps: Mutex::default(), noop, is_plan: false }))
    }

    /// All of them, in no particular order.
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
        // A vertex may be held again for a further cause: the last word counts.
        if let Some(at) = steps.iter().position(|known| known.resource == step.resource) {
            step.mark_uncertain(steps.swap_remove(at));
        }
        steps.push(step);
    }

    fn wants_foresight(&self) -> bool {
        self.0.is_plan
    }
}
