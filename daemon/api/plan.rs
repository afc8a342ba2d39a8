//! A plan: the steps that an apply would take.

use super::drift::Differing;
use super::status::InactiveStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A planned change of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Step {
    /// `kind[name]`.
    pub resource: String,
    /// The sort of the step.
    pub action: Action,
    /// For *unknown*: the resource that must be changed first. For *held*: the window, if a window holds the resource.
    pub until: Option<String>,
    /// True if the resource was removed from the graph.
    #[serde(default)]
    pub pending_removal: bool,
    /// True for an *unknown* step that, as found now, would remove an existing object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removes: bool,
    /// The differences; for an *unknown* step, those found before the step became uncertain.
    pub differences: Vec<Differing>,
    /// See [`steadfast_resources::Change::premise_digest`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub premise_digest: u64,
    /// True if the step creates the object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub creates: bool,
    /// True if the result depends on objects that earlier steps create. The premise digest is then of the host at the
    /// time of the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A sort of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// The report of `plan --json` and `drift --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanReport {
    /// The name of the graph.
    pub graph: String,
    /// The number of all resources.
    pub total: usize,
    /// The number of resources whose object would be created.
    pub create: usize,
    /// The number of resources that would change or be refreshed.
    pub change: usize,
    /// The number of resources of which an existing object would be removed.
    pub remove: usize,
    /// The number of resources whose result is unknown until another resource is changed.
    pub unknown: usize,
    /// The number of resources that differ and are left unchanged.
    pub held: usize,
    /// The resources whose check has no result.
    pub failed: Vec<FailedCheck>,
    /// The undeclared resources whose objects stay on the host.
    pub stays: Vec<StayingObject>,
    /// The steps, in the order of an apply.
    pub resources: Vec<Step>,
    /// The inactive resources.
    #[serde(default)]
    pub inactive: Vec<InactiveStatus>,
    /// The used facts that a step changes.
    #[serde(default)]
    pub unknown_facts: Vec<UnknownFact>,
}

/// A fact that an expression uses and a step changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownFact {
    /// The name of the fact, such as `hostname`.
    pub fact: String,
    /// The resource that changes it, as `kind[name]`.
    pub until: String,
}

/// A resource whose check has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedCheck {
    /// `kind[name]`.
    pub resource: String,
    /// The reason.
    pub reason: String,
    /// The advice, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// An undeclared resource whose object stays on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StayingObject {
    /// `kind[name]`.
    pub resource: String,
    /// The reason.
    pub reason: String,
}
