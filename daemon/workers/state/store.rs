//! The worker of the store: it opens the state, has the lock of the state directory, and offers the journal.
//!
//! If the store cannot be opened, the worker offers a store in memory instead, and the driver only observes (B-22). The
//! worker tries again from time to time, and after a repair by the operator.

use crate::driver::{DriverEvent, Signal};
use crate::events::{self, Publisher};
use crate::history::History;
use crate::store::{
    Journal, Key, MemoryStore, REPAIRED, RecordReaders, SqliteStore, StateLock, Store as _,
    StoreError, StoredState, maintain_state,
};
use crate::supervisor::{Failure, Kind, Manifold, Outputs, WorkerContext};
use crate::workers::errors::MaintenanceError;
use crate::workers::graph::settings::LiveSettings;
use crate::workers::requests::queue::Requests;
use crate::workers::state::lock::SharedStateLock;
use crate::workers::state::maintenance::{CarriedPauses, MaintenanceQueue, MaintenanceRequest};
use crate::workers::state::record_readers::readers;
use crate::workers::worker_factory::WorkerFactory;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;
use steadfast_resources::host::end_orphaned_commands;
use tokio::sync::oneshot;

/// The rank of a lost state directory among fatal failures.
const RANK: u8 = 6;
/// The rank of a state directory that cannot be locked at the start.
const LOCK_RANK: u8 = 5;

/// The interval at which an unusable store is opened again.
const AGAIN: Duration = Duration::from_secs(15);

/// The parts of the worker.
pub(in crate::workers) struct StoreParts {
    pub(in crate::workers) history: Arc<History>,
    pub(in crate::workers) lock: Arc<SharedStateLock>,
    pub(in crate::workers) maintenance: Arc<MaintenanceQueue>,
    pub(in crate::workers) publisher: Publisher,
    pub(in crate::workers) requests: Requests,
    pub(in crate::workers) settings: Arc<LiveSettings>,
    pub(in crate::workers) state_directory: PathBuf,
}

/// The output of the worker.
#[derive(Clone, Debug)]
pub(in crate::workers) struct StoreOutput {
    pub(in crate::workers) journal: Journal,
    key: Option<Key>,
    /// The reason why nothing may be changed: the journal is only in memory.
    pub(in crate::workers) read_only: Option<Arc<str>>,
}

impl StoreOutput {
    /// Returns the whole stored state. Blocks.
    pub(in crate::workers) fn recall(&self) -> Result<StoredState, StoreError> {
        Ok(StoredState { key: self.key.clone(), ..self.journal.recall()? })
    }

    /// Creates a store in memory from the readable part of the state and the pauses carried over.
    fn read_only(parts: &Arc<StoreParts>, why: &str) -> Result<(Self, Observed), Failure> {
        let directory = &parts.state_directory;
        let key = SqliteStore::peek_key(directory);
        let recalled = SqliteStore::peek(directory).unwrap_or_default();
        let recalled =
            readers(parts.settings.current().graph.options.kinds, |_, _| {}).only_known(recalled);
        let mut memory = MemoryStore::with(recalled.clone());
        let journal = Journal::spawn(Box::new(memory.clone())).map_err(Failure::again)?;
        memory.commit(&parts.maintenance.carried.take()).map_err(Failure::again)?;
        let observed = Observed {
            parts: Arc::clone(parts),
            journal: journal.clone(),
            memory,
            began: recalled,
        };
        Ok((Self { journal, key, read_only: Some(why.into()) }, observed))
    }
}

/// A state in memory. Dropping it carries its changed pauses over to the next usable state.
struct Observed {
    parts: Arc<StoreParts>,
    journal: Journal,
    memory: MemoryStore,
    began: StoredState,
}

impl Drop for Observed {
    fn drop(&mut self) {
        self.journal.close();
        match self.memory.recall() {
            Ok(now) => self.parts.maintenance.carried.put(&self.began, &now),
            Err(error) => tracing::debug!(%error, "in memory nothing is refused"),
        }
    }
}

/// Opens the state, and stores the pauses carried over.
fn open(
    state_lock: &Arc<StateLock>,
    directory: &Path,
    readers: RecordReaders,
    carried: &CarriedPauses,
) -> Result<StoreOutput, StoreError> {
    let mut store = SqliteStore::open_held(Arc::clone(state_lock), readers)?;
    let key = SqliteStore::key(directory)?;
    state_lock.note_key(&key);
    // Interrupted mutations are settled here, while the state can still be rejected.
    store.recall()?;
    carried.hand_over(&mut store)?;
    let journal = Journal::spawn(Box::new(store));
    let journal = journal.map_err(|error| StoreError::Directory {
        dir: directory.display().to_string(),
        why: error.to_string(),
        denied: false,
    })?;
    Ok(StoreOutput { journal, key: Some(key), read_only: None })
}

/// Creates the worker of the store. While the state is unusable, the daemon only observes.
pub(in crate::workers) fn store(factory: &WorkerFactory, parts: StoreParts) -> Manifold {
    let (own, first) = (Arc::new(parts), Arc::new(Once::new()));
    factory.worker("store", move |_, life: WorkerContext| {
        let (parts, first) = (Arc::clone(&own), Arc::clone(&first));
        async move {
            life.set_status("locks the state directory");
            let state_lock = tokio::select! {
                state_lock = life.during(parts.lock.take()) => state_lock,
                () = life.stopping().cancelled() => return Ok(()),
            };
            // Another daemon has the directory, or it cannot be used: nothing can be recorded.
            let state_lock = state_lock.map_err(|why| Failure::fatal(LOCK_RANK, why))?;
            end_orphans(&parts, &first).await?;
            let opened = try_open(&parts, Arc::clone(&state_lock)).await?;
            match opened {
                Ok(kept) => keep(&parts, &life, kept, state_lock).await,
                Err(error) => run_read_only(&parts, &life, &error, state_lock).await,
            }
        }
    })
}

/// Returns record readers that report repaired records to the log and as events.
fn reporting_readers(parts: &Arc<StoreParts>) -> RecordReaders {
    let publisher = parts.publisher.clone();
    let kinds = parts.settings.current().graph.options.kinds;
    readers(kinds, move |event, line| {
        tracing::warn!(event, "{line}");
        publisher.publish(events::integrity(event, line));
    })
}

/// Ends the commands that a killed daemon has left running, before the first run of this one.
async fn end_orphans(parts: &StoreParts, first: &Arc<Once>) -> Result<(), Failure> {
    let (directory, first) = (parts.state_directory.clone(), Arc::clone(first));
    let ended = tokio::task::spawn_blocking(move || {
        first.call_once(|| log_ended_orphans(&end_orphaned_commands(&directory)));
    });
    ended.await.map_err(Failure::again)
}

/// Logs the process groups of a killed daemon's commands that were ended.
pub(crate) fn log_ended_orphans(groups: &[i32]) {
    if !groups.is_empty() {
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        tracing::warn!(
            event = "orphans_ended",
            "ended commands that a killed steadfast left running; process groups: {}",
            groups.join(", ")
        );
    }
}

async fn try_open(
    parts: &Arc<StoreParts>,
    state_lock: Arc<StateLock>,
) -> Result<Result<StoreOutput, StoreError>, Failure> {
    let (directory, history) = (parts.state_directory.clone(), Arc::clone(&parts.history));
    let (readers, own) = (reporting_readers(parts), Arc::clone(parts));
    let opened = tokio::task::spawn_blocking(move || {
        let opened = open(&state_lock, &directory, readers, &own.maintenance.carried)?;
        history.drop_expired();
        if let Some(loss) = history.take_loss() {
            own.publisher.publish(events::integrity(REPAIRED, &loss));
        }
        Ok(opened)
    });
    opened.await.map_err(Failure::again)
}

/// Offers the state until the daemon ends, the journal fails, or another state replaces it.
async fn keep(
    parts: &Arc<StoreParts>,
    life: &WorkerContext,
    kept: StoreOutput,
    state_lock: Arc<StateLock>,
) -> Result<(), Failure> {
    life.set_status(format!("in {}", parts.state_directory.display()));
    let journal = kept.journal.clone();
    let closing = Closing(journal.clone());
    life.ready(Outputs::none().with(kept));
    let wanted = tokio::select! {
        () = life.stopping().cancelled() => None,
        () = state_lock.fenced().cancelled() => return Err(fenced(&state_lock)),
        () = state_lock.lost().cancelled() => return Err(lost(&state_lock)),
        () = journal.ended().cancelled() => return Err(Failure::again(StoreError::Ended)),
        never = replace_failed_history_writer(parts) => match never {},
        wanted = parts.maintenance.next() => Some(wanted),
        never = life.watch_thread(|| answers(parts, &state_lock, &journal)) => match never {},
    };
    // All writes are durable, and the directory is free, before the worker ends.
    let history = Arc::clone(&parts.history);
    let closed = tokio::task::spawn_blocking(move || {
        drop(closing);
        history.close();
    });
    closed.await.map_err(Failure::again)?;
    match wanted {
        None => Ok(()),
        Some(wanted) => Err(life.during(carry_out(parts, wanted, state_lock, true)).await),
    }
}

/// Checks that the files of the state directory are still in place and that the journal's thread is alive. A hanging
/// disk does not block the caller.
fn answers(
    parts: &StoreParts,
    state_lock: &Arc<StateLock>,
    journal: &Journal,
) -> oneshot::Receiver<()> {
    let (to, answer) = oneshot::channel();
    let history = Arc::clone(&parts.history);
    let (state_lock, journal, ping) = (Arc::clone(state_lock), journal.clone(), journal.ping());
    tokio::spawn(async move {
        let looked = tokio::task::spawn_blocking(move || {
            state_lock.look();
            history.check_files();
        });
        let looked = looked.await;
        journal.check_files();
        if looked.is_ok() && ping.await.is_ok() {
            // The receiver is dropped after the worker has ended.
            to.send(()).unwrap_or_default();
        }
    });
    answer
}

/// Replaces the writer of the history after its thread has failed. The driver is replaced too: a run may wait for a
/// reply of the dead thread, and all resources are checked again.
async fn replace_failed_history_writer(parts: &StoreParts) -> Infallible {
    loop {
        parts.history.broken().await;
        let why = "the history thread has ended";
        let history = Arc::clone(&parts.history);
        if let Err(error) = tokio::task::spawn_blocking(move || history.drop_expired()).await {
            tracing::error!(event = "history_write_failed", "{error}");
        }
        // Without a driver there is nothing to restart.
        drop(parts.requests.put_now(DriverEvent::Watched(vec![Signal::Broken(why.to_owned())])));
        tokio::time::sleep(AGAIN).await;
    }
}

/// Offers a state in memory until the stored one is usable.
async fn run_read_only(
    parts: &Arc<StoreParts>,
    life: &WorkerContext,
    error: &StoreError,
    state_lock: Arc<StateLock>,
) -> Result<(), Failure> {
    let why = format!("{error}\n{}", advice(error));
    life.set_status(format!("read-only: {error}"));
    let own = Arc::clone(parts);
    let kept = tokio::task::spawn_blocking(move || StoreOutput::read_only(&own, &why)).await;
    let (kept, observed) = kept.map_err(Failure::again)??;
    let journal = kept.journal.clone();
    let close = || tokio::task::spawn_blocking(move || drop(observed));
    life.ready(Outputs::none().with(kept));
    loop {
        tokio::select! {
            () = life.stopping().cancelled() => {
                return close().await.map_err(Failure::again);
            }
            wanted = parts.maintenance.next() => {
                close().await.map_err(Failure::again)?;
                return Err(life.during(carry_out(parts, wanted, state_lock, false)).await);
            }
            () = state_lock.fenced().cancelled() => return Err(fenced(&state_lock)),
            never = life.watch_thread(|| journal.ping()) => match never {},
            () = tokio::time::sleep(AGAIN) => {}
        }
        let own = Arc::clone(&state_lock);
        tokio::task::spawn_blocking(move || own.look()).await.map_err(Failure::again)?;
        if let Ok(kept) = life.during(try_open(parts, Arc::clone(&state_lock))).await? {
            let closed = tokio::task::spawn_blocking(move || drop(Closing(kept.journal))).await;
            closed.map_err(Failure::again)?;
            close().await.map_err(Failure::again)?;
            return Err(Failure::again("the state can be written again"));
        }
    }
}

/// Returns the fatal failure after another daemon has taken the state.
fn fenced(state_lock: &StateLock) -> Failure {
    let why = state_lock.fault();
    tracing::error!(event = "fenced", "{why}: no changes are started, and this daemon stops");
    Failure::fatal(RANK, why)
}

/// Returns the failure after the state directory was removed or replaced: later changes could not be stored.
fn lost(state_lock: &StateLock) -> Failure {
    let why = state_lock.check_place().err().map(|why| why.to_string()).unwrap_or_default();
    tracing::error!(event = "state_lost", "{why}: no changes are started");
    Failure::again(why)
}

/// Carries out maintenance and replies; returns the reason for a restart of the worker. The daemon may have been
/// resumed meanwhile, so that the pause is checked in the stored state.
async fn carry_out(
    parts: &Arc<StoreParts>,
    MaintenanceRequest { what, answer }: MaintenanceRequest,
    state_lock: Arc<StateLock>,
    must_rest: bool,
) -> Failure {
    let (directory, readers) = (parts.state_directory.clone(), reporting_readers(parts));
    if answer.is_closed() {
        return Failure::again("the client of a state command has disconnected");
    }
    let work = move || {
        if must_rest && !SqliteStore::rests(&directory)? {
            return Err(MaintenanceError::NotPaused);
        }
        maintain_state(what, &directory, state_lock, readers).map_err(MaintenanceError::Failed)
    };
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or_else(|error| Err(MaintenanceError::Panicked(error)));
    if let Some(deed) = done.as_ref().ok().and_then(|lines| events::maintenance_event(what, lines))
    {
        parts.publisher.publish(deed);
    }
    // The requester may be gone; the maintenance is done anyway.
    drop(answer.send(done));
    // A bounce does not count as a failure.
    Failure::new(Kind::Bounce, "the state was replaced")
}

/// Returns advice for a state that cannot be used.
fn advice(error: &StoreError) -> &'static str {
    match error {
        StoreError::Damaged { path, .. } if path.ends_with("values.key") => {
            "hint: nothing was changed; restore values.key and values.key.check from one backup; `steadfast state repair` makes a new key and loses saved passwords"
        }
        StoreError::Damaged { .. } => {
            "hint: nothing was changed; `steadfast state repair` recovers the readable records and keeps the damaged copy"
        }
        StoreError::Newer { .. } => {
            "hint: nothing was changed; install the steadfast version that wrote the state; retrying every 15 s"
        }
        StoreError::Replaced { .. } => {
            "hint: no more changes are made; `systemctl restart steadfast` continues with the current state"
        }
        StoreError::Database { .. }
        | StoreError::Directory { .. }
        | StoreError::OpenToOthers { .. }
        | StoreError::Locked { .. }
        | StoreError::Fenced { .. }
        | StoreError::Behind(_)
        | StoreError::Ended => {
            "hint: check whether the file system is full or read-only; retrying every 15 s"
        }
    }
}

/// A guard that closes the journal when the worker ends for any reason.
struct Closing(Journal);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}
