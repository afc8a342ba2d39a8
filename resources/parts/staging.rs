//! A private folder for work in progress: downloads and unpacked archives, before they are judged.

use super::commands::{command, run_change};
use super::managed::WriteFailure;
use crate::failure::Failure;
use crate::host::Host;
use crate::host::files::{Fault, Files, said};
use crate::host::input_trust::Reader;
use crate::permit::Permit;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Fails unless the parent directory of a path exists and no other user can exchange the objects in it, or a directory
/// on the way to it.
///
/// # Errors
///
/// The failure names the path.
pub(crate) fn guard_parent(files: &Files, path: &Path) -> Result<(), Failure> {
    let guard = || -> Result<(), Fault> {
        let Some(spot) = files.open_entry(path)? else {
            return Err(Fault::refused(Files::no_directory(path)));
        };
        if files.is_private_place(&spot)? {
            return guard_way("write", path).map_err(Fault::refused);
        }
        let trouble = said("write", path, "other users can change its parent directory")
            .hint("choose a place in a directory that only its owner can write");
        Err(Fault::refused(trouble))
    };
    guard().map_err(|fault| files.trouble(fault, path))
}

/// Fails for root if another user can change the parent directory of a path, or a directory or link on the way to it.
///
/// # Errors
///
/// The failure names the path and the directory.
pub(crate) fn guard_way(doing: &str, path: &Path) -> Result<(), Failure> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let reader = Reader::here();
    match reader.doubts_on_the_way(parent).filter(|_| reader.is_strict()) {
        Some(doubt) => {
            let why = format!("another user could change {}", parent.display());
            Err(said(doing, path, &why).hint(format!("make root the owner: {doubt}")))
        }
        None => Ok(()),
    }
}

/// The folder of downloads: only their owner can replace the objects in it.
pub(crate) const DOWNLOADS: &str = "/var/tmp";

/// A folder that only the daemon's user can enter.
#[derive(Debug)]
pub(crate) struct Staging(PathBuf);

impl Staging {
    /// Makes a folder in `parent`, in which no other user may be able to replace it.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be made, for example on a full disk.
    pub(crate) async fn make(
        host: &Host,
        permit: &Permit,
        parent: &Path,
    ) -> Result<Self, WriteFailure> {
        let pattern = parent.join(".steadfast-XXXXXXXXXX").display().to_string();
        let made = run_change(host, permit, &command(&["mktemp", "-d", "--", &pattern])).await;
        let made = made.map_err(|failed| WriteFailure { touched: false, ..failed })?;
        Ok(Self(PathBuf::from(made.stdout.text().trim_end_matches('\n'))))
    }

    /// Returns the path of an object in the folder.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Removes the folder with everything in it.
    ///
    /// # Errors
    ///
    /// Fails if something could not be removed, or if the permit was revoked; the folder then remains.
    pub(crate) async fn remove(self, host: &Host, permit: &Permit) -> Result<(), WriteFailure> {
        let path = self.0.display().to_string();
        let mut removal = command(&["rm", "-rf", "--one-file-system", "--", &path]);
        removal.timeout = Some(Duration::from_mins(10));
        run_change(host, permit, &removal).await.map(|_| ())
    }
}
