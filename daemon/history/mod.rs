//! What was there before each change: kept durably before it is made, bounded by size and age, and put back on request.
//!
//! [`History`] is the one writer, with a thread that commits together what waits; each run has a [`Keeper`] of it, which comes with the
//! run's permit. [`Reader`] looks, beside a writer too. All is in one database of its own, so that whatever happens to it hurts
//! nothing else (docs/decisions/0029-history-and-undo.md).
//!
//! [`Keeper`]: steadfast_resources::PriorStateRecorder

mod compression;
mod database;
mod entry;
mod reader;
mod renames;
mod run_capture;
mod shared_limits;
mod undo_log;
mod writer;

pub use reader::{Entry, Listed, Reader, UNREADABLE, Undo, Undoable, unkept};
pub use renames::{Alias, Names};
pub use writer::{Clock, History};

use crate::store::HISTORY;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Larger files are not kept, in bytes.
    pub file: u64,
    /// All together, as stored, in bytes; 0: nothing is kept.
    pub total: u64,
    /// What is older goes.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file: 10 << 20, total: 200 << 20, age: Duration::from_hours(90 * 24) }
    }
}

/// The cause of what an undo changes.
pub(crate) const UNDO: &str = "undo";

/// Why the history cannot be used.
#[derive(Clone, Debug, Error)]
pub enum HistoryError {
    /// The database.
    #[error("cannot use the history in {path}: {why}")]
    Database {
        /// Its file.
        path: String,
        /// What it said.
        why: String,
    },
    /// A newer program has made it; it was left as it is.
    #[error("cannot use the history in {path}: {why}")]
    Newer {
        /// Its file.
        path: String,
        /// Which schemas there are.
        why: String,
    },
    /// What is to be kept is more than all that may be kept, in bytes.
    #[error("the content exceeds the size limit of the history (max_total, {0} bytes)")]
    Beyond(u64),
    /// Asked for something that is not kept.
    #[error("{0}")]
    Unknown(String),
    /// What was asked for is known, and cannot be put back: nothing of it is.
    #[error("nothing was restored, because a part cannot be restored; --partial restores the rest\n{}", .0.join("\n"))]
    Unrestorable(Vec<String>),
}

impl HistoryError {
    /// What to do, so that it can be kept what was there before a change.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::Newer { .. } => {
                "install the steadfast version that wrote the history, or move `history` out of the state directory"
            }
            Self::Beyond(_) => {
                "raise `max_total` in the settings, or disable the history: history: {max_total: 0}"
            }
            Self::Database { .. } | Self::Unknown(_) | Self::Unrestorable(_) => {
                "free disk space for the history, or disable the history: history: {max_total: 0}"
            }
        }
    }
}

/// The database of a state directory.
fn database(state_directory: &Path) -> PathBuf {
    state_directory.join(HISTORY).join("history.db")
}
