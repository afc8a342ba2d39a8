//! The read-only side of the history: it works beside a writer, without a lock.

use super::database::SCHEMA;
use super::entry::{Stored, columns, has_content_seal};
use super::undo_limits::{lost_bits, why_not};
use super::undo_log::Undoing;
use super::{HistoryError, PRODUCED, database};
use crate::store::database::Fault;
use crate::store::{SqliteStore, regular_file};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steadfast_resources::{
    After, EDITED_TOGETHER, FormerValue, KeyedHash, NotRecorded, PriorContent, PriorEdit,
    PriorShape, PriorState, StateKey, printable,
};

/// One change of a path or of values, with its prior state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number of the entry. A later change has a higher number.
    pub number: u64,
    /// The number of the first entry of the same run.
    pub run: u64,
    /// `kind[name]`.
    pub resource: String,
    /// The path that changed; empty for a resource without a path.
    pub path: PathBuf,
    /// The time of the change, in milliseconds since 1970.
    pub at: u64,
    /// The cause of the run.
    pub cause: String,
    /// A description of the change.
    pub what: String,
    /// The prior state, without the content of a file.
    pub former: PriorState,
    /// The values before and after, for a resource without a path; `former` is nothing then.
    pub values: Vec<FormerValue>,
    pub(super) content: Option<KeyedHash>,
    pub(super) edited: Option<KeyedHash>,
}

impl From<Stored> for Entry {
    fn from(stored: Stored) -> Self {
        let Stored {
            number,
            run,
            resource,
            path,
            at,
            cause,
            what,
            former,
            values,
            content,
            edited,
        } = stored;
        Self { number, run, resource, path, at, cause, what, former, values, content, edited }
    }
}

impl Entry {
    /// Returns the size of the former file in bytes; `None` if there was no file.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match &self.former {
            PriorState::Thing(thing) => match thing.shape {
                PriorShape::File(size, _) => Some(size),
                _ => None,
            },
            PriorState::Nothing => None,
        }
    }

    /// Returns the reason why the content of the former file was not recorded, if it was not.
    #[must_use]
    pub const fn missing_content(&self) -> Option<NotRecorded> {
        match &self.former {
            PriorState::Thing(thing) => match thing.shape {
                PriorShape::File(_, PriorContent::NotRecorded(why)) => Some(why),
                _ => None,
            },
            PriorState::Nothing => None,
        }
    }
}

/// One line of a list of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// A readable entry.
    Entry(Box<Entry>),
    /// The number of an entry that is damaged, or that was sealed with another key.
    Unreadable(u64),
}

impl Listed {
    /// Returns the entry if it is readable.
    #[must_use]
    pub fn entry(self) -> Option<Entry> {
        match self {
            Self::Entry(entry) => Some(*entry),
            Self::Unreadable(_) => None,
        }
    }
}

/// A request for an undo.
#[derive(Clone, Debug)]
pub struct Undo {
    /// `kind[name]`.
    pub resource: String,
    /// The number of a change: this change and all later ones of the resource are undone. `None` means the last run
    /// that changed the resource.
    pub to: Option<u64>,
    /// True if the undo continues although some of the state cannot be restored.
    pub partial: bool,
}

/// The restoration of one path.
#[derive(Clone, Debug)]
pub struct UndoStep {
    /// The path.
    pub path: PathBuf,
    /// The state before the first change that is undone.
    pub former: PriorState,
    /// The edits of a text file from the last one to the first one, if all changes are edits. The undo reverses these
    /// and leaves the lines of others.
    pub edits: Vec<PriorEdit>,
}

/// The work of an undo.
#[derive(Clone, Debug)]
pub struct Undoable {
    /// The prior state of each path, in the order of restoring.
    pub steps: Vec<UndoStep>,
    /// The paths that cannot be restored, each with the reason.
    pub left: Vec<String>,
    /// For a resource without a path: the values to restore, from the first change that is undone.
    pub values: Vec<FormerValue>,
    /// True if the undo completes an interrupted one.
    pub again: bool,
    /// The run of the interrupted undo; 0 if that undo changed nothing.
    pub(crate) run: u64,
    /// The record of this undo in the undo log.
    pub(crate) undoing: Undoing,
}

impl Undoable {
    /// Returns the number of the first change that is undone.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.undoing.first
    }
}

/// The history of a state directory, open for reading.
#[derive(Debug)]
pub struct Reader {
    pub(super) connection: Connection,
    pub(super) key: StateKey,
    path: PathBuf,
    /// True if the schema has the table of undos in progress.
    pub(super) knows_undoing: bool,
    /// The columns of an entry in the schema of the file.
    pub(super) columns: String,
}

impl Reader {
    /// Opens the history; returns `None` if there is none.
    ///
    /// # Errors
    /// [`HistoryError`] if the database or its key cannot be read, or if a newer program wrote the database.
    pub fn open(state_directory: &Path) -> Result<Option<Self>, HistoryError> {
        let path = database(state_directory);
        let refuse = |why: String| HistoryError::Database { path: path.display().to_string(), why };
        if !regular_file::is_there(&path).map_err(|fault| refuse(fault.to_string()))? {
            return Ok(None);
        }
        let Some(key) = SqliteStore::peek_key(state_directory) else {
            return Err(refuse("the key file is missing".to_owned()));
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connect = || -> rusqlite::Result<(Connection, i64)> {
            let connection = Connection::open_with_flags(&path, flags)?;
            connection.busy_timeout(Duration::from_secs(2))?;
            let version = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
            Ok((connection, version))
        };
        let (connection, version) = connect().map_err(|error| refuse(error.to_string()))?;
        match version {
            0 => Ok(None),
            1..=SCHEMA => {
                let (key, knows_undoing) = (StateKey::new(key.0), version >= 3);
                let columns = columns(version);
                Ok(Some(Self { connection, key, path, knows_undoing, columns }))
            }
            version => {
                let newer = Fault::Newer { version, known: SCHEMA };
                Err(HistoryError::Newer {
                    path: path.display().to_string(),
                    why: newer.to_string(),
                })
            }
        }
    }

    /// Returns the last changes, at most `most`, the oldest first, of one resource or of all. Unreadable entries are
    /// listed as such.
    ///
    /// # Errors
    /// [`HistoryError`] if the database cannot be read.
    pub fn entries(&self, resource: Option<&str>, most: u64) -> Result<Vec<Listed>, HistoryError> {
        let columns = &self.columns;
        let sql = format!(
            "SELECT {columns} FROM entry WHERE ?1 IS NULL OR resource = ?1
             ORDER BY number DESC LIMIT ?2"
        );
        let mut found = self.list(&sql, params![resource, most])?;
        found.reverse();
        Ok(found)
    }

    /// Returns the changes of the last `most` runs.
    ///
    /// # Errors
    /// [`HistoryError`] if the database cannot be read.
    pub fn last_runs(&self, most: u64) -> Result<Vec<Listed>, HistoryError> {
        let columns = &self.columns;
        let sql = format!(
            "SELECT {columns} FROM entry
             WHERE run IN (SELECT run FROM entry GROUP BY run ORDER BY max(number) DESC LIMIT ?1)"
        );
        self.list(&sql, params![most])
    }

    /// Returns the last change of a resource.
    ///
    /// # Errors
    /// [`HistoryError::Unknown`] if the resource has no entry; another [`HistoryError`] if the entry is unreadable.
    pub fn last_change(&self, resource: &str) -> Result<Entry, HistoryError> {
        let columns = &self.columns;
        let sql =
            format!("SELECT {columns} FROM entry WHERE resource = ?1 ORDER BY number DESC LIMIT 1");
        self.read(&sql, params![resource])?.pop().ok_or_else(|| {
            let now = self.called_now(resource).map(|new| format!("; renamed to {new}"));
            let now = now.unwrap_or_default();
            HistoryError::Unknown(format!("no recorded changes of {resource}{now}"))
        })
    }

    /// Returns one change of a resource.
    ///
    /// # Errors
    /// [`HistoryError::Unknown`] if there is no such entry; another [`HistoryError`] if the entry is unreadable.
    pub fn entry(&self, resource: &str, number: u64) -> Result<Entry, HistoryError> {
        let columns = &self.columns;
        let sql = format!("SELECT {columns} FROM entry WHERE resource = ?1 AND number = ?2");
        self.read(&sql, params![resource, number])?.pop().ok_or_else(|| {
            HistoryError::Unknown(format!("the history of {resource} has no number {number}"))
        })
    }

    /// Returns the prior state of a change, content included.
    ///
    /// # Errors
    /// [`HistoryError`] if an entry or the content is unreadable.
    pub fn former(&self, entry: &Entry) -> Result<PriorState, HistoryError> {
        let later = self.later(&entry.resource, entry.number)?;
        let own = later.iter().filter(|one| one.path == entry.path);
        let own: Vec<&Entry> = own.collect();
        Ok(self.before(&own)?.0)
    }

    /// Plans an undo: the prior state of each path before the last run that changed the resource, or before a given
    /// change. Without a given change, an interrupted undo is completed.
    ///
    /// # Errors
    /// [`HistoryError::Unrestorable`] if some of the state cannot be restored and the request is not partial;
    /// [`HistoryError`] if the history is unknown or damaged.
    pub fn undo(&self, undo: &Undo) -> Result<Undoable, HistoryError> {
        let resource = undo.resource.as_str();
        self.is_sound()?;
        let (from, partial, again) = self.asked(undo)?;
        let later = self.later(resource, from)?;
        let produced = later.iter().find(|entry| entry.what == PRODUCED).cloned();
        let later: Vec<Entry> = later.into_iter().filter(|entry| entry.what != PRODUCED).collect();
        if let Some(entry) = produced.filter(|_| later.is_empty()) {
            let together = entry.values.iter().find(|value| value.field == EDITED_TOGETHER);
            let why = match together.map(|value| &value.after) {
                Some(After::Value(text)) => {
                    format!("the change has its entry under another resource: {text}")
                }
                _ => "the run of a command cannot be undone".to_owned(),
            };
            return Err(HistoryError::Unrestorable(vec![format!("{resource}: {why}")]));
        }
        let (of_values, later): (Vec<Entry>, Vec<Entry>) =
            later.into_iter().partition(|entry| !entry.values.is_empty());
        let values = earliest_values(of_values);
        let mut paths: BTreeMap<&Path, Vec<&Entry>> = BTreeMap::new();
        for entry in &later {
            paths.entry(&entry.path).or_default().push(entry);
        }
        let (mut gone, mut directories, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let (mut unrestorable, mut left) = (Vec::new(), Vec::new());
        for (path, entries) in paths {
            let (former, withheld) = self.before(&entries)?;
            let why = why_not(&former, &entries);
            if let Some(why) = why.or(self.secret_since(&former, (resource, &entries))?) {
                unrestorable.push(format!("{}: {why}", printable(&path.to_string_lossy())));
                continue;
            }
            let to = match &former {
                PriorState::Nothing => &mut gone,
                PriorState::Thing(thing) if thing.shape == PriorShape::Directory => {
                    &mut directories
                }
                PriorState::Thing(_) => &mut others,
            };
            if withheld != 0 {
                let why = "its content was recorded after the file had lost them";
                let name = path.to_string_lossy();
                left.push(format!("the set-id bits of {}: {why}", printable(&name)));
            }
            to.push(UndoStep { path: path.to_owned(), former, edits: self.edits(&entries)? });
        }
        // The directory of a restored object stays, even if it was created again since.
        let is_needed = |path: &Path| {
            let mut back = directories.iter().chain(&others);
            back.any(|other: &UndoStep| other.path != path && other.path.starts_with(path))
        };
        gone.retain(|step| !is_needed(&step.path));
        // Entries of a directory are removed before the directory; a directory is restored before its entries.
        gone.reverse();
        let steps: Vec<_> = gone.into_iter().chain(directories).chain(others).collect();
        if !unrestorable.is_empty() && (steps.is_empty() || !partial) {
            return Err(HistoryError::Unrestorable(unrestorable));
        }
        let undoing = self.undoing(undo, (from, partial))?;
        let run = if again { self.half(&undoing)? } else { 0 };
        left.extend(unrestorable);
        Ok(Undoable { steps, left, values, again, run, undoing })
    }

    /// Checks the database: an index with a missing row would restore less than requested.
    fn is_sound(&self) -> Result<(), HistoryError> {
        let refuse =
            |why: String| HistoryError::Database { path: self.path.display().to_string(), why };
        let asked = "PRAGMA integrity_check(1)";
        let said: rusqlite::Result<String> = self.connection.query_row(asked, (), |row| row.get(0));
        match said {
            Ok(said) if said == "ok" => Ok(()),
            Ok(said) => Err(refuse(said)),
            Err(error) => Err(refuse(error.to_string())),
        }
    }

    /// Returns all changes of a resource from a number on.
    fn later(&self, resource: &str, from: u64) -> Result<Vec<Entry>, HistoryError> {
        let columns = &self.columns;
        let sql = format!(
            "SELECT {columns} FROM entry WHERE resource = ?1 AND number >= ?2 ORDER BY number"
        );
        self.read(&sql, params![resource, from])
    }

    /// Returns the prior state before the first of these changes of one path, which are in order. If the first change
    /// left the content unchanged, the content comes from the next change that replaced the content. Another user can
    /// have written it since the file lost its set-id bits: these do not come back with it, and are returned.
    fn before(&self, entries: &[&Entry]) -> Result<(PriorState, u32), HistoryError> {
        let Some(first) = entries.first() else { return Ok((PriorState::Nothing, 0)) };
        let (mut former, mut withheld) = (first.former.clone(), 0);
        let PriorState::Thing(thing) = &mut former else { return Ok((former, 0)) };
        let PriorShape::File(_, content) = &mut thing.shape else { return Ok((former, 0)) };
        let holder =
            entries.iter().find(|entry| entry.missing_content() != Some(NotRecorded::Same));
        match holder {
            // No later run has replaced the content.
            None => {}
            Some(holder) => {
                let PriorState::Thing(held) = &holder.former else {
                    *content = PriorContent::NotRecorded(NotRecorded::Unreadable);
                    return Ok((former, 0));
                };
                match (&held.shape, &holder.content) {
                    (PriorShape::File(_, PriorContent::NotRecorded(why)), _) => {
                        *content = PriorContent::NotRecorded(*why);
                    }
                    (PriorShape::File(..), Some(seal)) => {
                        *content = PriorContent::Bytes(self.content(seal)?);
                        thing.enclosure = held.enclosure.or(thing.enclosure);
                        if *holder != *first {
                            thing.extended.clone_from(&held.extended);
                            withheld = lost_bits(thing, held);
                            thing.mode &= !withheld;
                        }
                    }
                    _ => *content = PriorContent::NotRecorded(NotRecorded::Unreadable),
                }
            }
        }
        Ok((former, withheld))
    }

    pub(super) fn content(&self, seal: &KeyedHash) -> Result<Vec<u8>, HistoryError> {
        let sql = "SELECT size, packed FROM content WHERE seal = ?1";
        let found: Option<(u64, Vec<u8>)> = self
            .connection
            .query_row(sql, [seal.to_hex()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(|error| self.refuse(&error))?;
        let bytes = found.and_then(|(size, packed)| crate::compression::unpack(&packed, size));
        let bytes = bytes.filter(|bytes| has_content_seal(&self.key, bytes, seal));
        bytes.ok_or_else(|| self.refuse(&"a stored content is damaged and cannot be restored"))
    }

    /// Reads all entries of a query; fails if one is unreadable, because the undo would be incomplete.
    pub(super) fn read(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<Entry>, HistoryError> {
        let whole = |listed| match listed {
            Listed::Entry(entry) => Ok(*entry),
            Listed::Unreadable(number) => Err(self.refuse(&format!(
                "change {number} cannot be read ({UNREADABLE}) and cannot be restored"
            ))),
        };
        self.list(sql, params)?.into_iter().map(whole).collect()
    }

    fn list(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Listed>, HistoryError> {
        let read = || -> rusqlite::Result<Vec<Listed>> {
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query(params)?;
            let mut listed = Vec::new();
            while let Some(row) = rows.next()? {
                listed.push(match Stored::read(row, &self.key)? {
                    Some(stored) => Listed::Entry(Box::new(stored.into())),
                    None => Listed::Unreadable(row.get("number")?),
                });
            }
            Ok(listed)
        };
        read().map_err(|error| self.refuse(&error))
    }

    pub(super) fn refuse(&self, why: &dyn ToString) -> HistoryError {
        HistoryError::Database { path: self.path.display().to_string(), why: why.to_string() }
    }
}

/// The description of an unreadable entry.
pub const UNREADABLE: &str = "damaged, or written with another values.key";

/// Returns each value as it was before the first change of it.
fn earliest_values(entries: Vec<Entry>) -> Vec<FormerValue> {
    let mut earliest: Vec<FormerValue> = Vec::new();
    for value in entries.into_iter().flat_map(|entry| entry.values) {
        if !earliest.iter().any(|known| known.field == value.field) {
            earliest.push(value);
        }
    }
    earliest
}
