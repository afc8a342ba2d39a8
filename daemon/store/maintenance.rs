//! Maintenance of the whole state by an operator (B-24), used by the daemon and by offline commands.

use super::{
    Imported, RecordReaders, RepairReport, SqliteStore, StateLock, StoreError, StoredState,
    export_format,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A maintenance operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Maintenance {
    /// Repair everything that violates a rule, as far as it can be read.
    Repair,
    /// Replace the state with the content of `import.json` in the state directory.
    Import,
}

/// Returns the path of a state that a daemon imports.
#[must_use]
pub fn inbox(state_directory: &Path) -> PathBuf {
    state_directory.join("import.json")
}

/// Executes a maintenance operation; the lock guarantees that nobody else uses the state. Returns a line for each
/// change.
///
/// # Errors
///
/// Returns the reason in words.
pub fn maintain_state(
    what: Maintenance,
    directory: &Path,
    state_lock: Arc<StateLock>,
    readers: RecordReaders,
) -> Result<Vec<String>, String> {
    let words = |error: StoreError| error.to_string();
    let repaired = match what {
        Maintenance::Repair => SqliteStore::repair(state_lock, readers).map_err(words)?,
        Maintenance::Import => {
            let path = inbox(directory);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            let new = export_format::read(&text, &readers).map_err(|wrong| wrong.join("\n"))?;
            // An import does not end a pause of the daemon.
            let pause = SqliteStore::peek(directory).ok().and_then(|kept| kept.pause);
            let Imported { recalled: new, machine } = new;
            let recalled = StoredState { pause: pause.or_else(|| new.pause.clone()), ..new };
            let new = Imported { recalled, machine };
            let repaired = SqliteStore::import(&state_lock, new, &readers).map_err(words)?;
            if let Err(error) = std::fs::remove_file(&path) {
                tracing::debug!(%error, "the imported file could not be removed");
            }
            repaired
        }
    };
    Ok(in_words(&repaired))
}

fn in_words(repaired: &RepairReport) -> Vec<String> {
    let mut lines = repaired.lines().to_vec();
    lines
        .extend(repaired.copy().map(|copy| format!("backup of the old state: {}", copy.display())));
    lines
}
