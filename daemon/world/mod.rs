//! The world: the keys and values that hosts share, with revisions, leases and watches.
//!
//! A back end implements [`World`]: the embedded one (`SQLite`, the default), etcd (cargo feature `etcd`), and a
//! read-only folder. All of them obey one contract, which `tests/world` checks. This module must never decide anything
//! about a graph, and no call of it may stand in the path of local convergence: the callers are workers.
//!
//! Reading order: this file (the interface), `keys` (the names of keys), `embedded/`, `folder`, `etcd`, `records` (the
//! JSON values), `follower` (a view of a range that survives lost watches), `permits` (the rule of semaphores and
//! rolls), `host_lease`, `tickets` and `permit_guard` (the permits of one host), `selector` and `collection` (the
//! exports that one host uses), `splay`, `bundle/` (signed graph folders).

pub mod bundle;
pub mod collection;
mod embedded;
#[cfg(feature = "etcd")]
mod etcd;
mod folder;
pub mod follower;
pub mod host_lease;
pub mod keys;
pub mod permit_guard;
pub mod permits;
pub mod records;
pub mod selector;
pub mod splay;
pub mod tickets;

pub use embedded::{BootClock, EmbeddedWorld, boot_time};
#[cfg(feature = "etcd")]
pub use etcd::{EtcdSettings, EtcdWorld};
pub use folder::FolderWorld;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::mpsc;

/// The largest accepted value.
pub const MAX_VALUE_BYTES: usize = 100 * 1024;

/// The number of operations that one transaction may have.
pub const MAX_OPERATIONS: usize = 64;

/// The future of a call to a world.
pub type WorldFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, WorldError>> + Send + 'a>>;

/// The identity of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub i64);

/// One key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key, without a prefix of the back end.
    pub key: String,
    /// The value.
    pub value: Vec<u8>,
    /// The revision that created the key.
    pub create_revision: u64,
    /// The revision that changed the key last.
    pub mod_revision: u64,
    /// The lease to which the key is bound.
    pub lease: Option<LeaseId>,
}

/// The entries of a range at one revision, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The revision of the world at the read.
    pub revision: u64,
    /// The entries.
    pub entries: Vec<Entry>,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The key has this modification revision; 0 means that the key is absent.
    ModRevision(String, u64),
    /// The key has this create revision; 0 means that the key is absent.
    CreateRevision(String, u64),
}

/// A write of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Writes a value, bound to a lease if one is given.
    Put(String, Vec<u8>, Option<LeaseId>),
    /// Deletes a key; an absent key is no error.
    Delete(String),
}

/// A transaction: all operations take effect at one revision if all conditions hold, and none otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// The conditions.
    pub conditions: Vec<Compare>,
    /// The operations; each key appears once.
    pub operations: Vec<Operation>,
}

/// The result of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// True if the conditions held and the operations took effect.
    pub succeeded: bool,
    /// The revision of the world after the transaction.
    pub revision: u64,
}

/// One change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// The key.
    pub key: String,
    /// The new entry; none if the key was deleted or its lease ended.
    pub entry: Option<Entry>,
    /// The revision of the change.
    pub revision: u64,
}

/// The changes up to one revision. No changes prove that the watch is alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchBatch {
    /// All changes up to this revision were delivered.
    pub revision: u64,
    /// The changes, in the order of their revisions.
    pub changes: Vec<KeyChange>,
}

/// A running watch. The watch ends when this value is dropped.
#[derive(Debug)]
pub struct WatchStream {
    batches: mpsc::Receiver<Result<WatchBatch, WorldError>>,
    task: tokio::task::JoinHandle<()>,
}

impl WatchStream {
    /// Wraps a task that sends batches.
    #[must_use]
    pub const fn new(
        batches: mpsc::Receiver<Result<WatchBatch, WorldError>>,
        task: tokio::task::JoinHandle<()>,
    ) -> Self {
        Self { batches, task }
    }

    /// Waits for the next batch.
    ///
    /// # Errors
    /// The reason for which the watch ended; no batch follows.
    pub async fn next_batch(&mut self) -> Result<WatchBatch, WorldError> {
        let ended = || WorldError::Unavailable("the watch ended".to_owned());
        self.batches.recv().await.unwrap_or_else(|| Err(ended()))
    }
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The failure of a call to a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorldError {
    /// The back end accepts no writes.
    ReadOnly,
    /// The back end does not answer; a later call may succeed.
    Unavailable(String),
    /// The revision of a watch was compacted; the number is the oldest revision that is left.
    Compacted(u64),
    /// The lease does not exist or has ended.
    LeaseEnded,
    /// The back end refuses the call: a permission is missing.
    Denied(String),
    /// The call is wrong: a key, a value or a number of operations.
    Invalid(String),
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => write!(f, "the world is read only"),
            Self::Unavailable(why) => write!(f, "the world does not answer: {why}"),
            Self::Compacted(oldest) => {
                write!(f, "the revision was compacted; the oldest one is {oldest}")
            }
            Self::LeaseEnded => write!(f, "the lease has ended"),
            Self::Denied(why) => write!(f, "the world refuses the call: {why}"),
            Self::Invalid(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for WorldError {}

/// The store that hosts share.
///
/// Reads are linearizable: a read sees every write that was acknowledged before it began.
pub trait World: Send + Sync + fmt::Debug {
    /// Returns the kind of the back end: `embedded`, `folder` or `etcd`.
    fn backend(&self) -> &'static str;

    /// Returns the version of the server, such as `3.4.23`; none for a back end without a server.
    fn server_version(&self) -> WorldFuture<'_, Option<String>> {
        Box::pin(async { Ok(None) })
    }

    /// Returns the entry of a key.
    fn get<'a>(&'a self, key: &'a str) -> WorldFuture<'a, Option<Entry>>;

    /// Returns all entries whose keys begin with a prefix.
    fn list<'a>(&'a self, prefix: &'a str) -> WorldFuture<'a, Range>;

    /// Runs a transaction.
    fn transact(&self, transaction: Transaction) -> WorldFuture<'_, Committed>;

    /// Watches all keys that begin with a prefix. The first delivered change has at least the revision `from`.
    fn watch<'a>(&'a self, prefix: &'a str, from: u64) -> WorldFuture<'a, WatchStream>;

    /// Grants a lease. The back end may lengthen the time.
    fn grant_lease(&self, time_to_live: Duration) -> WorldFuture<'_, LeaseId>;

    /// Renews a lease. Fails with [`WorldError::LeaseEnded`] if the lease has ended.
    fn keep_alive(&self, lease: LeaseId) -> WorldFuture<'_, ()>;

    /// Returns the time until a lease ends if nobody renews it, in whole seconds or finer. Fails with
    /// [`WorldError::LeaseEnded`] if the lease has ended.
    fn lease_time_left(&self, lease: LeaseId) -> WorldFuture<'_, Duration>;

    /// Ends a lease and deletes its keys; an ended lease is no error.
    fn revoke_lease(&self, lease: LeaseId) -> WorldFuture<'_, ()>;

    /// Discards the changes before a revision; a watch cannot start there any more.
    fn compact_history(&self, revision: u64) -> WorldFuture<'_, ()>;

    /// Writes one value.
    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Vec<u8>,
        lease: Option<LeaseId>,
    ) -> WorldFuture<'a, u64> {
        let operations = vec![Operation::Put(key.to_owned(), value, lease)];
        Box::pin(async move {
            let done = self.transact(Transaction { operations, ..Transaction::default() }).await?;
            Ok(done.revision)
        })
    }

    /// Deletes one key; an absent key is no error.
    fn delete<'a>(&'a self, key: &'a str) -> WorldFuture<'a, u64> {
        let operations = vec![Operation::Delete(key.to_owned())];
        Box::pin(async move {
            let done = self.transact(Transaction { operations, ..Transaction::default() }).await?;
            Ok(done.revision)
        })
    }
}

/// Checks the limits of a transaction, which are the same for all back ends.
fn check_limits(transaction: &Transaction) -> Result<(), WorldError> {
    let number = transaction.operations.len();
    if number >= MAX_OPERATIONS {
        let what =
            format!("a transaction has fewer than {MAX_OPERATIONS} operations, not {number}");
        return Err(WorldError::Invalid(what));
    }
    let mut seen = std::collections::BTreeSet::new();
    for operation in &transaction.operations {
        let (key, bytes) = match operation {
            Operation::Put(key, value, _) => (key, value.len()),
            Operation::Delete(key) => (key, 0),
        };
        if key.is_empty() || key.len() > 4096 {
            return Err(WorldError::Invalid("a key has 1 to 4096 bytes".to_owned()));
        }
        if bytes >= MAX_VALUE_BYTES {
            let what = format!("a value has less than {MAX_VALUE_BYTES} bytes, not {bytes}: {key}");
            return Err(WorldError::Invalid(what));
        }
        if !seen.insert(key) {
            return Err(WorldError::Invalid(format!("the key {key} appears twice")));
        }
    }
    Ok(())
}
