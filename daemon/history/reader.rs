//! The history for those who look: beside a writer too, without a lock.

use super::database::SCHEMA;
use super::entry::{COLUMNS, Stored, content_seal};
use super::undo_log::Undoing;
use super::{HistoryError, compression, database};
use crate::store::database::Fault;
use crate::store::{SqliteStore, regular_file};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steadfast_resources::{
    KeyedHash, NotRecorded, PriorContent, PriorShape, PriorState, StateKey, printable,
};

/// One change: when, why, of what, and what was there before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number. A later change has a higher one.
    pub number: u64,
    /// The number of the first change of the run that made it.
    pub run: u64,
    /// `kind[name]`.
    pub resource: String,
    /// Where.
    pub path: PathBuf,
    /// Milliseconds since 1970.
    pub at: u64,
    /// Why there was a run.
    pub cause: String,
    /// What changed.
    pub what: String,
    /// What was there before, without its content.
    pub former: PriorState,
    content: Option<KeyedHash>,
}

impl From<Stored> for Entry {
    fn from(stored: Stored) -> Self {
        let Stored { number, run, resource, path, at, cause, what, former, content } = stored;
        Self { number, run, resource, path, at, cause, what, former, content }
    }
}

impl Entry {
    /// How many bytes the file had, where it was one.
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

    /// Why the content of the file is not in it, where it is not.
    #[must_use]
    pub const fn unkept(&self) -> Option<NotRecorded> {
        match &self.former {
            PriorState::Thing(thing) => match thing.shape {
                PriorShape::File(_, PriorContent::Unkept(why)) => Some(why),
                _ => None,
            },
            PriorState::Nothing => None,
        }
    }
}

/// One line of a list of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// What is kept of one.
    Entry(Box<Entry>),
    /// The number of one that is not what was written: it is damaged, or was kept with another key.
    Unreadable(u64),
}

impl Listed {
    /// What is kept, where it can be read.
    #[must_use]
    pub fn entry(self) -> Option<Entry> {
        match self {
            Self::Entry(entry) => Some(*entry),
            Self::Unreadable(_) => None,
        }
    }
}

/// What is to be undone.
#[derive(Clone, Debug)]
pub struct Undo {
    /// `kind[name]`.
    pub resource: String,
    /// Before this change of its history, and all later ones; else before the last run that changed anything.
    pub to: Option<u64>,
    /// Also where not all of it can be put back.
    pub partial: bool,
}

/// What an undo would do.
#[derive(Clone, Debug)]
pub struct Undoable {
    /// What was at each path, in the order in which it is put back.
    pub steps: Vec<(PathBuf, PriorState)>,
    /// What cannot be put back: each path, and why.
    pub left: Vec<String>,
    /// It is one that was cut off, and is done once more.
    pub again: bool,
    /// The run of it that was cut off, if that has changed anything; else 0.
    pub(crate) run: u64,
    /// What is noted of it while it goes on.
    pub(crate) undoing: Undoing,
}

/// The history of a state directory.
#[derive(Debug)]
pub struct Reader {
    pub(super) connection: Connection,
    key: StateKey,
    path: PathBuf,
    /// It is of a schema that knows of undos that are under way.
    pub(super) knows_undoing: bool,
}

impl Reader {
    /// Opens it; none where nothing has been kept.
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
                Ok(Some(Self { connection, key, path, knows_undoing }))
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

    /// The last changes, the oldest first: of one resource, or of all; at most so many. One that cannot be read is told as that.
    pub fn entries(&self, resource: Option<&str>, most: u64) -> Result<Vec<Listed>, HistoryError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM entry WHERE ?1 IS NULL OR resource = ?1
             ORDER BY number DESC LIMIT ?2"
        );
        let mut found = self.list(&sql, params![resource, most])?;
        found.reverse();
        Ok(found)
    }

    /// The changes of the last runs, so many of them.
    pub fn last_runs(&self, most: u64) -> Result<Vec<Listed>, HistoryError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM entry
             WHERE run IN (SELECT run FROM entry GROUP BY run ORDER BY max(number) DESC LIMIT ?1)"
        );
        self.list(&sql, params![most])
    }

    /// The last change of a resource.
    pub fn last_change(&self, resource: &str) -> Result<Entry, HistoryError> {
        let sql =
            format!("SELECT {COLUMNS} FROM entry WHERE resource = ?1 ORDER BY number DESC LIMIT 1");
        self.read(&sql, params![resource])?.pop().ok_or_else(|| {
            let now = self.called_now(resource).map(|new| format!("; renamed to {new}"));
            let now = now.unwrap_or_default();
            HistoryError::Unknown(format!("no recorded changes of {resource}{now}"))
        })
    }

    /// One change of a resource.
    pub fn entry(&self, resource: &str, number: u64) -> Result<Entry, HistoryError> {
        let sql = format!("SELECT {COLUMNS} FROM entry WHERE resource = ?1 AND number = ?2");
        self.read(&sql, params![resource, number])?.pop().ok_or_else(|| {
            HistoryError::Unknown(format!("the history of {resource} has no number {number}"))
        })
    }

    /// What was there before a change, content included.
    pub fn former(&self, entry: &Entry) -> Result<PriorState, HistoryError> {
        let later = self.later(&entry.resource, entry.number)?;
        let own = later.iter().filter(|one| one.path == entry.path);
        let own: Vec<&Entry> = own.collect();
        self.before(&own)
    }

    /// What was there before the last run that changed a resource, or before a change of it and all later ones: in the order in
    /// which it is put back. Where nothing is said, one that was cut off is done once more. Where something of it is not kept, nothing of it can be put back, unless only the rest is asked for.
    pub fn undo(&self, undo: &Undo) -> Result<Undoable, HistoryError> {
        let resource = undo.resource.as_str();
        self.is_sound()?;
        let (from, partial, again) = self.asked(undo)?;
        let later = self.later(resource, from)?;
        let mut paths: BTreeMap<&Path, Vec<&Entry>> = BTreeMap::new();
        for entry in &later {
            paths.entry(&entry.path).or_default().push(entry);
        }
        let (mut gone, mut directories, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut unrestorable = Vec::new();
        for (path, entries) in paths {
            let former = self.before(&entries)?;
            if let Some(why) = why_not(&former, &entries) {
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
            to.push((path.to_owned(), former));
        }
        // A thing that comes back had its directory: that one stays, although it was made again since.
        let is_needed = |path: &Path| {
            let mut back = directories.iter().chain(&others);
            back.any(|(other, _): &(PathBuf, PriorState)| other != path && other.starts_with(path))
        };
        gone.retain(|(path, _)| !is_needed(path));
        // What is below goes first; what is above comes first.
        gone.reverse();
        let steps: Vec<_> = gone.into_iter().chain(directories).chain(others).collect();
        if !unrestorable.is_empty() && (steps.is_empty() || !partial) {
            return Err(HistoryError::Unrestorable(unrestorable));
        }
        let undoing = self.undoing(undo, (from, partial))?;
        let run = if again { self.half(&undoing)? } else { 0 };
        Ok(Undoable { steps, left: unrestorable, again, run, undoing })
    }

    /// An index that has lost a row would put back less than was asked for.
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

    /// All changes of a resource from a number on.
    fn later(&self, resource: &str, from: u64) -> Result<Vec<Entry>, HistoryError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM entry WHERE resource = ?1 AND number >= ?2 ORDER BY number"
        );
        self.read(&sql, params![resource, from])
    }

    /// What was there before the first of these changes of one path, which are in order. What the first one left as it was is with
    /// the next that did not.
    fn before(&self, entries: &[&Entry]) -> Result<PriorState, HistoryError> {
        let Some(first) = entries.first() else { return Ok(PriorState::Nothing) };
        let mut former = first.former.clone();
        let PriorState::Thing(thing) = &mut former else { return Ok(former) };
        let PriorShape::File(_, content) = &mut thing.shape else { return Ok(former) };
        let holder = entries.iter().find(|entry| entry.unkept() != Some(NotRecorded::Same));
        match holder {
            // Nobody of us has changed it since.
            None => {}
            Some(holder) => {
                let PriorState::Thing(held) = &holder.former else {
                    *content = PriorContent::Unkept(NotRecorded::Unreadable);
                    return Ok(former);
                };
                match (&held.shape, &holder.content) {
                    (PriorShape::File(_, PriorContent::Unkept(why)), _) => {
                        *content = PriorContent::Unkept(*why);
                    }
                    (PriorShape::File(..), Some(seal)) => {
                        *content = PriorContent::Bytes(self.content(seal)?);
                        if *holder != *first {
                            thing.extended.clone_from(&held.extended);
                        }
                    }
                    _ => *content = PriorContent::Unkept(NotRecorded::Unreadable),
                }
            }
        }
        Ok(former)
    }

    fn content(&self, seal: &KeyedHash) -> Result<Vec<u8>, HistoryError> {
        let sql = "SELECT size, packed FROM content WHERE seal = ?1";
        let found: Option<(u64, Vec<u8>)> = self
            .connection
            .query_row(sql, [seal.to_hex()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(|error| self.refuse(&error))?;
        let bytes = found.and_then(|(size, packed)| compression::unpack(&packed, size));
        let bytes = bytes.filter(|bytes| content_seal(&self.key, bytes) == *seal);
        bytes.ok_or_else(|| self.refuse(&"a stored content is damaged and cannot be restored"))
    }

    /// All of them, or none where one cannot be read: something else would be put back than was asked for.
    fn read(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Entry>, HistoryError> {
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

/// Why an entry cannot be read.
pub const UNREADABLE: &str = "damaged, or written with another values.key";

/// Why a state cannot be put back, if it cannot.
fn why_not(former: &PriorState, entries: &[&Entry]) -> Option<String> {
    let PriorState::Thing(thing) = former else { return None };
    let why = match thing.shape {
        PriorShape::Other => "it was a socket, fifo or device",
        PriorShape::File(_, PriorContent::Unkept(NotRecorded::Same)) => return None,
        PriorShape::File(_, PriorContent::Unkept(why)) => unkept(why),
        PriorShape::File(_, PriorContent::Bytes(_))
        | PriorShape::Directory
        | PriorShape::Link(_) => return None,
    };
    let number = entries.first().map_or(0, |first| first.number);
    Some(format!("{why} (change {number})"))
}

/// In words.
#[must_use]
pub fn unkept(why: NotRecorded) -> &'static str {
    match why {
        NotRecorded::Same => "the content was unchanged",
        NotRecorded::Secret => "the content was not recorded: sensitive, or not readable by others",
        NotRecorded::Large => {
            "the content was not recorded: too large for the history or its free space"
        }
        NotRecorded::Unreadable => "the content was not recorded: unreadable",
    }
}
