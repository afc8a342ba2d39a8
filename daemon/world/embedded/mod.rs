//! The embedded world: one `SQLite` database, with the semantics of etcd. Several processes on one host may open it.
//!
//! Leases end by a clock that also advances while the host is suspended; a reboot ends all of them. Reading order: this
//! file (the calls), `database` (the tables).

mod database;

use super::{
    Committed, Entry, LeaseId, Range, Transaction, WatchBatch, WatchStream, World, WorldError,
    WorldFuture, check_limits,
};
use database::Database;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// A clock of the time since boot.
pub type BootClock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// The interval at which a watch looks for writes of other processes and for ended leases.
const POLL: Duration = Duration::from_secs(1);

/// The interval of notifications that prove a watch alive.
const PROGRESS: Duration = Duration::from_secs(10);

/// Returns the time since boot, including suspends.
#[must_use]
pub fn boot_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// The embedded world.
#[derive(Clone)]
pub struct EmbeddedWorld(Arc<Inner>);

struct Inner {
    database: Mutex<Database>,
    /// The revision of the last own write.
    written: watch::Sender<u64>,
    poll: Duration,
}

impl std::fmt::Debug for EmbeddedWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedWorld").finish_non_exhaustive()
    }
}

impl EmbeddedWorld {
    /// Opens the database at a path, and creates it if it is absent.
    ///
    /// # Errors
    /// The failure of `SQLite`.
    pub fn open(path: &Path) -> Result<Self, WorldError> {
        Ok(Self::with_database(Database::open(Some(path), Arc::new(boot_time))?, POLL))
    }

    /// Opens the database at a path that several daemons share, as tests do: changes of others are seen sooner.
    ///
    /// # Errors
    /// The failure of `SQLite`.
    pub fn open_shared(path: &Path) -> Result<Self, WorldError> {
        let poll = Duration::from_millis(50);
        Ok(Self::with_database(Database::open(Some(path), Arc::new(boot_time))?, poll))
    }

    /// Makes a world in memory with its own clock, for tests and simulations.
    ///
    /// # Errors
    /// The failure of `SQLite`.
    pub fn in_memory(clock: BootClock) -> Result<Self, WorldError> {
        Ok(Self::with_database(Database::open(None, clock)?, Duration::from_millis(20)))
    }

    fn with_database(database: Database, poll: Duration) -> Self {
        let written = watch::Sender::new(0);
        Self(Arc::new(Inner { database: Mutex::new(database), written, poll }))
    }

    /// Runs a call on a thread that may block, and wakes the watches after a write.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Database) -> Result<T, WorldError> + Send + 'static,
    ) -> Result<T, WorldError> {
        let inner = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || {
            let mut database = inner.database.lock().unwrap_or_else(PoisonError::into_inner);
            let result = database.check_place().and_then(|()| call(&mut database));
            let revision = database.last_written();
            drop(database);
            inner.written.send_if_modified(|seen| {
                let is_new = *seen < revision;
                *seen = revision.max(*seen);
                is_new
            });
            result
        });
        done.await.map_err(|error| WorldError::Unavailable(error.to_string()))?
    }

    /// Sends the changes of a prefix until the receiver is dropped.
    async fn send_changes(
        self,
        prefix: String,
        from: u64,
        batches: mpsc::Sender<Result<WatchBatch, WorldError>>,
    ) {
        let mut next = from;
        let mut written = self.0.written.subscribe();
        let mut told = tokio::time::Instant::now();
        loop {
            written.mark_unchanged();
            let of = prefix.clone();
            let read = self.call(move |database| database.changes_since(&of, next)).await;
            let batch = match read {
                Ok(batch) => batch,
                Err(error) => {
                    // The receiver may be dropped already.
                    drop(batches.send(Err(error)).await);
                    return;
                }
            };
            next = next.max(batch.revision + 1);
            if !batch.changes.is_empty() || told.elapsed() >= PROGRESS {
                told = tokio::time::Instant::now();
                if batches.send(Ok(batch)).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                Ok(()) = written.changed() => {}
                () = tokio::time::sleep(self.0.poll) => {}
            }
        }
    }
}

impl World for EmbeddedWorld {
    fn backend(&self) -> &'static str {
        "embedded"
    }

    fn get<'a>(&'a self, key: &'a str) -> WorldFuture<'a, Option<Entry>> {
        let key = key.to_owned();
        Box::pin(self.call(move |database| database.read_key(&key)))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> WorldFuture<'a, Range> {
        let prefix = prefix.to_owned();
        Box::pin(self.call(move |database| database.read_range(&prefix)))
    }

    fn transact(&self, transaction: Transaction) -> WorldFuture<'_, Committed> {
        Box::pin(async move {
            check_limits(&transaction)?;
            self.call(move |database| database.commit(&transaction)).await
        })
    }

    fn watch<'a>(&'a self, prefix: &'a str, from: u64) -> WorldFuture<'a, WatchStream> {
        Box::pin(async move {
            let of = prefix.to_owned();
            // A compacted revision is reported by the call.
            self.call(move |database| database.changes_since(&of, from).map(drop)).await?;
            let (sender, receiver) = mpsc::channel(16);
            let task = tokio::spawn(self.clone().send_changes(prefix.to_owned(), from, sender));
            Ok(WatchStream::new(receiver, task))
        })
    }

    fn grant_lease(&self, time_to_live: Duration) -> WorldFuture<'_, LeaseId> {
        Box::pin(self.call(move |database| database.grant_lease(time_to_live)))
    }

    fn keep_alive(&self, lease: LeaseId) -> WorldFuture<'_, ()> {
        Box::pin(self.call(move |database| database.renew_lease(lease)))
    }

    fn lease_time_left(&self, lease: LeaseId) -> WorldFuture<'_, Duration> {
        Box::pin(self.call(move |database| database.lease_time_left(lease)))
    }

    fn revoke_lease(&self, lease: LeaseId) -> WorldFuture<'_, ()> {
        Box::pin(self.call(move |database| database.revoke_lease(lease)))
    }

    fn compact_history(&self, revision: u64) -> WorldFuture<'_, ()> {
        Box::pin(self.call(move |database| database.compact_before(revision)))
    }
}
