//! The state directory: its path, and the opening of its store.

use super::exit::Exit;
use super::output;
use crate::store::{SqliteStore, StateLock, Store, StoreError, StoredState};
use crate::workers::{log_ended_orphans, readers};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use steadfast_resources::KindSet;
use steadfast_resources::host::end_orphaned_commands;
use steadfast_resources::host::input_trust::Reader;

/// Returns the state directory: as given, as systemd sets it, the default of root, or that of the user.
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

/// Rejects, for root, a directory that another user could replace (S-11): the state determines what is removed from
/// this host.
pub(super) fn judge(directory: &Path) -> Result<(), StoreError> {
    let reader = Reader::here();
    let Some(doubt) = untrusted_writer(directory, reader).filter(|_| reader.is_strict()) else {
        return Ok(());
    };
    let why = format!("another user could replace the directory: {doubt}");
    Err(StoreError::Directory { dir: directory.display().to_string(), why, denied: false })
}

/// Returns a doubt about the path. The directory itself is checked when its lock is taken; it may not exist yet.
fn untrusted_writer(directory: &Path, reader: Reader) -> Option<String> {
    let path = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    if path.is_symlink() {
        return reader.untrusted_on_the_way(&path);
    }
    // In a sticky directory of root, other users cannot rename the own entries.
    let holds_ours = |folder: &&Path| {
        let found = folder.metadata();
        found.is_ok_and(|found| found.mode() & 0o1000 == 0 || found.uid() != 0)
    };
    let above = path.ancestors().skip(1).find(holds_ours)?;
    reader.untrusted_on_the_way(above)
}

/// The result of opening the store.
type Opened = Result<(SqliteStore, StoredState), StoreError>;

/// Opens the store exclusively, for a command that changes the host.
fn open(directory: &Path) -> Result<(Box<dyn Store>, StoredState), Exit> {
    accept(read(directory))
}

fn read(directory: &Path) -> Opened {
    // The lock file names its owner only after the first write: most commands write nothing.
    judge(directory)?;
    let state_lock = Arc::new(StateLock::take_unsaid(directory)?);
    log_ended_orphans(&end_orphaned_commands(directory));
    let readers = readers(KindSet::of_this_build(), |event, line| tracing::warn!(event, "{line}"));
    let mut store = SqliteStore::open_later(state_lock, readers)?;
    let key = Some(SqliteStore::key(directory)?);
    let recalled = StoredState { key, ..store.recall()? };
    Ok((store, recalled))
}

fn accept(opened: Opened) -> Result<(Box<dyn Store>, StoredState), Exit> {
    match opened {
        Ok((store, recalled)) => Ok((Box::new(store), recalled)),
        Err(error) => Err(refuse(&error)),
    }
}

/// A store that a thread opens while the graph is loaded. A missing store is created only after the graph was accepted.
pub(super) struct Opening {
    directory: PathBuf,
    thread: Option<JoinHandle<Opened>>,
}

impl Opening {
    /// Begins to open the store, if it exists.
    pub(super) fn begin(directory: PathBuf) -> Self {
        let path = directory.clone();
        let thread = SqliteStore::is_there(&directory).then(|| {
            let thread = std::thread::Builder::new().name("state".to_owned());
            thread.spawn(move || read(&path))
        });
        Self { directory, thread: thread.and_then(Result::ok) }
    }

    /// Returns the open store, or reports the error.
    pub(super) fn finish(self) -> Result<(Box<dyn Store>, StoredState), Exit> {
        match self.thread.map(JoinHandle::join) {
            Some(Ok(opened)) => accept(opened),
            // There is no thread, or it panicked.
            Some(Err(_)) | None => open(&self.directory),
        }
    }

    /// Ends after a rejected graph: only a loss of state is reported, because it would not be noticed again.
    pub(super) fn abandon(self) {
        if let Some(Ok(Ok(opened))) = self.thread.map(JoinHandle::join) {
            drop(accept(Ok(opened)));
        }
    }
}

/// Reports an error if the directory has no state.
pub(super) fn something_in(directory: &Path) -> Result<(), Exit> {
    if SqliteStore::is_there(directory) {
        return Ok(());
    }
    let what = format!("no state in {}", output::plain(&directory.display().to_string()));
    output::error(what, Some("the state directory has no state; check --state-dir"));
    Err(Exit::Usage)
}

/// Reports an error of the store, and returns its exit code.
pub(super) fn refuse(error: &StoreError) -> Exit {
    if let StoreError::OpenToOthers { dir, .. } = error {
        let dir = output::plain(dir);
        let hint = format!("run `chmod 700 {dir}`, or select another directory with --state-dir");
        output::error(error.to_string(), Some(&hint));
        return Exit::State;
    }
    let (exit, hint) = match error {
        StoreError::Locked { .. } => {
            (Exit::Busy, "to reload a changed graph: `systemctl reload steadfast`, or send SIGHUP")
        }
        StoreError::Fenced { .. } => (
            // Not `Busy`: only a new start shows if the other daemon still runs.
            Exit::Failed,
            "the file `lock` in the directory was removed; this process starts and records nothing more; `steadfast status` queries the other daemon",
        ),
        StoreError::Replaced { .. } => (
            Exit::State,
            "this process starts and records nothing more; restart it to continue with the current state",
        ),
        StoreError::Directory { denied: true, .. } => (
            Exit::Permission,
            "run as the owner, make the directory writable, or select another one with --state-dir",
        ),
        StoreError::Damaged { path, .. } if path.ends_with("values.key") => (
            Exit::State,
            "nothing was changed; restore values.key and values.key.check from one backup; `steadfast state repair` makes a new key and loses saved passwords",
        ),
        StoreError::Damaged { .. } => (
            Exit::State,
            "nothing was changed; `steadfast state repair` recovers the readable records and keeps the damaged copy",
        ),
        StoreError::Newer { .. } => (
            Exit::State,
            "nothing was changed; install the steadfast version that wrote the state, or select another directory with --state-dir",
        ),
        StoreError::Database { .. } => (
            Exit::State,
            "check whether the file system is full, or select another directory with --state-dir",
        ),
        StoreError::Directory { .. }
        | StoreError::OpenToOthers { .. }
        | StoreError::Behind(_)
        | StoreError::Ended => (Exit::State, "select another directory with --state-dir"),
    };
    output::error(error.to_string(), Some(hint));
    exit
}
