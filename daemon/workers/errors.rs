//! The errors that workers pass to each other, to the driver, and to clients.

use crate::api::Reply;
use crate::config::Rejected;
use thiserror::Error;
use tokio::task::JoinError;

/// The reason why a graph was not loaded.
#[derive(Debug, Error)]
pub(super) enum GraphError {
    /// The graph has errors.
    #[error("{}", .0.without_values())]
    Rejected(#[from] Rejected),
    /// The thread that read the graph panicked.
    #[error("reading the graph panicked: {0}")]
    Panicked(JoinError),
}

/// The reason why the settings file was rejected, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SettingsRejected(pub String);

/// The reason why the settings were not read again.
#[derive(Debug, Error)]
pub(super) enum SettingsError {
    /// The settings file has errors.
    #[error("the settings are rejected: {0}")]
    Rejected(#[from] SettingsRejected),
    /// The thread that read the settings panicked.
    #[error("reading the settings panicked: {0}")]
    Panicked(JoinError),
}

/// The reason why the level of the log was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LogLevelError(pub String);

impl From<LogLevelError> for Reply {
    fn from(error: LogLevelError) -> Self {
        Self::Refused(error.0)
    }
}

/// The reason why maintenance of the state was not carried out.
#[derive(Debug, Error)]
pub(super) enum MaintenanceError {
    /// The daemon is not paused.
    #[error(
        "the daemon is not paused: run `steadfast pause`, this command, then `steadfast resume`"
    )]
    NotPaused,
    /// The stored pause cannot be read.
    #[error(transparent)]
    State(#[from] crate::store::StoreError),
    /// The maintenance failed.
    #[error("{0}")]
    Failed(String),
    /// The thread of the maintenance panicked.
    #[error(transparent)]
    Panicked(JoinError),
}

/// The reason why a fault was not injected.
#[cfg(feature = "fault-injection")]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum FaultError {
    /// A lease without an end is never found to be lost.
    #[error("the lease has no end: see STEADFAST_TEST_LEASE")]
    EndlessLease,
    /// The kind of the fault is unknown.
    #[error("no fault is named `{0}`")]
    UnknownFault(String),
    /// The worker does not run or does not exist.
    #[error("no worker named `{0}` runs")]
    UnknownWorker(String),
}

#[cfg(feature = "fault-injection")]
impl From<FaultError> for Reply {
    fn from(error: FaultError) -> Self {
        Self::Refused(error.to_string())
    }
}
