//! The state directory: ours alone (0700), and held by one process at a time.

use super::lock_owner;
use super::lock_owner::LockOwner;
use super::placement::Placement;
use super::{Key, StoreError, modes, regular_file};
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The names of the files that we put into it.
pub(super) const LOCK: &str = "lock";
pub(super) const DATABASE: &str = "state.db";
pub(super) const KEY: &str = "values.key";

/// The folder of what was there before each change, which is sealed with the key.
pub(crate) const HISTORY: &str = "history";

/// Makes the directory where it is missing, and sees that others can neither read nor write in it (S-7).
fn prepare(directory: &Path) -> Result<(), StoreError> {
    let refuse = |why: String| refusal(directory, why, false);
    let failed = |error: std::io::Error| refusal(directory, error.to_string(), is_denied(&error));
    // Nothing is called that could change anything where it is there already.
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
    // Somebody may have named a directory that is not for us alone, such as /tmp: that one is never narrowed.
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

/// Whether it is for its owner alone.
pub(super) fn is_private(found: &std::fs::Metadata) -> bool {
    !open_to_others(found.mode())
}

/// Empty, or already used by us.
fn is_ours(directory: &Path) -> bool {
    directory.join(LOCK).exists()
        || directory.join(DATABASE).exists()
        || has_key(directory)
        || std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// A state directory, held by this process; the system lets go of it when the process ends, also by `kill -9`.
#[derive(Debug)]
pub struct StateLock {
    file: File,
    directory: PathBuf,
    epoch: AtomicU64,
    /// It stands in the lock file.
    named: AtomicBool,
    /// It stands in the database.
    taken: AtomicBool,
    /// Cancelled when somebody has come after us who has it now; with the epoch of that one.
    fenced: (CancellationToken, AtomicU64),
    placement: Placement,
}

impl StateLock {
    /// Takes a state directory, which is made where it is missing. Refused at once where another daemon has it.
    pub fn take(directory: &Path) -> Result<Self, StoreError> {
        let hold = Self::take_unsaid(directory)?;
        hold.name();
        Ok(hold)
    }

    /// The same of one who may find nothing to write: it stands in the lock file when the state is written for the first time.
    pub fn take_unsaid(directory: &Path) -> Result<Self, StoreError> {
        prepare(directory)?;
        let hold = lock(directory)?;
        modes::narrow_all(directory);
        Ok(hold)
    }

    /// Says in the lock file who has it. A full disk stops nobody: the lock holds, only its holder is unknown.
    fn name(&self) {
        self.named.store(true, Ordering::SeqCst);
        if let Err(error) = lock_owner::name(&self.file, self.epoch()) {
            tracing::warn!(%error, "cannot write the owner into the lock file");
        }
    }

    /// Which.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// How often this directory has been taken, as far as its file or the database in it tells.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Cancelled when another one has taken the state although we hold the directory: its lock file was removed (C-10).
    #[must_use]
    pub fn fenced(&self) -> &CancellationToken {
        &self.fenced.0
    }

    /// Why nothing is kept any more by this holder.
    #[must_use]
    pub fn fault(&self) -> StoreError {
        StoreError::Fenced {
            dir: self.directory.display().to_string(),
            epoch: self.fenced.1.load(Ordering::SeqCst),
            ours: self.epoch(),
        }
    }

    /// Whether what stands in the database is ours, or that of one who came before us.
    pub(super) fn admits(&self, standing: u64) -> bool {
        !self.fenced.0.is_cancelled()
            && (!self.taken.load(Ordering::SeqCst) || standing <= self.epoch())
    }

    /// Somebody with this epoch has come after us.
    pub(super) fn fence(&self, epoch: u64) -> StoreError {
        self.fenced.1.fetch_max(epoch, Ordering::SeqCst);
        self.fenced.0.cancel();
        self.fault()
    }

    /// The epoch under which this holder writes where this one stands.
    pub(super) fn next_epoch(&self, standing: u64) -> u64 {
        let own = self.epoch();
        if self.taken.load(Ordering::SeqCst) { own } else { own.max(standing.saturating_add(1)) }
    }

    /// That epoch stands in the database from now on.
    pub(super) fn took(&self, epoch: u64) {
        let before = self.epoch.swap(epoch, Ordering::SeqCst);
        self.taken.store(true, Ordering::SeqCst);
        if before != epoch || !self.named.load(Ordering::SeqCst) {
            self.name();
        }
    }

    /// A database with this epoch is about to be replaced; the new one knows nothing of it.
    pub(super) fn comes_after(&self, standing: u64) -> Result<(), StoreError> {
        if !self.admits(standing) {
            return Err(self.fence(standing));
        }
        self.epoch.store(self.next_epoch(standing), Ordering::SeqCst);
        Ok(())
    }

    /// Cancelled when the directory was removed or replaced: nothing is kept any more by this holder.
    #[must_use]
    pub fn lost(&self) -> &CancellationToken {
        self.placement.seen()
    }

    /// Tells whether the state directory is still the one that we hold. A loss that was seen once lasts.
    pub fn check_place(&self) -> Result<(), StoreError> {
        let (lock, database) = (self.directory.join(LOCK), self.directory.join(DATABASE));
        if !self.lost().is_cancelled() {
            self.placement.look((&self.file, &lock), &database);
        }
        let Some(what) = self.placement.lost() else { return Ok(()) };
        let dir = self.directory.display().to_string();
        Err(StoreError::Replaced { dir, what: what.to_owned() })
    }

    /// The files in whose places others may lie: the open database is known from now on, or replaced by ourselves.
    pub(super) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Narrows the modes of our files, and looks whether they are still in their places; where they are not, whether somebody else
    /// has taken the state.
    pub fn look(&self) {
        if self.check_place().is_ok() {
            modes::narrow(&self.directory);
            return;
        }
        if Placement::has_lock(&self.file, &self.directory.join(LOCK)) {
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
        // Said aloud: a child between its fork and its exec has the file open too, and closing ours would not be enough.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "cannot release the state directory");
        }
    }
}

/// How long to wait for what a process that was killed leaves behind.
const ORPHANS: Duration = Duration::from_secs(2);

/// Takes the directory for this process.
fn lock(directory: &Path) -> Result<StateLock, StoreError> {
    let dir = directory.display().to_string();
    let refuse =
        |error: std::io::Error| refusal(directory, format!("{LOCK}: {error}"), is_denied(&error));
    let path = directory.join(LOCK);
    let opened = private(&path).or_else(|error| match error.kind() {
        // It can be held all the same: who comes next must know that we are here, and only look.
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
    Ok(StateLock {
        file,
        directory: directory.to_owned(),
        epoch: AtomicU64::new(epoch),
        named: AtomicBool::new(false),
        taken: AtomicBool::new(false),
        fenced: (CancellationToken::new(), AtomicU64::new(0)),
        placement: Placement::default(),
    })
}

/// The process that holds a state directory, as the kernel knows it; none where nobody holds it.
pub(super) fn holder(directory: &Path) -> Option<String> {
    lock_owner::locker(&File::open(directory.join(LOCK)).ok()?)
}

/// Whether there is a file of the key, whatever is in it.
pub(super) fn has_key(directory: &Path) -> bool {
    directory.join(KEY).symlink_metadata().is_ok()
}

/// The key of the hashes, or why what lies there is none.
pub(super) fn found_key(directory: &Path) -> Result<Result<Key, String>, StoreError> {
    match regular_file::read(&directory.join(KEY)) {
        Ok(bytes) => {
            let length = bytes.len();
            let wrong = |_| format!("expected a key of 32 bytes, found {length}");
            Ok(bytes.try_into().map(Key).map_err(wrong))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(Err("the file is missing".to_owned()))
        }
        // One that cannot be read now is there all the same.
        Err(error) => Err(refusal(directory, format!("{KEY}: {error}"), is_denied(&error))),
    }
}

/// Makes the key of the hashes anew: in a file of its own, so that a copy of the database tells nothing.
pub(super) fn make_key(directory: &Path) -> Result<Key, StoreError> {
    let refuse =
        |error: std::io::Error| refusal(directory, format!("{KEY}: {error}"), is_denied(&error));
    let mut key = [0; 32];
    let mut filled = 0;
    while let Some(rest) = key.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(rest, flags).map_err(|errno| refuse(errno.into()))?;
    }
    // Whole or not at all: half a key would be taken for another one.
    let (new, path) = (directory.join(format!("{KEY}.new")), directory.join(KEY));
    let write = || {
        let mut file = private(&new)?;
        file.set_len(0)?;
        file.write_all(&key)?;
        file.sync_all()?;
        std::fs::rename(&new, &path)?;
        sync(directory)
    };
    write().map_err(refuse)?;
    Ok(Key(key))
}

/// The name of this machine (machine-id(5)); none where it has none yet.
pub(super) fn machine() -> Option<String> {
    let text = std::fs::read_to_string("/etc/machine-id").ok()?;
    let text = text.trim();
    let fits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then(|| text.to_owned())
}

/// The key of the hashes, if there is one.
pub(super) fn peek_key(directory: &Path) -> Option<Key> {
    found_key(directory).ok()?.ok()
}

/// Opens a file that only we may read and write; made where it is missing.
pub(crate) fn private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    regular_file::unwaiting(&mut options).read(true).write(true).mode(0o600);
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
