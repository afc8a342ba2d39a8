//! The state directory: which one, and how it is opened.

use super::exit::Exit;
use super::text;
use crate::store::SqliteStore;
use crate::store::{Recalled, Store, StoreError};
use std::path::{Path, PathBuf};

/// The directory: as said, as systemd says, root's, or the user's own.
pub(super) fn directory(said: Option<&Path>) -> PathBuf {
    if let Some(said) = said {
        return std::path::absolute(said).unwrap_or_else(|_| said.to_owned());
    }
    if let Some(unit) = std::env::var_os("STATE_DIRECTORY").filter(|d| !d.is_empty()) {
        return PathBuf::from(unit);
    }
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/steadfast");
    }
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute())
        .unwrap_or_else(|| home.join(".local/state"));
    state.join("steadfast")
}

/// Opens the store for one who changes the host: exclusively.
pub(super) fn open(directory: &Path) -> Result<(Box<dyn Store>, Recalled), Exit> {
    let opened = SqliteStore::open(directory).and_then(|mut store| {
        let recalled = store.recall()?;
        Ok((store, recalled))
    });
    match opened {
        Ok((store, recalled)) => {
            if let Some(bad) = store.moved_aside() {
                let bad = bad.display();
                tracing::warn!(
                    event = "state_lost",
                    "state could not be read and is rebuilt; kept at {bad}"
                );
            }
            Ok((Box::new(store), recalled))
        }
        Err(error) => Err(refuse(&error)),
    }
}

fn refuse(error: &StoreError) -> Exit {
    let (exit, hint) = match error {
        StoreError::Locked { .. } => (
            Exit::Busy,
            "to make it read a changed graph: `systemctl reload steadfast`, or send it HUP",
        ),
        StoreError::Directory { denied: true, .. } => (
            Exit::Permission,
            "run as the owner of the directory, or give another one with --state-dir",
        ),
        StoreError::Directory { .. } | StoreError::Database { .. } => {
            (Exit::State, "give another directory with --state-dir")
        }
    };
    text::error(error.to_string(), Some(hint));
    exit
}
