//! The result of a reload: the difference between two graphs, and the changed settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of an accepted load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadOutcome {
    /// The name of the graph.
    pub graph: String,
    /// The difference from the old graph.
    pub change: GraphDiff,
    /// Identities of resources whose runs must end before the graph runs; empty if it runs at once.
    pub waits: Vec<String>,
    /// True if the graph has `noop` for all its resources: nothing is changed.
    #[serde(default)]
    pub noop: bool,
}

/// The difference between two graphs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphDiff {
    /// Resources that only the new graph declares.
    pub added: NameSample,
    /// Resources with another definition.
    pub changed: NameSample,
    /// Resources that only the old graph declares, and whose objects are removed from the host.
    pub removed: NameSample,
    /// Resources that only the old graph declares, and whose objects stay on the host.
    #[serde(default)]
    pub retained: NameSample,
    /// Resources that ran in the old graph and are inactive in the new one: their records stay.
    #[serde(default)]
    pub deactivated: NameSample,
    /// The number of resources with the same definition.
    pub unchanged: usize,
    /// The number of all inactive resources of the new graph.
    #[serde(default)]
    pub inactive: usize,
    /// False for the first graph: all its resources are new, and are not named.
    pub again: bool,
}

/// The number of resources in a category, with a sample of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NameSample {
    /// The total number.
    pub count: usize,
    /// The first names in ascending order.
    pub names: Vec<String>,
}

/// The names of the settings that a reload changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingsChange {
    /// The settings that hold from now on.
    pub applied: Vec<String>,
    /// The settings that hold after a restart.
    pub restart: Vec<String>,
}

/// The reply to a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reloaded {
    /// The result of loading the graph.
    #[serde(flatten)]
    pub loaded: LoadOutcome,
    /// The change of the settings.
    #[serde(default)]
    pub settings: SettingsChange,
}
