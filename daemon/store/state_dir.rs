//! The state directory: private (0700), and held by one process at a time.

use super::lock_owner;
use super::lock_owner::LockOwner;
use super::placement::Placement;
use super::{Key, StoreError, key_check, modes, regular_file};
use crate::file_identity::FileIdentity;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The names of our files in the state directory.
pub(super) const LOCK: &str = "lock";
pub(super) const DATABASE: &str = "state.db";
pub(super) const KEY: &str = "values.key";

/// The file of the last-good graph in the state directory.
pub(crate) const LAST_GOOD_GRAPH: &str = "graph.json";

/// The folder of prior states, which are sealed with the key.
pub(crate) const HISTORY: &str = "history";

/// Makes the directory if it is missing, and ensures that others can neither read nor write in it (S-7).
fn prepare(directory: &Path) -> Result<(), StoreError> {
    let refuse = |why: String| refusal(directory, why, false);
    let failed = |error: std::io::Error| refusal(directory, error.to_string(), is_denied(&error));
    // An existing directory is not touched by any call that could change it.
    if !directory.exists() {
        make(directory).map_err(failed)?;
    }
    let found = std::fs::metadata(directory).map_err(failed)?;
    if !found.is_dir() {
        return Err(refuse("not a directory".to_owned()));
    }
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        let why = format!("the directory belongs to uid {}, not to uid {own}", found.uid());
        return Err(refusal(directory, why, true));
    }
    if !open_to_others(found.mode()) {
        return Ok(());
    }
    // The configured directory may be a shared one, such as /tmp: its mode is never restricted.
    if !is_ours(directory) {
        let mode = found.mode() & 0o7777;
        return Err(StoreError::OpenToOthers { dir: directory.display().to_string(), mode });
    }
    std::fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(failed)
}

fn make(directory: &Path) -> std::io::Result<()> {
    if let Some(parent) = directory.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => {
            let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
            sync(parent.unwrap_or_else(|| Path::new(".")))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn refusal(directory: &Path, why: String, denied: bool) -> StoreError {
    StoreError::Directory { dir: directory.display().to_string(), why, denied }
}

fn is_denied(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

fn open_to_others(mode: u32) -> bool {
    mode & 0o077 != 0
}

/// Returns true if only the owner has access.
pub(super) fn is_private(found: &std::fs::Metadata) -> bool {
    !open_to_others(found.mode())
}

/// Returns true if the directory is empty, or already used by us.
fn is_ours(directory: &Path) -> bool {
    directory.join(LOCK).exists()
        || directory.join(DATABASE).exists()
        || has_key(directory)
        || std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// A state directory, held by this process. The kernel releases the lock when the process ends, also after `kill -9`.
#[derive(Debug)]
pub struct StateLock {
    file: File,
    directory: PathBuf,
    epoch: AtomicU64,
    /// The epoch is written in the lock file.
    named: AtomicBool,
    /// The epoch is written in the database.
    taken: AtomicBool,
    /// Cancelled when another process has taken the state after us; with the epoch of that process.
    fenced: (CancellationToken, AtomicU64),
    /// The lock file at its path.
    place: FileIdentity,
    placement: Placement,
    /// The key in use, from which a removed key file is written again.
    key: OnceLock<Key>,
}

impl StateLock {
    /// Locks a state directory, and makes it if it is missing.
    ///
    /// # Errors
    ///
    /// Returns an error at once if another daemon holds the directory.
    pub fn take(directory: &Path) -> Result<Self, StoreError> {
        let state_lock = Self::take_unsaid(directory)?;
        state_lock.name();
        Ok(state_lock)
    }

    /// Locks a state directory without a note in the lock file: for callers that may have nothing to write. The note is
    /// written with the first commit.
    ///
    /// # Errors
    ///
    /// Returns an error at once if another daemon holds the directory.
    pub fn take_unsaid(directory: &Path) -> Result<Self, StoreError> {
        prepare(directory)?;
        let state_lock = lock(directory)?;
        modes::narrow_all(directory);
        Ok(state_lock)
    }

    /// Writes the owner into the lock file. A full disk is no error: the lock is valid, only its owner is unknown.
    fn name(&self) {
        self.named.store(true, Ordering::SeqCst);
        if let Err(error) = lock_owner::name(&self.file, self.epoch()) {
            tracing::warn!(%error, "cannot write the owner into the lock file");
        }
    }

    /// Returns the path of the directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the number of times that this directory has been taken, according to its lock file or its database.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Returns a token that is cancelled when another process has taken the state although we hold the directory: the
    /// lock file was removed (C-10).
    #[must_use]
    pub fn fenced(&self) -> &CancellationToken {
        &self.fenced.0
    }

    /// Returns the error of every write after this owner was fenced.
    #[must_use]
    pub fn fault(&self) -> StoreError {
        StoreError::Fenced {
            dir: self.directory.display().to_string(),
            epoch: self.fenced.1.load(Ordering::SeqCst),
            ours: self.epoch(),
        }
    }

    /// Returns true if the epoch in the database is ours, or that of an earlier owner.
    pub(super) fn admits(&self, standing: u64) -> bool {
        !self.fenced.0.is_cancelled()
            && (!self.taken.load(Ordering::SeqCst) || standing <= self.epoch())
    }

    /// Records that a process with this epoch has taken the state after us. Returns the error of all later writes.
    pub(super) fn fence(&self, epoch: u64) -> StoreError {
        self.fenced.1.fetch_max(epoch, Ordering::SeqCst);
        self.fenced.0.cancel();
        self.fault()
    }

    /// Returns the epoch under which this owner writes into a database with epoch `standing`.
    pub(super) fn next_epoch(&self, standing: u64) -> u64 {
        let own = self.epoch();
        if self.taken.load(Ordering::SeqCst) { own } else { own.max(standing.saturating_add(1)) }
    }

    /// Records that the database has this epoch from now on.
    pub(super) fn took(&self, epoch: u64) {
        let before = self.epoch.swap(epoch, Ordering::SeqCst);
        self.taken.store(true, Ordering::SeqCst);
        if before != epoch || !self.named.load(Ordering::SeqCst) {
            self.name();
        }
    }

    /// Prepares the replacement of a database with this epoch; the new database does not contain it.
    pub(super) fn comes_after(&self, standing: u64) -> Result<(), StoreError> {
        if !self.admits(standing) {
            return Err(self.fence(standing));
        }
        self.epoch.store(self.next_epoch(standing), Ordering::SeqCst);
        Ok(())
    }

    /// Returns a token that is cancelled when the directory was removed or replaced: this owner stores nothing any
    /// more.
    #[must_use]
    pub fn lost(&self) -> &CancellationToken {
        self.placement.seen()
    }

    /// Checks that the state directory is still the one that we hold. A loss is permanent.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Replaced`] after a loss.
    pub fn check_place(&self) -> Result<(), StoreError> {
        if !self.lost().is_cancelled() {
            self.placement.look(&self.place);
        }
        let Some(what) = self.placement.lost() else { return Ok(()) };
        let dir = self.directory.display().to_string();
        Err(StoreError::Replaced { dir, what: what.to_owned() })
    }

    /// Returns the expected places of our files, for code that opens or replaces the database.
    pub(super) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Records the key in use.
    pub(crate) fn note_key(&self, key: &Key) {
        // The first key stays: a process uses one key until it ends.
        let _first = self.key.set(key.clone());
    }

    /// Writes the key in use again if its file was removed or damaged: without it, the saved passwords are lost.
    fn restore_key(&self) {
        let Some(key) = self.key.get() else { return };
        let Ok(Err(damage)) = found_key(&self.directory) else { return };
        let path = self.directory.join(KEY);
        match write_key(&self.directory, key) {
            Ok(()) => tracing::warn!(
                event = "key_restored",
                "{} was damaged while in use, and was written again: {damage}",
                path.display()
            ),
            Err(error) => tracing::error!(
                event = "key_missing",
                "{} was damaged while in use ({damage}), and cannot be written again: {error}",
                path.display()
            ),
        }
    }

    /// Restricts the modes of our files and checks that the files are in their places. If they are not, checks if
    /// another process has taken the state.
    pub fn look(&self) {
        if self.check_place().is_ok() {
            self.restore_key();
            modes::narrow(&self.directory);
            return;
        }
        if self.place.change().is_none() {
            return;
        }
        if let Some(epoch) = super::SqliteStore::current_epoch(&self.directory)
            && !self.admits(epoch)
        {
            drop(self.fence(epoch));
        }
    }
}

impl Drop for StateLock {
    fn drop(&mut self) {
        // An explicit unlock: a child between its fork and its exec has the file open, too, so closing ours is not
        // enough.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "cannot release the state directory");
        }
    }
}

/// The time to wait for children of a killed process.
const ORPHANS: Duration = Duration::from_secs(2);

/// Locks the directory for this process.
fn lock(directory: &Path) -> Result<StateLock, StoreError> {
    let dir = directory.display().to_string();
    let refuse =
        |error: std::io::Error| refusal(directory, format!("{LOCK}: {error}"), is_denied(&error));
    let path = directory.join(LOCK);
    let opened = private(&path).or_else(|error| match error.kind() {
        // A read-only directory can be locked all the same: the next process must see the lock and only read.
        std::io::ErrorKind::ReadOnlyFilesystem => File::open(&path),
        _ => Err(error),
    });
    let mut file = opened.map_err(refuse)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(refuse(error)),
        }
        let holder = LockOwner::find(&mut file).map_err(refuse)?;
        if !holder.is_gone() || began.elapsed() > ORPHANS {
            let LockOwner { pid, host, since, .. } = holder;
            return Err(StoreError::Locked { dir, pid, host, since });
        }
        std::thread::sleep(ORPHANS / 100);
    }
    let epoch = LockOwner::said(&mut file).map_or(0, |last| last.epoch) + 1;
    let place = FileIdentity::of_open(&file, &path).map_err(refuse)?;
    Ok(StateLock {
        file,
        directory: directory.to_owned(),
        epoch: AtomicU64::new(epoch),
        named: AtomicBool::new(false),
        taken: AtomicBool::new(false),
        fenced: (CancellationToken::new(), AtomicU64::new(0)),
        place,
        placement: Placement::default(),
        key: OnceLock::new(),
    })
}

/// Returns the process that holds a state directory, according to the kernel; none if nobody holds it.
pub(super) fn holder(directory: &Path) -> Option<String> {
    lock_owner::locker(&File::open(directory.join(LOCK)).ok()?)
}

/// Returns true if the key file exists, with any content.
pub(super) fn has_key(directory: &Path) -> bool {
    directory.join(KEY).symlink_metadata().is_ok()
}

/// Returns the key of the hashes, or the reason for which the file is no valid key.
pub(super) fn found_key(directory: &Path) -> Result<Result<Key, String>, StoreError> {
    match regular_file::read(&directory.join(KEY)) {
        Ok(bytes) => {
            let length = bytes.len();
            let wrong = |_| format!("expected a key of 32 bytes, found {length}");
            let key: Result<[u8; 32], String> = bytes.try_into().map_err(wrong);
            Ok(key.and_then(|key| match key_check::find_damage(directory, &key) {
                None => Ok(Key(key)),
                Some(damage) => Err(damage),
            }))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(Err("the file is missing".to_owned()))
        }
        // A key that cannot be read now exists all the same.
        Err(error) => Err(refusal(directory, format!("{KEY}: {error}"), is_denied(&error))),
    }
}

/// Makes a new key of the hashes, in a file of its own, so that a copy of the database alone reveals nothing.
pub(super) fn make_key(directory: &Path) -> Result<Key, StoreError> {
    let refuse =
        |error: std::io::Error| refusal(directory, format!("{KEY}: {error}"), is_denied(&error));
    let mut key = [0; 32];
    let mut filled = 0;
    while let Some(rest) = key.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(rest, flags).map_err(|errno| refuse(errno.into()))?;
    }
    let key = Key(key);
    write_key(directory, &key).map_err(refuse)?;
    Ok(key)
}

/// Writes the key and its check value.
fn write_key(directory: &Path, key: &Key) -> std::io::Result<()> {
    // Written atomically: half a key would be taken for another one.
    let (new, path) = (directory.join(format!("{KEY}.new")), directory.join(KEY));
    key_check::remove(directory)?;
    let mut file = private(&new)?;
    file.set_len(0)?;
    file.write_all(&key.0)?;
    file.sync_all()?;
    std::fs::rename(&new, &path)?;
    sync(directory)?;
    key_check::complete(directory, &key.0);
    Ok(())
}

/// Returns the ID of this machine (machine-id(5)); none if it has none yet.
pub(super) fn machine() -> Option<String> {
    let text = std::fs::read_to_string("/etc/machine-id").ok()?;
    let text = text.trim();
    let fits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then(|| text.to_owned())
}

/// Returns the key of the hashes, if there is one.
pub(super) fn peek_key(directory: &Path) -> Option<Key> {
    found_key(directory).ok()?.ok()
}

/// Opens a file that only its owner may read and write, and makes it if it is missing.
pub(crate) fn private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    regular_file::nonblocking(&mut options).read(true).write(true).mode(0o600);
    let file = match options.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            options.create(true).truncate(false).open(path)?
        }
        opened => opened?,
    };
    let found = file.metadata()?;
    regular_file::only_file(&found)?;
    if open_to_others(found.mode()) {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Makes the entries of a directory durable.
pub(crate) fn sync(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}
