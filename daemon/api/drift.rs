//! The differences between the host and the graph, as a check on request finds them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One aspect in which a resource differs from its declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Differing {
    /// The name of the aspect.
    pub aspect: String,
    /// The current value; empty if there is none.
    pub from: String,
    /// The declared value.
    pub to: String,
    /// A unified diff, if both values are texts that may be shown.
    pub diff: Option<String>,
}

/// The result of a check on request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inspection {
    /// `kind[name]`.
    pub resource: String,
    /// The differences; empty if the resource is as declared.
    pub differences: Vec<Differing>,
    /// True if an apply would destroy something that exists.
    pub destructive: bool,
    /// The reason for which the check has no result.
    pub error: Option<String>,
    /// True if no apply may follow: the resource has `noop`, or its maintenance window is closed.
    #[serde(default)]
    pub held: bool,
}

/// The results of checks on request: resources that differ, and resources whose check has no result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Inspections {
    /// One result for each such resource.
    pub items: Vec<Inspection>,
    /// The number of resources that were not checked.
    pub skipped: usize,
    /// Resources that were skipped because they are paused on their own.
    #[serde(default)]
    pub paused: Vec<String>,
    /// Resources that were skipped because they depend on a paused one.
    #[serde(default)]
    pub waiting: Vec<String>,
}
