//! Renamed resources: entries under a former name move to the new name, once (B-18).
//!
//! The state database moves its own records separately, so a killed process may leave only one of the two moved. Each
//! loaded graph therefore passes all its aliases, and this file records the aliases that were followed already.

use super::database::{Book, milliseconds};
use super::entry::{COLUMNS, Stored};
use super::undo_log::Undoing;
use super::{History, Reader, database};
use crate::store::database::Fault;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The number of entries that are read at once.
const AT_ONCE: usize = 1000;

/// A former name that a graph declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The former name.
    pub old: Arc<str>,
    /// The present name.
    pub new: Arc<str>,
    /// True if the state has no record of the old name, so its entries cannot belong to another resource.
    pub is_gone: bool,
}

/// The renames and aliases of a graph.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The resources that this load renamed, each with its old and new name, in order.
    pub renamed: Vec<(Arc<str>, Arc<str>)>,
    /// All former names that the graph declares.
    pub aliases: Vec<Alias>,
}

impl Names {
    /// Appends the names of a later graph.
    fn then(mut self, later: Self) -> Self {
        self.renamed.extend(later.renamed);
        Self { aliases: later.aliases, ..self }
    }

    fn is_nothing(&self) -> bool {
        self.renamed.is_empty() && self.aliases.is_empty()
    }

    /// Returns the renames to carry out, except those that were carried out before.
    fn moves(&self, before: &Followed) -> Vec<(&str, &str)> {
        let now = self.renamed.iter().map(|(old, new)| (old.as_ref(), new.as_ref()));
        let lost = self.aliases.iter().filter(|one| one.is_gone && !before.has(one));
        now.chain(lost.map(|one| (one.old.as_ref(), one.new.as_ref()))).collect()
    }
}

/// The aliases followed so far: the new name of each, and the last time a graph declared the alias (in milliseconds
/// since 1970).
struct Followed(BTreeMap<String, (String, u64)>);

impl Followed {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut select = connection.prepare("SELECT old, new, at FROM name")?;
        let rows = select.query_map((), |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        Ok(Self(rows.collect::<rusqlite::Result<_>>()?))
    }

    /// Returns true if an alias was followed before: later entries under the old name belong to another resource.
    fn has(&self, alias: &Alias) -> bool {
        self.0.get(alias.old.as_ref()).is_some_and(|(new, _)| **new == *alias.new)
    }

    /// Returns true if the record of an alias is recent enough.
    fn is_fresh(&self, alias: &Alias, since: u64) -> bool {
        let found = self.0.get(alias.old.as_ref());
        found.is_some_and(|(new, at)| **new == *alias.new && *at >= since)
    }
}

/// The times at which records of aliases are renewed and forgotten, in milliseconds since 1970.
#[derive(Clone, Copy)]
struct Terms {
    now: u64,
    fresh: u64,
    old: u64,
}

impl Terms {
    /// Computes the times. An alias is recorded as long as the entries moved for it can exist.
    fn new(now: Duration, age: Duration) -> Self {
        let before = |span| milliseconds(now.saturating_sub(span));
        Self { now: milliseconds(now), fresh: before(age / 2), old: before(age) }
    }
}

fn has_any(connection: &Connection, resource: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM entry WHERE resource = ?1")?.exists([resource])
}

/// Returns true if there is nothing to write.
fn is_done(connection: &Connection, names: &Names, terms: Terms) -> rusqlite::Result<bool> {
    let before = Followed::read(connection)?;
    if !names.aliases.iter().all(|alias| before.is_fresh(alias, terms.fresh)) {
        return Ok(false);
    }
    let mut moves = names.moves(&before).into_iter();
    moves.try_fold(true, |done, (old, new)| {
        Ok(done && (!has_any(connection, old)? || has_any(connection, new)?))
    })
}

impl Book {
    /// Moves the entries of renamed resources and records the aliases, durably. Writes nothing if that is done already.
    pub(super) fn rename(&mut self, names: &Names, now: Duration) -> Result<(), Fault> {
        let terms = Terms::new(now, self.limits.age);
        if is_done(&self.connection, names, terms)? {
            return Ok(());
        }
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let before = Followed::read(&transaction)?;
        let (mut less, mut more) = (0, 0);
        for (old, new) in names.moves(&before) {
            // A resource that has its own entries keeps them apart: an undo must not mix two histories.
            if has_any(&transaction, new)? {
                continue;
            }
            while let Some((was, is)) = Self::move_some(&transaction, &self.key, (old, new))? {
                less += was;
                more += is;
            }
            Undoing::rename(&transaction, (old, new))?;
        }
        transaction.execute("DELETE FROM name WHERE at < ?1", [terms.old])?;
        for (_, new) in &names.renamed {
            // The new name may itself be renamed later.
            transaction.prepare_cached("DELETE FROM name WHERE old = ?1")?.execute([new])?;
        }
        for Alias { old, new, .. } in &names.aliases {
            let sql = "INSERT OR REPLACE INTO name VALUES (?1, ?2, ?3)";
            transaction.prepare_cached(sql)?.execute((old, new, terms.now))?;
        }
        transaction.commit()?;
        self.total = (self.total + more).saturating_sub(less);
        Ok(())
    }

    /// Moves some of the entries and returns their weight before and after; `None` if there are none left. An
    /// unreadable entry moves unchanged, so that it blocks an undo under the new name too.
    fn move_some(
        transaction: &Transaction<'_>,
        key: &steadfast_resources::StateKey,
        (old, new): (&str, &str),
    ) -> Result<Option<(u64, u64)>, Fault> {
        let sql = format!("SELECT {COLUMNS}, weight FROM entry WHERE resource = ?1 LIMIT ?2");
        let mut select = transaction.prepare_cached(&sql)?;
        let mut rows = select.query((old, AT_ONCE))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let (number, weight): (u64, u64) = (row.get("number")?, row.get("weight")?);
            found.push((number, weight, Stored::read(row, key)?));
        }
        drop(rows);
        let (mut less, mut more) = (0, 0);
        for (number, weight, stored) in &found {
            less += weight;
            if let Some(stored) = stored {
                let stored = Stored { resource: new.to_owned(), ..stored.clone() };
                stored.rename(transaction, key)?;
                more += stored.weight();
            } else {
                let sql = "UPDATE entry SET resource = ?2 WHERE number = ?1";
                transaction.prepare_cached(sql)?.execute((number, new))?;
                more += weight;
            }
        }
        Ok((!found.is_empty()).then_some((less, more)))
    }
}

/// The names of the last loaded graphs, until they are written.
#[derive(Clone, Debug, Default)]
pub(super) struct Said(Arc<Mutex<Option<Names>>>);

impl Said {
    fn note(&self, names: Names) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *said = Some(said.take().unwrap_or_default().then(names));
    }

    /// Takes the names to write.
    pub(super) fn take(&self) -> Option<Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns names that could not be written.
    pub(super) fn give_back(&self, names: Names) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *said = Some(match said.take() {
            Some(later) => names.then(later),
            None => names,
        });
    }

    fn get(&self) -> Option<Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl History {
    /// Moves entries to new names, after all entries handed in so far. Returns at once; the move is done at the latest
    /// when the history is closed.
    pub fn rename(&self, names: Names) {
        if self.limits.get().total > 0 && database(&self.state_directory).exists() {
            self.said.note(names);
            self.nudge();
        }
    }

    /// Returns true if the database must be opened to move entries.
    pub(super) fn has_to_rename(&self) -> bool {
        let Some(names) = self.said.get().filter(|names| !names.is_nothing()) else { return false };
        match Reader::open(&self.state_directory) {
            Ok(Some(reader)) => {
                let terms = Terms::new((self.clock)(), self.limits.get().age);
                !is_done(&reader.connection, &names, terms).unwrap_or_default()
            }
            Ok(None) => false,
            Err(error) => {
                tracing::debug!(%error, "records under former names are moved at a later start");
                false
            }
        }
    }
}

impl Reader {
    /// Returns the present name of a resource with a former name.
    #[must_use]
    pub fn called_now(&self, old: &str) -> Option<String> {
        let sql = "SELECT new FROM name WHERE old = ?1";
        // Histories with an older schema have no table of names.
        let found = self
            .connection
            .prepare(sql)
            .and_then(|mut select| select.query_row([old], |row| row.get(0)).optional());
        found.unwrap_or_default()
    }
}
