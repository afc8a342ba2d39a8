//! What must survive a crash: begin and end of every run, what is owed, what has run once, the pause.
//!
//! A [`Store`] commits a batch of entries durably and tells them back after a restart: [`MemoryStore`] for one-shot commands,
//! [`SqliteStore`] for the daemon. The [`Journal`] is the one writer: it commits together whatever waits (group commit), and
//! answers each ticket when its entry is durable.

pub(crate) mod database;
mod directory;
pub mod document;
mod fold;
mod journal;
mod memory;
mod mend;
mod order;
mod owned;
mod rules;
mod sqlite;

pub use directory::Hold;
pub use journal::{Committed, Journal, Writer};
pub use memory::MemoryStore;
pub use mend::{Mend, inbox, mend};
pub use order::Order;
pub use owned::{Origin, Owned};
pub use rules::{LEFT_ALONE, REPAIRED, Readers, UNSOUND, Violation, violations};
pub use sqlite::{Imported, Mended, SqliteStore, Verified};

use std::collections::BTreeMap;
use std::sync::Arc;
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
        /// The identities that will be owed a refresh.
        owes: Vec<Arc<str>>,
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
        values: Hidden,
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
    /// Whose a thing is from now on; nobody's where none is given.
    Own {
        /// Of which identity.
        identity: Arc<str>,
        /// All that is kept of it.
        owned: Option<Arc<Owned>>,
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
}

/// A text that is kept and never shown: it may hold a secret that is declared as `saved`.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(pub Arc<str>);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<hidden>")
    }
}

/// What keyed hashes are made with: random, made once for a state directory.
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
}

/// All that is kept, as told back at a start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recalled {
    /// By identity.
    pub resources: BTreeMap<String, Remembered>,
    /// The pause that holds.
    pub pause: Option<PauseRecord>,
    /// The largest stamp ever kept.
    pub stamp: u64,
    /// The key of the hashes; none where nothing is kept for longer than this process.
    pub key: Option<Key>,
}

/// What is kept of one identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The definition it last ran well under.
    pub done: Option<u64>,
    /// The stamp of the refresh that is owed to it, and the identity that caused it.
    pub owed: Option<(u64, String)>,
    /// A run under this definition has begun and not ended, or was cut off. What its begin owed is owed (it stands in `owed` of
    /// the others).
    pub interrupted: Option<u64>,
    /// What it has sent.
    pub sent: Option<Hidden>,
    /// What it has received by its last good run.
    pub taken: Option<Arc<str>>,
    /// The pause of it alone.
    pub parked: Option<PauseRecord>,
    /// Whose it is.
    pub owned: Option<Arc<Owned>>,
}

impl Remembered {
    /// The same after [`Entry::Anew`].
    pub fn anew(&mut self) {
        (self.done, self.interrupted, self.owned) = (None, None, None);
    }
}

impl Recalled {
    /// As [`Entry::Rename`] has it, of what was told back.
    pub fn rename(&mut self, from: &str, to: &str, definition: Option<(u64, u64)>) {
        let Some(mut record) = self.resources.remove(from) else { return };
        let new = self.resources.entry(to.to_owned()).or_default();
        let owed = record.owed.take().max(new.owed.take());
        if *new == Remembered::default() || (new.owned.is_none() && record.owned.is_some()) {
            let called =
                |old: u64| definition.filter(|(of, _)| *of == old).map_or(old, |(_, new)| new);
            *new = Remembered {
                done: record.done.map(called),
                interrupted: record.interrupted.map(called).or(new.interrupted),
                ..std::mem::take(&mut record)
            };
        }
        new.owed = owed;
        if *new == Remembered::default() {
            self.resources.remove(to);
        }
        if record != Remembered::default() {
            self.resources.insert(from.to_owned(), record);
        }
    }
}

/// Why something could not be kept, or told back.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Another daemon holds the state directory.
    #[error("another steadfast is running on {dir} (pid {pid}{})", since_words(*since))]
    Locked {
        /// The state directory.
        dir: String,
        /// Its process, as far as known.
        pid: String,
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
    /// The database refused.
    #[error("cannot keep state in {path}: {why}")]
    Database {
        /// Its file.
        path: String,
        /// What it said.
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
    /// The thread that keeps state has ended.
    #[error("state is not kept any more: its thread has ended")]
    Ended,
}

fn since_words(since: Option<u64>) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let age = since.zip(now.ok()).map(|(since, now)| now.as_secs().saturating_sub(since));
    age.map(|age| format!(", for {age} s")).unwrap_or_default()
}

/// A place that keeps entries.
pub trait Store: Send {
    /// All that is kept. A begin without an end is told back as interrupted, with what it would owe as owed.
    fn recall(&mut self) -> Result<Recalled, StoreError>;

    /// Keeps a batch, all or nothing, in this order; durable when it returns.
    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError>;

    /// Gives up a handle that has failed and opens it anew (B-6); nothing to do where there is no handle.
    fn reopen(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
