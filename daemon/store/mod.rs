//! The state that survives a crash: begin and end of every run, owed refreshes, completed definitions, ownership,
//! pauses.
//!
//! A [`Store`] commits a batch of entries durably and returns the state after a restart: [`MemoryStore`] for one-shot
//! commands, [`SqliteStore`] for the daemon. The [`Journal`] is the only writer: it commits waiting entries together
//! (group commit), and replies to each ticket when its entry is durable. The store must never act on the host or
//! interpret the values that it stores.
//!
//! Reading order: this file (entries and records), `replay` (the meaning of each entry), `journal`, `database` and
//! `write_ahead_log`, `sqlite` (the store on disk), `state_dir` with `lock_owner`, `modes`, `placement` and `key_check`
//! (the directory),
//! `integrity`, `ownership`, then the operator's side: `state_command`, `maintenance`, `export_format`. `memory` and
//! `fault_injection` serve one-shot commands and tests; `regular_file` opens files without blocking;
//! `retention_clock` counts the age of records.

pub(crate) mod database;
pub mod export_format;
mod fault_injection;
mod integrity;
mod journal;
mod key_check;
mod lock_owner;
mod maintenance;
mod memory;
mod modes;
mod ownership;
mod placement;
pub(crate) mod regular_file;
mod replay;
pub(crate) mod retention_clock;
mod sqlite;
mod state_command;
mod state_dir;
pub(crate) mod write_ahead_log;

pub use fault_injection::{Call, Fault, Faulty};
pub use integrity::{LEFT_ALONE, REPAIRED, RecordReaders, UNSOUND, Violation, violations};
pub use journal::{Committed, Journal, Writer};
pub use maintenance::{Maintenance, inbox, maintain_state};
pub use memory::MemoryStore;
pub use ownership::{Origin, Ownership};
pub use sqlite::{Imported, Overview, RepairReport, SqliteStore, Verified};
pub use state_command::{AuditEntry, Effect, StateCommand};
pub use state_dir::StateLock;
pub(crate) use state_dir::private;
pub(crate) use state_dir::{HISTORY, LAST_GOOD_GRAPH};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// One entry to be stored. Identities are `kind[name]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A run is about to apply.
    Begin {
        /// The identity of the resource.
        identity: Arc<str>,
        /// The definition that the run applies.
        definition: u64,
        /// The engine's stamp of the run.
        stamp: u64,
        /// The operation that is about to start.
        verb: Verb,
        /// The identities that will be owed a refresh.
        owes: Vec<Arc<str>>,
        /// The run does the refreshes owed to this identity up to this stamp; none if none is owed.
        pays: Option<u64>,
    },
    /// The begin with this stamp was rejected, and nothing was done: if the begin was stored all the same, it is void.
    Withdraw {
        /// The identity of the resource.
        identity: Arc<str>,
        /// The stamp of the begin.
        stamp: u64,
    },
    /// A run is over. The entry ends the begin of the same identity, if there was one.
    End {
        /// The identity of the resource.
        identity: Arc<str>,
        /// The definition that the run applied.
        definition: u64,
        /// The outcome of the run.
        outcome: Ended,
        /// The stamp of the begin; none if nothing was begun.
        begun: Option<u64>,
        /// The engine's counter at the end: the refreshes that the run owes have this stamp.
        stamp: u64,
        /// The identities that are owed a refresh from now on.
        owes: Vec<Arc<str>>,
        /// The refreshes owed to this identity up to this stamp are done.
        paid: Option<u64>,
    },
    /// The values that a resource sends from now on. The entry comes before the end of the run that made them.
    Sent {
        /// The identity of the resource.
        identity: Arc<str>,
        /// The values, in a form that only their writer reads.
        values: OpaqueText,
    },
    /// The values that a resource has received in a run that ends well next.
    Taken {
        /// The identity of the resource.
        identity: Arc<str>,
        /// Hashes, in a form that only their writer reads.
        hashes: Arc<str>,
    },
    /// The identity has left the graph. No other entry deletes a refresh owed to it.
    Forget(Arc<str>),
    /// The resource is treated as if declared for the first time: its completed definition and its ownership are
    /// deleted. Owed refreshes, sent and received values, its pause and a run in progress stay.
    Reset(Arc<str>),
    /// The completed definition is deleted: a resource that runs once runs once more.
    Retry(Arc<str>),
    /// The sent values are deleted: values that are made once are made once more.
    ForgetSent(Arc<str>),
    /// The ownership of an object from now on; none deletes the record.
    Own {
        /// The identity of the resource.
        identity: Arc<str>,
        /// The whole ownership record.
        owned: Option<Arc<Ownership>>,
    },
    /// The operator protects an object, or ends every protection of it. Without an ownership record the entry has no
    /// effect.
    Protect {
        /// The identity of the resource.
        identity: Arc<str>,
        /// True if the object is protected from now on.
        protect: bool,
    },
    /// The record of one identity moves to another one that has no record yet; owed refreshes move in any case (B-18).
    Rename {
        /// The old identity.
        from: Arc<str>,
        /// The new identity.
        to: Arc<str>,
        /// The hash of the old definition and that of the new one, if both definitions are the same.
        definition: Option<(u64, u64)>,
        /// The sent values as written under the new identity, if they are written differently: encryption is bound to
        /// the identity.
        sent: Option<OpaqueText>,
    },
    /// The pause of the daemon from now on; none if it is not paused.
    Pause(Option<PauseRecord>),
    /// The pause of one resource begins or ends.
    ResourcePause {
        /// The identity of the resource.
        identity: Arc<str>,
        /// The pause, if there is one from now on.
        pause: Option<PauseRecord>,
    },
    /// Overwritten content must be erased from the disk from now on: it was a plaintext secret (B-26).
    Wipe {
        /// True if all of it is overwritten: the erasure is done now. Before that, it is owed.
        now: bool,
    },
}

/// The operation of a run, shown to the operator if the run is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Make an object that does not exist.
    Create,
    /// Change an existing object.
    Update,
    /// Remove an object that has left the graph.
    Delete,
    /// Carry out a refresh without a difference.
    Refresh,
    /// Run an operation whose result no check can verify (a command).
    Run,
}

impl Verb {
    const ALL: [Self; 5] = [Self::Create, Self::Update, Self::Delete, Self::Refresh, Self::Run];

    /// Returns the operation as a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Refresh => "refresh",
            Self::Run => "run",
        }
    }

    /// Returns the operation as a phrase with its article.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Create => "its creation",
            Self::Update => "a change",
            Self::Delete => "its removal",
            Self::Refresh => "a refresh",
            Self::Run => "a run",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.word() == word)
    }
}

/// A text that is stored and never shown: older programs have stored values declared as `saved` in plaintext.
#[derive(Clone, PartialEq, Eq)]
pub struct OpaqueText(pub Arc<str>);

impl std::fmt::Debug for OpaqueText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<hidden>")
    }
}

/// The random key of a state directory, used for keyed hashes; the key of the cipher is derived from it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub [u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<key>")
    }
}

/// The outcome of a run, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As declared: the definition has completed.
    Well,
    /// Not as declared.
    Failed,
    /// Cut off: treated at the next start like a begin without an end.
    Interrupted,
}

/// A pause, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseRecord {
    /// The person or rule that requested the pause.
    pub reason: String,
    /// The time at which the pause ends, in seconds of the wall clock since 1970.
    pub until_unix: u64,
    /// The duration in seconds from the time of storing, so that a wrong clock makes the pause no longer. None if
    /// unknown.
    pub lasts: Option<u64>,
}

impl PauseRecord {
    /// Returns the remaining time at wall-clock time `wall`: at most `most` if the duration is unknown, and never more
    /// than `longest`.
    #[must_use]
    pub fn remaining(&self, wall: Duration, most: Duration, longest: Duration) -> Duration {
        let left = Duration::from_secs(self.until_unix.saturating_sub(wall.as_secs()));
        left.min(self.lasts.map_or(most, Duration::from_secs)).min(longest)
    }
}

/// The whole stored state, as loaded at a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredState {
    /// The records by identity.
    pub resources: BTreeMap<String, ResourceRecord>,
    /// The active pause of the daemon.
    pub pause: Option<PauseRecord>,
    /// The largest stamp ever stored.
    pub stamp: u64,
    /// The key of the hashes; none if nothing outlives this process.
    pub key: Option<Key>,
}

/// The stored record of one identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRecord {
    /// The definition of the last good run.
    pub done: Option<u64>,
    /// The stamp of the refresh that is owed, and the identity that caused it.
    pub owed: Option<(u64, String)>,
    /// The definition of a run that has begun and not ended, or was cut off. The refreshes of its begin are owed (they
    /// are in `owed` of the other records).
    pub interrupted: Option<u64>,
    /// The operation of that run, if known.
    pub cut: Option<Verb>,
    /// The refreshes that this run did, up to this stamp.
    pub cut_pays: Option<u64>,
    /// The values that the resource has sent.
    pub sent: Option<OpaqueText>,
    /// The values received by its last good run.
    pub taken: Option<Arc<str>>,
    /// The pause of the resource on its own.
    pub pause: Option<PauseRecord>,
    /// The ownership of the object.
    pub owned: Option<Arc<Ownership>>,
}

impl ResourceRecord {
    /// Applies [`Entry::Reset`] to a loaded record.
    pub fn reset(&mut self) {
        (self.done, self.interrupted, self.owned) = (None, None, None);
        (self.cut, self.cut_pays) = (None, None);
    }
}

impl StoredState {
    /// Applies [`Entry::Rename`] to a loaded state.
    pub fn rename(&mut self, from: &str, to: &str, definition: Option<(u64, u64)>) {
        let Some(mut record) = self.resources.remove(from) else { return };
        let new = self.resources.entry(to.to_owned()).or_default();
        let owed = record.owed.take().max(new.owed.take());
        if *new == ResourceRecord::default() || (new.owned.is_none() && record.owned.is_some()) {
            let called =
                |old: u64| definition.filter(|(of, _)| *of == old).map_or(old, |(_, new)| new);
            let run = |it: &ResourceRecord, was: u64| (was, it.cut, it.cut_pays);
            let cut_off = record.interrupted.map(called).map(|was| run(&record, was));
            let cut_off = cut_off.or_else(|| new.interrupted.map(|was| run(new, was)));
            *new = ResourceRecord {
                done: record.done.map(called),
                interrupted: cut_off.map(|(definition, ..)| definition),
                cut: cut_off.and_then(|(_, verb, _)| verb),
                cut_pays: cut_off.and_then(|(.., pays)| pays),
                ..std::mem::take(&mut record)
            };
        }
        new.owed = owed;
        if *new == ResourceRecord::default() {
            self.resources.remove(to);
        }
        if record != ResourceRecord::default() {
            self.resources.insert(from.to_owned(), record);
        }
    }
}

/// The reason for which state could not be stored or loaded.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another daemon holds the state directory.
    #[error("another steadfast is running on {dir} (pid {pid}{})", place_words(host.as_deref(), *since))]
    Locked {
        /// The state directory.
        dir: String,
        /// The process that holds it, if known.
        pid: String,
        /// The name of that process's host, if known.
        host: Option<String>,
        /// The time of locking, in seconds since 1970, if known.
        since: Option<u64>,
    },
    /// Another daemon has taken the state while we held the directory: the lock file was removed.
    #[error("another steadfast has taken the state in {dir} (epoch {epoch}, ours is {ours})")]
    Fenced {
        /// The state directory.
        dir: String,
        /// The epoch of the other daemon.
        epoch: u64,
        /// Our epoch.
        ours: u64,
    },
    /// The state directory was removed or replaced while we held it.
    #[error("the state directory {dir} was removed or replaced: {what}")]
    Replaced {
        /// The state directory.
        dir: String,
        /// The first file that is not in its place.
        what: String,
    },
    /// The state directory cannot be made or used.
    #[error("cannot use the state directory {dir}: {why}")]
    Directory {
        /// The state directory.
        dir: String,
        /// The error of the system.
        why: String,
        /// True if a permission is missing.
        denied: bool,
    },
    /// Users other than the owner have access to the state directory.
    #[error("cannot use the state directory {dir}: accessible to others (mode {mode:04o})")]
    OpenToOthers {
        /// The state directory.
        dir: String,
        /// The mode of the directory.
        mode: u32,
    },
    /// The database returned an error.
    #[error("cannot write the state in {path}: {why}")]
    Database {
        /// The file of the database.
        path: String,
        /// The error of the database.
        why: String,
    },
    /// A newer program made the database; it was left as it is.
    #[error("cannot write the state in {path}: {why}")]
    Newer {
        /// The file of the database.
        path: String,
        /// The schemas of the database and of this program.
        why: String,
    },
    /// The stored state cannot be read; it was left as it is.
    #[error("the state in {path} is damaged: {why}")]
    Damaged {
        /// The file of the database.
        path: String,
        /// The damage.
        why: String,
    },
    /// An earlier entry could not be stored, and must be repeated first.
    #[error("an earlier entry could not be stored: {0}")]
    Behind(String),
    /// The thread that stores state has ended.
    #[error("the state is no longer written: the state thread has ended")]
    Ended,
}

fn place_words(host: Option<&str>, since: Option<u64>) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let age = since.zip(now.ok()).map(|(since, now)| now.as_secs().saturating_sub(since));
    let host = host.map(|host| format!(" on {host}")).unwrap_or_default();
    host + &age.map(|age| format!(", for {age} s")).unwrap_or_default()
}

/// A storage of entries.
pub trait Store: Send {
    /// Returns the whole state. A begin without an end is returned as interrupted, with its refreshes as owed.
    ///
    /// # Errors
    ///
    /// Returns an error if the state cannot be read.
    fn recall(&mut self) -> Result<StoredState, StoreError>;

    /// Commits a batch in order, all or nothing. The batch is durable when the call returns.
    ///
    /// # Errors
    ///
    /// Returns an error if the batch may not be durable; the handle must be reopened then (B-6).
    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError>;

    /// Closes a handle that has failed and opens a new one (B-6). Does nothing if there is no handle.
    ///
    /// # Errors
    ///
    /// Returns an error if the handle cannot be opened.
    fn reopen(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Saves what was stored in files that were removed while in use, as far as this is possible.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be saved now; the handle must be reopened then.
    fn check_files(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
