//! What must survive a crash: begin and end of every run, what is owed, what has run once, the pause.
//!
//! A [`Store`] commits a batch of entries durably and tells them back after a restart: [`MemoryStore`] for one-shot commands,
//! [`SqliteStore`] for the daemon. The [`Journal`] is the one writer: it commits together whatever waits (group commit), and
//! answers each ticket when its entry is durable.

pub(crate) mod database;
pub mod export_format;
mod fault_injection;
mod integrity;
mod journal;
mod lock_owner;
mod maintenance;
mod memory;
mod modes;
mod ownership;
mod placement;
pub(crate) mod regular_file;
mod replay;
mod sqlite;
mod state_command;
mod state_dir;

pub use fault_injection::{Call, Fault, Faulty};
pub use integrity::{LEFT_ALONE, REPAIRED, RecordReaders, UNSOUND, Violation, violations};
pub use journal::{Committed, Journal, Writer};
pub use maintenance::{Maintenance, inbox, mend};
pub use memory::MemoryStore;
pub use ownership::{Origin, Ownership};
pub use sqlite::{Imported, Overview, RepairReport, SqliteStore, Verified};
pub use state_command::{AuditEntry, Effect, StateCommand};
pub(crate) use state_dir::HISTORY;
pub use state_dir::StateLock;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// One thing to be kept. Identities are `kind[name]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A run is about to apply.
    Begin {
        /// Whose.
        identity: Arc<str>,
        /// The definition it applies.
        definition: u64,
        /// The engine's stamp of the run.
        stamp: u64,
        /// What it is about to do.
        verb: Verb,
        /// The identities that will be owed a refresh.
        owes: Vec<Arc<str>>,
    },
    /// The begin with this stamp was refused, and nothing was done: where it was kept all the same, it is nothing.
    Withdraw {
        /// Whose.
        identity: Arc<str>,
        /// The stamp of the begin.
        stamp: u64,
    },
    /// A run is over. It ends the begin of the same identity, if there was one.
    End {
        /// Whose.
        identity: Arc<str>,
        /// The definition it applied.
        definition: u64,
        /// How it ended.
        outcome: Ended,
        /// The stamp of the begin that it ends; none where nothing was begun.
        begun: Option<u64>,
        /// The engine's counter when it ended: what it owes is owed with this stamp.
        stamp: u64,
        /// The identities that are owed a refresh from now on.
        owes: Vec<Arc<str>>,
        /// What was owed to this identity up to this stamp is paid.
        paid: Option<u64>,
    },
    /// What a resource sends from now on. It comes before the end of the run that made it.
    Sent {
        /// Whose.
        identity: Arc<str>,
        /// The values, in a form that only their writer reads.
        values: OpaqueText,
    },
    /// What a resource has received by a run that ends well next.
    Taken {
        /// Whose.
        identity: Arc<str>,
        /// Hashes, in a form that only their writer reads.
        hashes: Arc<str>,
    },
    /// The identity has left the graph; only this ends what is owed to it.
    Forget(Arc<str>),
    /// It is treated as if it was declared for the first time: whether it has run, and whose it is, is forgotten. What is owed to it,
    /// what it has sent and received, its pause and a run under way stay.
    Anew(Arc<str>),
    /// Whether it has run is forgotten: what runs once runs once more.
    Redo(Arc<str>),
    /// What it has sent is forgotten: what is made once is made once more.
    Unsend(Arc<str>),
    /// Whose a thing is from now on; nobody's where none is given.
    Own {
        /// Of which identity.
        identity: Arc<str>,
        /// All that is kept of it.
        owned: Option<Arc<Ownership>>,
    },
    /// The operator protects a thing, or ends every protection of it; nothing where nothing is kept of whose it is.
    Protect {
        /// Of which identity.
        identity: Arc<str>,
        /// Whether it is protected from now on.
        protect: bool,
    },
    /// All that is kept of one identity is kept of another one from now on, where nothing is kept of that one yet; what is owed
    /// moves in any case (B-18).
    Rename {
        /// Its old name.
        from: Arc<str>,
        /// Its new one.
        to: Arc<str>,
        /// What the definition of the old name is called under the new one, where they are the same.
        definition: Option<(u64, u64)>,
        /// What it has sent, as that is written under the new name, where it is written otherwise: what is encrypted is for one name.
        sent: Option<OpaqueText>,
    },
    /// The daemon is paused, or not any more.
    Pause(Option<PauseRecord>),
    /// One resource is paused by itself, or not any more.
    Park {
        /// Which.
        identity: Arc<str>,
        /// The pause, if there is one from now on.
        pause: Option<PauseRecord>,
    },
    /// Nothing is to be left of what is overwritten from here on, also where nothing reads it any more: it was a secret in clear (B-26).
    Wipe {
        /// Whether all of it is overwritten: it is done now. Before that it is owed.
        now: bool,
    },
}

/// What a run is about to do. Where it was cut off, an operator reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// To make what is not there.
    Create,
    /// To change what is there.
    Update,
    /// To remove what has left the graph.
    Delete,
    /// To heed a refresh, where nothing differs.
    Refresh,
    /// To do what no look can tell whether it is done (a command).
    Run,
}

impl Verb {
    const ALL: [Self; 5] = [Self::Create, Self::Update, Self::Delete, Self::Refresh, Self::Run];

    /// In a word.
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

    /// With its article, for people.
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

/// A text that is kept and never shown: programs of before have kept in it what is declared as `saved` in clear.
#[derive(Clone, PartialEq, Eq)]
pub struct OpaqueText(pub Arc<str>);

impl std::fmt::Debug for OpaqueText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<hidden>")
    }
}

/// What keyed hashes are made with, and the key of the cipher follows from: random, made once for a state directory.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub [u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<key>")
    }
}

/// How a run ended, as kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As declared now: the definition has run.
    Well,
    /// Not as declared.
    Failed,
    /// Cut off: at the next start it is treated like a begin without an end.
    Interrupted,
}

/// A pause, as kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseRecord {
    /// Who or what asked for it.
    pub reason: String,
    /// When it ends by itself, in seconds of the wall clock since 1970.
    pub until_unix: u64,
    /// How long that was from when it was kept, in seconds: a clock that is wrong makes it no longer. None where that is not known.
    pub lasts: Option<u64>,
}

impl PauseRecord {
    /// How much of it is left at this time of the wall clock: of one that does not say how long it lasts at most so much, and of none more
    /// than the longest.
    #[must_use]
    pub fn remaining(&self, wall: Duration, most: Duration, longest: Duration) -> Duration {
        let left = Duration::from_secs(self.until_unix.saturating_sub(wall.as_secs()));
        left.min(self.lasts.map_or(most, Duration::from_secs)).min(longest)
    }
}

/// All that is kept, as told back at a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredState {
    /// By identity.
    pub resources: BTreeMap<String, ResourceRecord>,
    /// The pause that holds.
    pub pause: Option<PauseRecord>,
    /// The largest stamp ever kept.
    pub stamp: u64,
    /// The key of the hashes; none where nothing is kept for longer than this process.
    pub key: Option<Key>,
}

/// What is kept of one identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRecord {
    /// The definition it last ran well under.
    pub done: Option<u64>,
    /// The stamp of the refresh that is owed to it, and the identity that caused it.
    pub owed: Option<(u64, String)>,
    /// A run under this definition has begun and not ended, or was cut off. What its begin owed is owed (it stands in `owed` of
    /// the others).
    pub interrupted: Option<u64>,
    /// What that run was about to do, where that is known.
    pub cut: Option<Verb>,
    /// What it has sent.
    pub sent: Option<OpaqueText>,
    /// What it has received by its last good run.
    pub taken: Option<Arc<str>>,
    /// The pause of it alone.
    pub parked: Option<PauseRecord>,
    /// Whose it is.
    pub owned: Option<Arc<Ownership>>,
}

impl ResourceRecord {
    /// The same after [`Entry::Anew`].
    pub fn anew(&mut self) {
        (self.done, self.interrupted, self.cut, self.owned) = (None, None, None, None);
    }
}

impl StoredState {
    /// As [`Entry::Rename`] has it, of what was told back.
    pub fn rename(&mut self, from: &str, to: &str, definition: Option<(u64, u64)>) {
        let Some(mut record) = self.resources.remove(from) else { return };
        let new = self.resources.entry(to.to_owned()).or_default();
        let owed = record.owed.take().max(new.owed.take());
        if *new == ResourceRecord::default() || (new.owned.is_none() && record.owned.is_some()) {
            let called =
                |old: u64| definition.filter(|(of, _)| *of == old).map_or(old, |(_, new)| new);
            let cut_off = record.interrupted.map(called).map(|was| (was, record.cut));
            let cut_off = cut_off.or_else(|| new.interrupted.map(|was| (was, new.cut)));
            *new = ResourceRecord {
                done: record.done.map(called),
                interrupted: cut_off.map(|(definition, _)| definition),
                cut: cut_off.and_then(|(_, verb)| verb),
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

/// Why something could not be kept, or told back.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another daemon holds the state directory.
    #[error("another steadfast is running on {dir} (pid {pid}{})", place_words(host.as_deref(), *since))]
    Locked {
        /// The state directory.
        dir: String,
        /// Its process, as far as known.
        pid: String,
        /// The name of its host, as far as known.
        host: Option<String>,
        /// Since when it has it, in seconds since 1970, as far as known.
        since: Option<u64>,
    },
    /// Another one has taken the state while we held the directory: the file of the lock was removed.
    #[error("another steadfast has taken the state in {dir} (epoch {epoch}, ours is {ours})")]
    Fenced {
        /// The state directory.
        dir: String,
        /// Its epoch.
        epoch: u64,
        /// Ours.
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
        /// What the system said.
        why: String,
        /// It is a permission that is missing.
        denied: bool,
    },
    /// Others than the owner have rights on the state directory.
    #[error("cannot use the state directory {dir}: accessible to others (mode {mode:04o})")]
    OpenToOthers {
        /// The state directory.
        dir: String,
        /// Its mode.
        mode: u32,
    },
    /// The database refused.
    #[error("cannot write the state in {path}: {why}")]
    Database {
        /// Its file.
        path: String,
        /// What it said.
        why: String,
    },
    /// A newer program has made it; it was left as it is.
    #[error("cannot write the state in {path}: {why}")]
    Newer {
        /// Its file.
        path: String,
        /// Which schemas there are.
        why: String,
    },
    /// What is kept cannot be read; it was left as it is.
    #[error("the state in {path} is damaged: {why}")]
    Damaged {
        /// Its file.
        path: String,
        /// What is wrong.
        why: String,
    },
    /// Something before it could not be kept, and comes first.
    #[error("an earlier entry could not be stored: {0}")]
    Behind(String),
    /// The thread that keeps state has ended.
    #[error("the state is no longer written: the state thread has ended")]
    Ended,
}

fn place_words(host: Option<&str>, since: Option<u64>) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let age = since.zip(now.ok()).map(|(since, now)| now.as_secs().saturating_sub(since));
    let host = host.map(|host| format!(" on {host}")).unwrap_or_default();
    host + &age.map(|age| format!(", for {age} s")).unwrap_or_default()
}

/// A place that keeps entries.
pub trait Store: Send {
    /// All that is kept. A begin without an end is told back as interrupted, with what it would owe as owed.
    fn recall(&mut self) -> Result<StoredState, StoreError>;

    /// Keeps a batch, all or nothing, in this order; durable when it returns.
    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError>;

    /// Gives up a handle that has failed and opens it anew (B-6); nothing to do where there is no handle.
    fn reopen(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
