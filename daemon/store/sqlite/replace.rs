//! A database takes the place of one that cannot be read: it is whole before anything of the other is moved, so that whoever is killed
//! in between loses nothing.

use super::manifest::Manifest;
use super::repair::write_all;
use super::{Opened, Records, begin_anew};
use crate::store::database;
use crate::store::database::{Fault, with_suffix};
use crate::store::state_dir::StateLock;
use std::path::{Path, PathBuf};

/// One that is being made.
const MAKING: &str = ".making";

/// One that is whole, and not in its place yet.
const WHOLE: &str = ".repaired";

/// Puts one with this in the place of what is there. Answers where that is now.
pub(super) fn replace(
    path: &Path,
    hold: &StateLock,
    what: (&Records, &Manifest),
) -> Result<PathBuf, Fault> {
    let (making, whole) = (with_suffix(path, MAKING), with_suffix(path, WHOLE));
    for left in [&making, &whole] {
        database::remove(left)?;
    }
    let Opened { mut connection, .. } = begin_anew(&making)?;
    write_all(&mut connection, hold, what)?;
    // With it goes its log: from here on it is one file.
    connection.close().map_err(|(_, error)| Fault::from(error))?;
    std::fs::rename(&making, &whole)?;
    put_into_place(path)
}

/// Whether a replacement was cut off when all of it was written.
pub(super) fn is_whole(path: &Path) -> bool {
    with_suffix(path, WHOLE).exists()
}

/// What is there goes aside, and what was made comes into its place.
pub(super) fn put_into_place(path: &Path) -> Result<PathBuf, Fault> {
    database::sync_beside(path)?;
    let aside = database::move_aside(path)?;
    std::fs::rename(with_suffix(path, WHOLE), path)?;
    database::sync_beside(path)?;
    Ok(aside)
}

/// What is there can be read: one that was to replace it is not wanted any more.
pub(super) fn forget(path: &Path) {
    let whole = with_suffix(path, WHOLE);
    if whole.exists()
        && let Err(error) = database::remove(&whole)
    {
        tracing::warn!(%error, "{} could not be removed and is no longer needed", whole.display());
    }
}
