//! The history: the prior state of each change, stored durably before the change, limited by size and age, for undo.
//!
//! [`History`] is the only writer; its thread commits waiting entries together. Each run receives a
//! [`PriorStateRecorder`] with its permit. [`Reader`] works beside a writer. The history has its own database, and a
//! failure of that database must never harm the rest of the state (docs/decisions/0029-history-and-undo.md).
//!
//! Reading order: `entry` (one row), `database`, `writer`, `batch_writer` (its thread), `run_capture` (one run),
//! `reader`, `undo_limits`, `edits`, `listing`, `undo_log`, `renames`, `shared_limits`, `interrupted_writer`,
//! `last_number`.
//!
//! [`PriorStateRecorder`]: steadfast_resources::PriorStateRecorder

mod batch_writer;
mod database;
mod edits;
mod entry;
mod interrupted_writer;
mod last_number;
mod listing;
mod reader;
mod renames;
mod run_capture;
mod shared_limits;
mod undo_limits;
mod undo_log;
mod writer;

pub use listing::Selected;
pub use reader::{Entry, Listed, Reader, UNREADABLE, Undo, UndoStep, Undoable};
pub use renames::{Alias, Names};
pub use undo_limits::describe_missing_content;
pub use writer::{Clock, History};

use crate::store::HISTORY;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// The limits of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size in bytes above which the content of a file is not stored.
    pub file: u64,
    /// The size of the whole history as stored, in bytes; 0 turns the history off.
    pub total: u64,
    /// The age at which entries are dropped.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file: 10 << 20, total: 200 << 20, age: Duration::from_hours(90 * 24) }
    }
}

/// The description of an entry of values that a run has produced, such as the output of a command.
pub const PRODUCED: &str = "produced";

/// The cause of runs that an undo starts.
pub(crate) const UNDO: &str = "undo";

/// An error of the history.
#[derive(Clone, Debug, Error)]
pub enum HistoryError {
    /// The database failed.
    #[error("cannot use the history in {path}: {why}")]
    Database {
        /// The path of the database.
        path: String,
        /// The reason.
        why: String,
    },
    /// A newer program has written the database; the file was not touched.
    #[error("cannot use the history in {path}: {why}")]
    Newer {
        /// The path of the database.
        path: String,
        /// The schema versions, found and supported.
        why: String,
    },
    /// The state directory is gone, so that no entry could be found later.
    #[error("cannot record in the history: the state directory {0} was removed or replaced")]
    Gone(String),
    /// The prior state is larger than the limit of the whole history, in bytes.
    #[error("the content exceeds the size limit of the history (max_total, {0} bytes)")]
    Beyond(u64),
    /// The requested entry is not in the history.
    #[error("{0}")]
    Unknown(String),
    /// Some of the requested state cannot be restored, so nothing was.
    #[error("nothing was restored, because a part cannot be restored; --partial restores the rest\n{}", .0.join("\n"))]
    Unrestorable(Vec<String>),
}

impl HistoryError {
    /// Returns advice for the case that a change is held because its prior state cannot be stored.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Database { why, .. } if why.contains("locked") => {
                "end the program that holds the database, such as a backup"
            }
            Self::Newer { .. } => {
                "install the steadfast version that wrote the history, or move `history` out of the state directory"
            }
            Self::Beyond(_) => {
                "raise `max_total` in the settings, or disable the history: history: {max_total: 0}"
            }
            Self::Gone(_) => {
                "`systemctl restart steadfast` continues with the current state directory"
            }
            Self::Database { .. } | Self::Unknown(_) | Self::Unrestorable(_) => {
                "free disk space for the history, or disable the history: history: {max_total: 0}"
            }
        }
    }
}

/// Returns the path of the database in a state directory.
fn database(state_directory: &Path) -> PathBuf {
    state_directory.join(HISTORY).join("history.db")
}
