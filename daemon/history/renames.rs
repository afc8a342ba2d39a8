//! Who is called otherwise now: what is kept under a former name moves to the new one, once (B-18).
//!
//! The state moves what it keeps by itself, in a database of its own: whoever is killed in between has one of both. So a graph says all its
//! former names whenever it is taken, and which of them were followed already stands here.

use super::database::{Book, milliseconds};
use super::entry::{COLUMNS, Stored};
use super::undo_log::Undoing;
use super::{History, Reader, database};
use crate::store::database::Fault;
use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// So many entries are read at once.
const AT_ONCE: usize = 1000;

/// A former name, as a graph says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// How it was called.
    pub old: Arc<str>,
    /// How it is called now.
    pub new: Arc<str>,
    /// The state knows nothing of the old name: what is kept under it here can be of nobody else.
    pub is_gone: bool,
}

/// What a graph says of names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Who was called otherwise until now, and how he is called: in this order.
    pub renamed: Vec<(Arc<str>, Arc<str>)>,
    /// All former names that stand in the graph.
    pub aliases: Vec<Alias>,
}

impl Names {
    /// With what a later graph says.
    fn then(mut self, later: Self) -> Self {
        self.renamed.extend(later.renamed);
        Self { aliases: later.aliases, ..self }
    }

    fn is_nothing(&self) -> bool {
        self.renamed.is_empty() && self.aliases.is_empty()
    }

    /// Whose entries move, by what was followed before.
    fn moves(&self, before: &Followed) -> Vec<(&str, &str)> {
        let now = self.renamed.iter().map(|(old, new)| (old.as_ref(), new.as_ref()));
        let lost = self.aliases.iter().filter(|one| one.is_gone && !before.has(one));
        now.chain(lost.map(|one| (one.old.as_ref(), one.new.as_ref()))).collect()
    }
}

/// Former names, with what each was found to be called, and when a graph has said so last: milliseconds since 1970.
struct Followed(BTreeMap<String, (String, u64)>);

impl Followed {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut select = connection.prepare("SELECT old, new, at FROM name")?;
        let rows = select.query_map((), |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        Ok(Self(rows.collect::<rusqlite::Result<_>>()?))
    }

    /// Whether a former name was followed already: what is kept under it since is of somebody else.
    fn has(&self, alias: &Alias) -> bool {
        self.0.get(alias.old.as_ref()).is_some_and(|(new, _)| **new == *alias.new)
    }

    /// Whether it need not be said once more.
    fn is_fresh(&self, alias: &Alias, since: u64) -> bool {
        let found = self.0.get(alias.old.as_ref());
        found.is_some_and(|(new, at)| **new == *alias.new && *at >= since)
    }
}

/// When names are to be said once more, and when they are forgotten.
#[derive(Clone, Copy)]
struct Terms {
    now: u64,
    fresh: u64,
    old: u64,
}

impl Terms {
    /// A name is known as long as what it was moved for can be kept.
    fn new(now: Duration, age: Duration) -> Self {
        let before = |span| milliseconds(now.saturating_sub(span));
        Self { now: milliseconds(now), fresh: before(age / 2), old: before(age) }
    }
}

fn has_any(connection: &Connection, resource: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM entry WHERE resource = ?1")?.exists([resource])
}

/// Whether nothing would be written.
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
    /// Moves what is to be moved, and notes what was followed; durable when it returns. Nothing is written where that is so already.
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
            // What has a past of its own keeps it to itself: two would be undone as one.
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
            // Whoever is called so now may be renamed once more.
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

    /// Moves some of the entries; answers what they weighed and weigh, none where there is none left. One that cannot be read
    /// moves as it is: nothing is put back over it under the new name either.
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

/// What a graph has said of names, until it is written.
#[derive(Clone, Debug, Default)]
pub(super) struct Said(Arc<Mutex<Option<Names>>>);

impl Said {
    fn note(&self, names: Names) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *said = Some(said.take().unwrap_or_default().then(names));
    }

    /// To be written now.
    pub(super) fn take(&self) -> Option<Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// It could not be written.
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
    /// What is kept under former names moves, after all that runs have handed in until now. Waits for nothing; it is done when this
    /// is closed, at the latest.
    pub fn rename(&self, names: Names) {
        if self.limits.get().total > 0 && database(&self.state_directory).exists() {
            self.said.note(names);
            self.nudge();
        }
    }

    /// Whether it must be opened for what was said of names.
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
    /// How a resource is called now that was called so before.
    #[must_use]
    pub fn called_now(&self, old: &str) -> Option<String> {
        let sql = "SELECT new FROM name WHERE old = ?1";
        // A history of before names were followed has no such table.
        let found = self
            .connection
            .prepare(sql)
            .and_then(|mut select| select.query_row([old], |row| row.get(0)).optional());
        found.unwrap_or_default()
    }
}
