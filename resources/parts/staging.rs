//! A private folder for work in progress: downloads and unpacked archives, before they are judged.

use super::commands::{command, run_change};
use super::managed::WriteFailure;
use super::on_thread;
use crate::failure::Failure;
use crate::host::files::{EntryStat, Fault, Files, said};
use crate::host::input_trust::Reader;
use crate::host::{Host, wall};
use crate::permit::Permit;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock};
use std::os::fd::OwnedFd;
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
        let failure = said("write", path, "other users can change its parent directory")
            .hint("choose a place in a directory that only its owner can write");
        Err(Fault::refused(failure))
    };
    guard().map_err(|fault| files.failure(fault, path))
}

/// Fails for root if another user can change the parent directory of a path, or a directory or link on the way to it.
///
/// # Errors
///
/// The failure names the path and the directory.
pub(crate) fn guard_way(doing: &str, path: &Path) -> Result<(), Failure> {
    guard_way_for(doing, path, None)
}

/// Fails as [`guard_way`] does, unless the other user is this one.
///
/// # Errors
///
/// The failure names the path and the directory.
pub(crate) fn guard_way_for(doing: &str, path: &Path, user: Option<u32>) -> Result<(), Failure> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let reader = Reader::here().on_behalf_of(user);
    match reader.untrusted_on_the_way(parent).filter(|_| reader.is_strict()) {
        Some(doubt) => {
            let why = format!("another user could change {}", parent.display());
            Err(said(doing, path, &why).hint(format!("make root the owner: {doubt}")))
        }
        None => Ok(()),
    }
}

/// The folder of downloads: only their owner can replace the objects in it.
pub(crate) const DOWNLOADS: &str = "/var/tmp";

/// The age in seconds from which a folder is a leftover of a killed process: no step takes so long.
const LEFTOVER: i64 = 24 * 60 * 60;

/// The age in seconds from which a folder that no process has locked is a leftover.
const UNLOCKED: i64 = 60;

/// Locks a folder while this process lives; none if it cannot be opened, or if another process has the lock.
fn lock_folder(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(folder)
}

/// Returns the leftover folders in a directory.
fn find_leftovers(files: &Files, parent: &Path) -> Result<Vec<PathBuf>, Fault> {
    let Some(spot) = files.open_entry(parent)? else { return Ok(Vec::new()) };
    let Some(seen) = spot.look()?.filter(|seen| seen.kind == FileType::Directory) else {
        return Ok(Vec::new());
    };
    let directory = spot.branch(&seen, false)?;
    let now = wall().as_secs().cast_signed();
    let mut leftovers = Vec::new();
    for name in directory.names()? {
        let is_ours = name.to_str().and_then(|name| name.strip_prefix(".steadfast-"));
        if is_ours.is_none_or(|rest| rest.len() != 10) {
            continue;
        }
        let path = parent.join(&name);
        let seen = directory.open_entry(&path).look()?;
        let is_leftover = |seen: &EntryStat| {
            let age = now - seen.changed.0;
            let is_private =
                seen.kind == FileType::Directory && files.owns(seen) && seen.mode & 0o7777 == 0o700;
            is_private && (age > LEFTOVER || (age > UNLOCKED && lock_folder(&path).is_some()))
        };
        if seen.as_ref().is_some_and(is_leftover) {
            leftovers.push(path);
        }
    }
    Ok(leftovers)
}

/// A folder that only the daemon's user can enter, with the lock that ends with this process.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    _lock: Option<OwnedFd>,
}

impl Staging {
    /// Makes a folder in `parent`, in which no other user may be able to replace it. Folders that killed processes left
    /// there are removed; a failure of that is tried again the next time.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be made, for example on a full disk.
    pub(crate) async fn make(
        host: &Host,
        permit: &Permit,
        parent: &Path,
    ) -> Result<Self, WriteFailure> {
        let own = parent.to_owned();
        let leftovers = on_thread(host, move |host| find_leftovers(host.files(), &own)).await;
        for path in leftovers.into_iter().flat_map(Result::unwrap_or_default) {
            let _tried_again = Self { path, _lock: None }.remove(host, permit).await;
        }
        let pattern = parent.join(".steadfast-XXXXXXXXXX").display().to_string();
        let made = run_change(host, permit, &command(&["mktemp", "-d", "--", &pattern])).await;
        let made = made.map_err(|failed| WriteFailure { touched: false, ..failed })?;
        let path = PathBuf::from(made.stdout.text().trim_end_matches('\n'));
        let lock = lock_folder(&path);
        Ok(Self { path, _lock: lock })
    }

    /// Returns the path of an object in the folder.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Removes the folder with everything in it.
    ///
    /// # Errors
    ///
    /// Fails if something could not be removed, or if the permit was revoked; the folder then remains.
    pub(crate) async fn remove(self, host: &Host, permit: &Permit) -> Result<(), WriteFailure> {
        let path = self.path.display().to_string();
        let mut removal = command(&["rm", "-rf", "--one-file-system", "--", &path]);
        removal.timeout = Some(Duration::from_mins(10));
        run_change(host, permit, &removal).await.map(|_| ())
    }
}

#[cfg(all(test, feature = "simulated-host"))]
mod tests {
    use super::{LEFTOVER, find_leftovers, lock_folder};
    use crate::host::Host;
    use crate::host::simulated::Machine;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    #[test]
    fn a_leftover_is_a_day_old_private_folder() {
        let machine = Machine::default();
        let make = |name: &str, mode| {
            machine.make_directories(format!("/srv/{name}")).unwrap();
            machine.chmod(format!("/srv/{name}"), mode).unwrap();
        };
        make(".steadfast-0123456789", 0o700);
        make(".steadfast-open567890", 0o755);
        make(".steadfast-short", 0o700);
        make("other", 0o700);
        machine.write("/srv/.steadfast-file567890", "").unwrap();
        let later = Duration::from_secs(LEFTOVER.unsigned_abs() + 1);
        machine.set_wall(machine.wall() + later);
        make(".steadfast-young67890", 0o700);
        let host = Host::default();
        let _entered = machine.enter();
        let found = find_leftovers(host.files(), Path::new("/srv")).unwrap();
        assert_eq!(found, [PathBuf::from("/srv/.steadfast-0123456789")]);
        assert!(find_leftovers(host.files(), Path::new("/missing")).unwrap().is_empty());
    }

    /// A folder of a process that has ended has no lock.
    #[test]
    fn a_folder_without_a_lock_is_left_over_after_a_minute() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join(".steadfast-0123456789");
        std::fs::create_dir(&folder).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&folder, mode).unwrap();
        let lock = lock_folder(&folder);
        assert!(lock.is_some() && lock_folder(&folder).is_none());
        drop(lock);
        assert!(lock_folder(&folder).is_some());
        let host = Host::default();
        assert!(find_leftovers(host.files(), above.path()).unwrap().is_empty(), "it is young");
    }
}
