//! The state directory: which one, and how it is opened.

use super::exit::Exit;
use super::output;
use crate::store::{SqliteStore, StateLock, Store, StoreError, StoredState};
use crate::workers::{readers, tell_orphans};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use steadfast_resources::host::end_orphaned_commands;
use steadfast_resources::host::path_trust::Reader;

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

/// Refuses for root a directory in whose place somebody else could put another one (S-11): what is kept says what is removed from
/// this host.
pub(super) fn judge(directory: &Path) -> Result<(), StoreError> {
    let reader = Reader::here();
    let Some(doubt) = doubts(directory, reader).filter(|_| reader.is_strict()) else {
        return Ok(());
    };
    let why = format!("another user could replace the directory: {doubt}");
    Err(StoreError::Directory { dir: directory.display().to_string(), why, denied: false })
}

/// The directory itself is narrowed, or refused, when it is taken; it may not be there yet.
fn doubts(directory: &Path, reader: Reader) -> Option<String> {
    let path = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    if path.is_symlink() {
        return reader.doubts_on_the_way(&path);
    }
    // In a sticky folder of root's, nobody else renames what is ours.
    let holds_ours = |folder: &&Path| {
        let found = folder.metadata();
        found.is_ok_and(|found| found.mode() & 0o1000 == 0 || found.uid() != 0)
    };
    let above = path.ancestors().skip(1).find(holds_ours)?;
    reader.doubts_on_the_way(above)
}

/// What came of opening the store.
type Opened = Result<(SqliteStore, StoredState), StoreError>;

/// Opens the store for one who may change the host: exclusively.
fn open(directory: &Path) -> Result<(Box<dyn Store>, StoredState), Exit> {
    accept(read(directory))
}

fn read(directory: &Path) -> Opened {
    // Who has the directory is written when something is: most have nothing to do.
    judge(directory)?;
    let hold = Arc::new(StateLock::take_unsaid(directory)?);
    tell_orphans(&end_orphaned_commands(directory));
    let readers = readers(|event, line| tracing::warn!(event, "{line}"));
    let mut store = SqliteStore::open_later(hold, readers)?;
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

/// A store that is opened by a thread while the graph is read. One that is not there yet is made only when the graph is known to
/// be good.
pub(super) struct Opening {
    directory: PathBuf,
    thread: Option<JoinHandle<Opened>>,
}

impl Opening {
    /// Begins, where there is something to read.
    pub(super) fn begin(directory: PathBuf) -> Self {
        let path = directory.clone();
        let thread = SqliteStore::is_there(&directory).then(|| {
            let thread = std::thread::Builder::new().name("state".to_owned());
            thread.spawn(move || read(&path))
        });
        Self { directory, thread: thread.and_then(Result::ok) }
    }

    /// As [`open`] would have it.
    pub(super) fn finish(self) -> Result<(Box<dyn Store>, StoredState), Exit> {
        match self.thread.map(JoinHandle::join) {
            Some(Ok(opened)) => accept(opened),
            // No thread, or one that panicked.
            Some(Err(_)) | None => open(&self.directory),
        }
    }

    /// The graph is refused: only a loss of state is told, which would not be seen again.
    pub(super) fn abandon(self) {
        if let Some(Ok(Ok(opened))) = self.thread.map(JoinHandle::join) {
            drop(accept(Ok(opened)));
        }
    }
}

/// Refuses a directory in which nothing is kept, for one who would say something of what is.
pub(super) fn something_in(directory: &Path) -> Result<(), Exit> {
    if SqliteStore::is_there(directory) {
        return Ok(());
    }
    let what = format!("no state in {}", output::plain(&directory.display().to_string()));
    output::error(what, Some("the state directory has no state; check --state-dir"));
    Err(Exit::Usage)
}

/// Says why state cannot be had, and how the program ends for it.
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
            // Not busy: who starts it anew finds out whether the other is still there.
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
