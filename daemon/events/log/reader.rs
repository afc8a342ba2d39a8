//! Reading the event log, beside whoever writes it.

use super::super::event::{Event, Level, NewEvent, what};
use super::{DATABASE, rows};
use crate::store::database::{Fault, unused};
use crate::store::regular_file;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use std::path::Path;
use std::time::Duration;

/// One who reads. It changes nothing.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
}

/// Which events are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only those from this number on.
    pub from: Option<u64>,
    /// Only those from this time on, in milliseconds since 1970.
    pub since: Option<u64>,
    /// Only those of this resource.
    pub resource: Option<String>,
    /// Only the last ones, so many.
    pub most: Option<usize>,
}

/// How far a recorder has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The last event that was recorded, with all before it.
    pub number: u64,
    /// Batches that were begun and not confirmed: first and last number of each.
    pub begun: Vec<(u64, u64)>,
}

/// Why the log cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the event log cannot be read: {0}")]
pub struct Unreadable(String);

impl Unreadable {
    /// For this reason.
    pub(crate) fn other(why: String) -> Self {
        Self(why)
    }
}

impl From<Fault> for Unreadable {
    fn from(fault: Fault) -> Self {
        Self(fault.to_string())
    }
}

impl From<rusqlite::Error> for Unreadable {
    fn from(error: rusqlite::Error) -> Self {
        Fault::from(error).into()
    }
}

impl Reader {
    /// Opens the log of a state directory; none where there is none.
    pub fn open(state_directory: &Path) -> Result<Option<Self>, Unreadable> {
        let path = state_directory.join(DATABASE);
        if !regular_file::is_there(&path)? {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = |name: &Path, flags| {
            let connection = Connection::open_with_flags(name, flags)?;
            connection.busy_timeout(Duration::from_secs(2))?;
            let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
            Ok::<_, rusqlite::Error>((connection, version))
        };
        // A reader of a log in use must write into the file that readers and writers share; one who only looks may not.
        let beside = open(&path, flags);
        let (connection, version) = match (beside, unused(&path)) {
            (Ok(opened), _) => opened,
            (Err(_), Some(name)) => open(&name, flags | OpenFlags::SQLITE_OPEN_URI)?,
            (Err(error), None) => return Err(error.into()),
        };
        match version {
            // Its tables are being made this moment.
            0 => Ok(None),
            rows::SCHEMA => Ok(Some(Self { connection })),
            newer => Err(Unreadable(format!("made by another steadfast version (schema {newer})"))),
        }
    }

    /// When it was begun, in milliseconds since 1970: tells it from a log that was begun anew.
    pub fn born(&self) -> Result<u64, Unreadable> {
        let born: i64 = self.connection.query_row("SELECT born FROM log", (), |row| row.get(0))?;
        Ok(born.cast_unsigned())
    }

    /// The numbers of the first and the last event.
    pub fn span(&self) -> Result<Option<(u64, u64)>, Unreadable> {
        let sql = "SELECT min(number), max(number) FROM event";
        let found: (Option<i64>, Option<i64>) =
            self.connection.query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(found.0.zip(found.1).map(|(a, b)| (a.cast_unsigned(), b.cast_unsigned())))
    }

    /// At which number to begin for what is wanted.
    pub fn begin(&self, wanted: &Wanted) -> Result<u64, Unreadable> {
        let mut from = wanted.from.unwrap_or_default();
        // Where none is wanted of what was, what is to come is.
        let next = || self.span().map(|span| span.map_or(0, |(_, last)| last + 1));
        let or_next =
            |first: Option<i64>| first.map_or_else(next, |number| Ok(number.cast_unsigned()));
        if let Some(since) = wanted.since {
            let sql = "SELECT number FROM event WHERE at >= ?1 ORDER BY number LIMIT 1";
            let first = self.connection.query_row(sql, [since.cast_signed()], |row| row.get(0));
            from = from.max(or_next(first.optional()?)?);
        }
        if let Some(most) = wanted.most {
            let sql = "SELECT min(number) FROM (SELECT number FROM event WHERE ?1 IS NULL OR \
                       resource = ?1 ORDER BY number DESC LIMIT ?2)";
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let arguments = (wanted.resource.as_deref(), most);
            let first = self.connection.query_row(sql, arguments, |row| row.get(0))?;
            from = from.max(or_next(first)?);
        }
        Ok(from)
    }

    /// At most so many events from this number on, up to another, in order. Where the first of them are not kept any more, a
    /// gap stands in their place (C-21); it has the last of their numbers.
    pub fn read(&self, from: u64, to: u64, most: usize) -> Result<Vec<Event>, Unreadable> {
        let sql = rows::selecting("WHERE number BETWEEN ?1 AND ?2 ORDER BY number LIMIT ?3");
        let mut select = self.connection.prepare_cached(&sql)?;
        let to = to.min(i64::MAX.cast_unsigned());
        let mut found = select.query((
            from.cast_signed(),
            to.cast_signed(),
            i64::try_from(most).unwrap_or(i64::MAX),
        ))?;
        let mut events: Vec<Event> = Vec::new();
        let mut next = from.max(1);
        while let Some(row) = found.next()? {
            let event = rows::read(row)?;
            let number = event.number.unwrap_or_default();
            // A log that was begun anew says so itself.
            if number > next && event.what != what::GAP {
                let gone = number - next;
                events.push(gap(number - 1, event.at, gone));
            }
            next = number + 1;
            events.push(event);
        }
        Ok(events)
    }

    /// How far a recorder has come; none where it was never heard of.
    pub fn place(&self, recorder: &str) -> Result<Option<Place>, Unreadable> {
        let sql = "SELECT number FROM cursor WHERE recorder = ?1";
        let number = self.connection.query_row(sql, [recorder], |row| row.get(0)).optional()?;
        let Some(number) = number.map(i64::cast_unsigned) else { return Ok(None) };
        let sql = "SELECT first, last FROM batch WHERE recorder = ?1 ORDER BY first";
        let mut select = self.connection.prepare_cached(sql)?;
        let mut found = select.query([recorder])?;
        let mut begun = Vec::new();
        while let Some(row) = found.next()? {
            let (first, last): (i64, i64) = (row.get(0)?, row.get(1)?);
            begun.push((first.cast_unsigned(), last.cast_unsigned()));
        }
        Ok(Some(Place { number, begun }))
    }
}

/// Stands for events that are not kept any more.
fn gap(number: u64, at: u64, gone: u64) -> Event {
    let says = format!("{gone} events are no longer stored");
    let told = NewEvent { count: Some(gone), ..NewEvent::new(what::GAP, says, Level::Warn) };
    Event::new(Some(number), at, told)
}
