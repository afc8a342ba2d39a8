//! An event: one change of state, numbered and recorded. `event_data` has the payloads.

use super::event_data::{
    Asking, Changed, Contended, Converged, DeadLettered, Failed, Gap, Held, Interrupted,
    LastGoodGraph, Loaded, Loading, PauseEnds, Paused, Reason, RepairsSuspended, Repeated,
    Retrying, RunFailed, Session, SessionEnd, Text, Waiting, Worker,
};
use super::load::SettingsChange;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The severity of an event.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Details for debugging.
    Debug,
    /// A change of state.
    Info,
    /// A problem that may end by itself.
    Warn,
    /// A problem that lasts.
    Error,
}

/// A recorded or live event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The number in the event log, one more than that of the previous event. `None` if the event is not recorded: a
    /// debug event, a repeated event, or an event while the log cannot be written.
    pub number: Option<u64>,
    /// The time of the event, in milliseconds since 1970.
    pub at: u64,
    /// The resource as `kind[name]`; `None` for the whole host.
    pub resource: Option<String>,
    /// The severity.
    pub level: Level,
    /// The data in words, as printable text.
    pub message: String,
    /// The name of the event, and its data.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// An event of an older version, which stored a text only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OldEvent {
    /// The name of the event.
    pub event: String,
    /// The recorded fields.
    #[serde(default)]
    pub data: OldData,
}

/// The fields of an event of an older version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OldData {
    /// The class of a change, or the result of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The number of events that this one represents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// For the end of a session: the number of its start event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
}

/// Defines [`EventKind`]: each row has the name of an event, its levels, its variant, and the type of its data.
macro_rules! event_kinds {
    ($($(#[doc = $doc:literal])* $name:literal, $levels:literal: $variant:ident $(($data:ty))?;)*) => {
        /// The name of an event (`event`) with its data (`data`; absent if the name says everything).
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "event", content = "data")]
        pub enum EventKind {
            $($(#[doc = $doc])* #[serde(rename = $name)] $variant $(($data))?,)*
            /// An event of an older version.
            #[serde(untagged)]
            Old(OldEvent),
        }

        impl EventKind {
            /// The names of all events, each with its levels and its meaning.
            pub const TABLE: &'static [(&'static str, &'static str, &'static str)] =
                &[$(($name, $levels, concat!($($doc),*))),*];

            /// Returns the name of the event.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                    Self::Old(old) => &old.event,
                }
            }
        }
    };
}

event_kinds! {
    /// A run has started.
    "started", "debug": Started;
    /// A run has found the resource as declared.
    "unchanged", "debug": Unchanged;
    /// An apply has changed the host.
    "changed", "info": Changed(Changed);
    /// A run has ended with an error that does not count as a failure yet.
    "error", "debug": Error(RunFailed);
    /// The parents of a failed run are checked before the failure counts.
    "asking", "debug": Asking(Asking);
    /// The failure does not count, because a resource above differs.
    "excused", "debug": Excused;
    /// A run has failed, and a retry follows after the delay.
    "retrying", "warn": Retrying(Retrying);
    /// The resource has failed, and no retries are left.
    "failed", "error": Failed(Failed);
    /// A failed resource is as declared again.
    "recovered", "info": Recovered;
    /// A converged resource differs.
    "diverged", "info": Diverged;
    /// A difference waits for a permission: noop, a maintenance window, a pause, the operator.
    "held", "info": Held(Held);
    /// A run does not return.
    "stuck", "error": Stuck;
    /// A stop or a crash has cut a run off.
    "interrupted", "warn": Interrupted(Interrupted);
    /// The resource cannot be watched; it is polled.
    "unwatched", "warn": Unwatched(Reason);
    /// The daemon or the resource is paused.
    "paused", "info": Paused(Paused);
    /// The pause of the daemon or of the resource has ended.
    "resumed", "info": Resumed;
    /// Somebody undoes repairs again and again.
    "contended", "warn": Contended(Contended);
    /// The contention has ended; the repair delay is reset.
    "contention_ended", "info": ContentionEnded;
    /// The resource is applied separately from its group.
    "group_split", "warn": GroupSplit(Reason);
    /// The resource is in its group again.
    "group_joined", "info": GroupJoined;
    /// The resource has left the graph and awaits an operator's reload.
    "undeclared", "info": Undeclared(Text);
    /// The resource has left the graph: removed or forgotten.
    "removed", "info": Removed(Text);
    /// An operator protects the resource from removal.
    "protected", "info": Protected(Text);
    /// An operator has ended the protection of the resource.
    "unprotected", "info": Unprotected(Text);
    /// An operator has discarded the ownership and run-once records of the resource.
    "forgotten", "info": Forgotten(Text);
    /// An operator lets the resource run again.
    "retried", "info": Retried(Text);
    /// An operator has restored a prior state of the resource.
    "undone", "info": Undone(Text);
    /// A session has begun.
    "run_start", "info": RunStart(Session);
    /// A session has ended, or was found to have been cut off. Each start has one end.
    "run_end", "info, warn": RunEnd(SessionEnd);
    /// A graph is accepted and runs.
    "loaded", "info": Loaded(Loaded);
    /// An accepted graph waits for runs to end.
    "loading", "info": Loading(Loading);
    /// A graph is invalid; the running graph continues.
    "rejected", "error": Rejected(Reason);
    /// The start runs the last-good graph, because the current graph is rejected.
    "last_good_graph_used", "error": LastGoodGraphUsed(LastGoodGraph);
    /// The start uses the settings of the last daemon.
    "last_good_settings", "error": LastGoodSettings(Reason);
    /// The settings were loaded; names those that need a restart.
    "settings", "info": Settings(SettingsChange);
    /// All resources are as declared.
    "converged", "info": Converged(Converged);
    /// A pause waits for runs.
    "pausing", "info": Pausing(Waiting);
    /// The pause of the daemon ends soon.
    "pause_ends", "warn": PauseEnds(PauseEnds);
    /// Too many repeated repairs: for a while, no resource is repaired more than three times within a
    /// minute.
    "repairs_suspended", "error": RepairsSuspended(RepairsSuspended);
    /// All repairs continue.
    "repairs_resumed", "warn": RepairsResumed;
    /// The state cannot be used; nothing is changed.
    "read_only", "error": ReadOnly(Reason);
    /// The state cannot be written; nothing new begins.
    "state_write_failed", "error": StateWriteFailed(Reason);
    /// The stop waits for runs.
    "stopping", "info": Stopping(Waiting);
    /// The stop is complete; runs may have been interrupted.
    "stopped", "info": Stopped(Waiting);
    /// The world is out of reach, or answers again.
    "world", "info, warn": World(Reason);
    /// A bundle is rejected; the running graph continues.
    "bundle", "error": Bundle(Reason);
    /// An operator has imported a state.
    "imported", "info": Imported(Text);
    /// An operator has repaired the state.
    "repaired", "info": Repaired(Text);
    /// The load of the state has repaired records.
    "state_repaired", "warn": StateRepaired(Text);
    /// A write to the state breaks a rule.
    "state_unsound", "warn": StateUnsound(Text);
    /// Records of an unknown kind stay as they are.
    "state_left_alone", "warn": StateLeftAlone(Text);
    /// A worker of the daemon has started.
    "worker_started", "info": WorkerStarted(Worker);
    /// A worker of the daemon has stopped.
    "worker_stopped", "info, warn, error": WorkerStopped(Worker);
    /// Events are missing here.
    "gap", "warn, error": Gap(Gap);
    /// More than ten equal events in ten minutes, counted.
    "repeated", "info, warn, error": Repeated(Repeated);
    /// A recorder's server has rejected a batch for good.
    "dead_lettered", "warn": DeadLettered(DeadLettered);
    /// A fault of the program.
    "internal_error", "error": InternalError(Text);
}

impl EventKind {
    /// Returns the data of the event as JSON; `None` if the name says everything.
    #[must_use]
    pub fn data(&self) -> Option<serde_json::Value> {
        let mut kind = serde_json::to_value(self).ok()?;
        kind.get_mut("data").map(serde_json::Value::take)
    }

    /// Returns the class of a change, or the result of a session.
    #[must_use]
    pub fn class(&self) -> Option<&str> {
        match self {
            Self::Changed(changed) => Some(changed.class.words()),
            Self::RunEnd(end) => Some(&end.result),
            Self::Old(old) => old.data.class.as_deref(),
            _ => None,
        }
    }
}
