//! The folder world: the files below a directory are keys, read-only. Something else, such as git, changes the files.
//!
//! The directory is read again at each call and once per second by a watch. A revision counts the changes that this
//! process has seen. Names that begin with a dot are left out.

use super::{
    Committed, Entry, KeyChange, LeaseId, MAX_VALUE_BYTES, Range, Transaction, WatchBatch,
    WatchStream, World, WorldError, WorldFuture,
};
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// The interval at which a watch reads the directory.
const POLL: Duration = Duration::from_secs(1);

/// The interval of notifications that prove a watch alive.
const PROGRESS: Duration = Duration::from_secs(10);

/// The deepest directory that is read, and the greatest number of files.
const MAX_DEPTH: usize = 8;
const MAX_FILES: usize = 100_000;

/// The number of changes that are stored for watches.
const HISTORY: usize = 10_000;

/// A read-only world in a directory.
#[derive(Clone, Debug)]
pub struct FolderWorld {
    directory: PathBuf,
    seen: Arc<Mutex<Seen>>,
}

/// The files as this process has seen them last.
#[derive(Debug, Default)]
struct Seen {
    revision: u64,
    entries: BTreeMap<String, Entry>,
    changes: Vec<KeyChange>,
    /// Changes before this revision are not stored any more.
    oldest: u64,
}

impl FolderWorld {
    /// Makes a world of a directory. The directory is read at the first call.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        let seen = Seen { revision: 1, ..Seen::default() };
        Self { directory, seen: Arc::new(Mutex::new(seen)) }
    }

    /// Sends the changes of keys with the prefix, or an empty batch as a sign of life, until nobody receives them.
    async fn send_changes(
        &self,
        prefix: &str,
        from: u64,
        batches: &mpsc::Sender<Result<WatchBatch, WorldError>>,
    ) {
        let (mut next, mut told) = (from, tokio::time::Instant::now());
        loop {
            let of = prefix.to_owned();
            let read = self.read_files(move |seen| seen.changes_since(&of, next)).await;
            if let Ok(batch) = &read {
                next = next.max(batch.revision + 1);
            }
            let is_news = read.as_ref().map_or(true, |batch| !batch.changes.is_empty());
            let is_end = read.is_err();
            if is_news || told.elapsed() >= PROGRESS {
                told = tokio::time::Instant::now();
                if batches.send(read).await.is_err() || is_end {
                    return;
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Reads the directory, notes what has changed, and asks `query` about the result.
    async fn read_files<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Seen) -> Result<T, WorldError> + Send + 'static,
    ) -> Result<T, WorldError> {
        let this = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut seen = this.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let mut files = BTreeMap::new();
            collect_files(&this.directory, "", 0, &mut files).map_err(|error| {
                WorldError::Unavailable(format!("{}: {error}", this.directory.display()))
            })?;
            seen.note_files(files);
            query(&seen)
        });
        read.await.map_err(|error| WorldError::Unavailable(error.to_string()))?
    }
}

/// Reads the files below a directory; links are not followed.
fn collect_files(
    directory: &Path,
    prefix: &str,
    depth: usize,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> io::Result<()> {
    if depth > MAX_DEPTH || files.len() > MAX_FILES {
        return Err(io::Error::other("expected a smaller directory for the world"));
    }
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect_files(&entry.path(), &format!("{prefix}{name}/"), depth + 1, files)?;
        } else if kind.is_file() {
            let mut value = Vec::new();
            let limit = MAX_VALUE_BYTES as u64;
            std::fs::File::open(entry.path())?.take(limit).read_to_end(&mut value)?;
            // A longer file is no valid value.
            if value.len() < MAX_VALUE_BYTES {
                files.insert(format!("{prefix}{name}"), value);
            }
        }
    }
    Ok(())
}

impl Seen {
    /// Records the differences to the last reading as changes of one new revision.
    fn note_files(&mut self, files: BTreeMap<String, Vec<u8>>) {
        let revision = self.revision + 1;
        let mut changes = Vec::new();
        for key in self.entries.keys().filter(|key| !files.contains_key(*key)) {
            changes.push(KeyChange { key: key.clone(), entry: None, revision });
        }
        for (key, value) in files {
            let before = self.entries.get(&key);
            if before.is_some_and(|before| before.value == value) {
                continue;
            }
            let create_revision = before.map_or(revision, |before| before.create_revision);
            let entry = Entry {
                key: key.clone(),
                value,
                create_revision,
                mod_revision: revision,
                lease: None,
            };
            changes.push(KeyChange { key, entry: Some(entry), revision });
        }
        if changes.is_empty() {
            return;
        }
        self.revision = revision;
        for change in &changes {
            match &change.entry {
                Some(entry) => drop(self.entries.insert(change.key.clone(), entry.clone())),
                None => drop(self.entries.remove(&change.key)),
            }
        }
        self.changes.extend(changes);
        let surplus = self.changes.len().saturating_sub(HISTORY);
        if let Some(last) = self.changes.drain(..surplus).next_back() {
            self.oldest = last.revision + 1;
        }
    }

    fn changes_since(&self, prefix: &str, from: u64) -> Result<WatchBatch, WorldError> {
        if from < self.oldest {
            return Err(WorldError::Compacted(self.oldest));
        }
        let is_asked =
            |change: &&KeyChange| change.revision >= from && change.key.starts_with(prefix);
        let changes = self.changes.iter().filter(is_asked).cloned().collect();
        Ok(WatchBatch { revision: self.revision, changes })
    }
}

fn refuse_write<T>() -> WorldFuture<'static, T>
where
    T: Send + 'static,
{
    Box::pin(std::future::ready(Err(WorldError::ReadOnly)))
}

impl World for FolderWorld {
    fn backend(&self) -> &'static str {
        "folder"
    }

    fn get<'a>(&'a self, key: &'a str) -> WorldFuture<'a, Option<Entry>> {
        let key = key.to_owned();
        Box::pin(self.read_files(move |seen| Ok(seen.entries.get(&key).cloned())))
    }

    fn list<'a>(&'a self, prefix: &'a str) -> WorldFuture<'a, Range> {
        let prefix = prefix.to_owned();
        Box::pin(self.read_files(move |seen| {
            let entries = seen.entries.values().filter(|entry| entry.key.starts_with(&prefix));
            Ok(Range { revision: seen.revision, entries: entries.cloned().collect() })
        }))
    }

    fn transact(&self, _: Transaction) -> WorldFuture<'_, Committed> {
        refuse_write()
    }

    fn watch<'a>(&'a self, prefix: &'a str, from: u64) -> WorldFuture<'a, WatchStream> {
        let (this, prefix) = (self.clone(), prefix.to_owned());
        Box::pin(async move {
            let of = prefix.clone();
            this.read_files(move |seen| seen.changes_since(&of, from).map(drop)).await?;
            let (batches, receiver) = mpsc::channel(16);
            let task = tokio::spawn(async move {
                this.send_changes(&prefix, from, &batches).await;
            });
            Ok(WatchStream::new(receiver, task))
        })
    }

    fn grant_lease(&self, _: Duration) -> WorldFuture<'_, LeaseId> {
        refuse_write()
    }

    fn keep_alive(&self, _: LeaseId) -> WorldFuture<'_, ()> {
        refuse_write()
    }

    fn lease_time_left(&self, _: LeaseId) -> WorldFuture<'_, Duration> {
        Box::pin(async { Err(WorldError::LeaseEnded) })
    }

    fn revoke_lease(&self, _: LeaseId) -> WorldFuture<'_, ()> {
        refuse_write()
    }

    fn compact_history(&self, _: u64) -> WorldFuture<'_, ()> {
        refuse_write()
    }
}
