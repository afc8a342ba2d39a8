//! Replacement of an unreadable database: the new one is complete before the old one is moved, so a kill in between
//! loses nothing.

use super::manifest::Manifest;
use super::repair::write_all;
use super::{Opened, Records, begin_anew};
use crate::store::database;
use crate::store::database::{Fault, with_suffix};
use crate::store::state_dir::StateLock;
use std::path::{Path, PathBuf};

/// The suffix of a new database in the making.
const MAKING: &str = ".making";

/// The suffix of a complete new database that is not in its place yet.
const WHOLE: &str = ".repaired";

/// Puts a database with this content into the place of the old one. Returns the new path of the old one.
pub(super) fn replace(
    path: &Path,
    state_lock: &StateLock,
    what: (&Records, &Manifest),
) -> Result<PathBuf, Fault> {
    let (making, whole) = (with_suffix(path, MAKING), with_suffix(path, WHOLE));
    for left in [&making, &whole] {
        database::remove(left)?;
    }
    let Opened { mut connection, .. } = begin_anew(&making)?;
    write_all(&mut connection, state_lock, what)?;
    // Closing removes the log: from here on the database is one file.
    connection.close().map_err(|(_, error)| Fault::from(error))?;
    std::fs::rename(&making, &whole)?;
    put_into_place(path)
}

/// Returns true if a replacement was interrupted after the new database was complete.
pub(super) fn is_whole(path: &Path) -> bool {
    with_suffix(path, WHOLE).exists()
}

/// Moves the old database aside, and the new one into its place. Returns the path of the old one.
pub(super) fn put_into_place(path: &Path) -> Result<PathBuf, Fault> {
    database::sync_beside(path)?;
    let aside = database::move_aside(path)?;
    std::fs::rename(with_suffix(path, WHOLE), path)?;
    database::sync_beside(path)?;
    Ok(aside)
}

/// Removes a complete new database that is no longer needed, since the old one can be read.
pub(super) fn forget(path: &Path) {
    let whole = with_suffix(path, WHOLE);
    if whole.exists()
        && let Err(error) = database::remove(&whole)
    {
        tracing::warn!(%error, "{} could not be removed and is no longer needed", whole.display());
    }
}
