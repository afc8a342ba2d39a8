//! The reader of the event log; it works beside the writer.

use super::super::event::{DETAILS, NewEvent, PublishedEvent, is_detail};
use super::{path, rows};
use crate::api::{Event, Level};
use crate::store::database::{Fault, unused};
use crate::store::regular_file;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A read-only handle of the event log.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    /// The schema of the database.
    version: i64,
}

/// A selection of events.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Only events with this number or a higher one.
    pub from: Option<u64>,
    /// Only events at or after this time, in milliseconds since 1970.
    pub since: Option<u64>,
    /// Only events of these resources; `None` for all events.
    pub resources: Option<Arc<BTreeSet<String>>>,
    /// The maximum number of events; the last ones are returned.
    pub limit: Option<usize>,
    /// True if details are included: debug events, and the usual starts and ends of workers.
    pub details: bool,
}

impl Wanted {
    /// Returns true if a recorded event belongs to the selection, apart from its place in the log.
    #[must_use]
    pub fn admits(&self, event: &Event) -> bool {
        let is_of = self.resources.as_ref().is_none_or(|names| {
            event.resource.as_ref().is_some_and(|resource| names.contains(resource))
        });
        is_of && (self.details || !is_detail(event))
    }
}

/// The position of a recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number up to which all events are confirmed.
    pub number: u64,
    /// The batches that were begun and not confirmed: first and last number of each.
    pub begun: Vec<(u64, u64)>,
}

/// An error of reading the log.
#[derive(Debug, thiserror::Error)]
#[error("the event log cannot be read: {0}")]
pub struct Unreadable(String);

impl Unreadable {
    /// Creates an error with a reason.
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
    /// Opens the log of a state directory; returns `None` if there is none.
    ///
    /// # Errors
    /// [`Unreadable`] if the database is damaged or of another version.
    pub fn open(state_directory: &Path) -> Result<Option<Self>, Unreadable> {
        let path = path(state_directory);
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
        // A reader beside a writer must write to the shared-memory file; without the permission, an unused log is read
        // alone.
        let beside = open(&path, flags);
        let (connection, version) = match (beside, unused(&path)) {
            (Ok(opened), _) => opened,
            (Err(_), Some(name)) => open(&name, flags | OpenFlags::SQLITE_OPEN_URI)?,
            (Err(error), None) => return Err(error.into()),
        };
        match version {
            // The writer is just creating the tables.
            0 => Ok(None),
            1..=rows::SCHEMA => Ok(Some(Self { connection, version })),
            newer => Err(Unreadable(format!("made by another steadfast version (schema {newer})"))),
        }
    }

    /// Returns the creation time of the log in milliseconds since 1970; it differs for a replaced log.
    ///
    /// # Errors
    /// [`Unreadable`] if the database cannot be read.
    pub fn created_at(&self) -> Result<u64, Unreadable> {
        let born: i64 = self.connection.query_row("SELECT born FROM log", (), |row| row.get(0))?;
        Ok(born.cast_unsigned())
    }

    /// Returns the numbers of the first and the last event.
    ///
    /// # Errors
    /// [`Unreadable`] if the database cannot be read.
    pub fn span(&self) -> Result<Option<(u64, u64)>, Unreadable> {
        let sql = "SELECT min(number), max(number) FROM event";
        let found: (Option<i64>, Option<i64>) =
            self.connection.query_row(sql, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(found.0.zip(found.1).map(|(a, b)| (a.cast_unsigned(), b.cast_unsigned())))
    }

    /// Returns the resources that have recorded events, in order.
    ///
    /// # Errors
    /// [`Unreadable`] if the database cannot be read.
    pub fn resources(&self) -> Result<Vec<String>, Unreadable> {
        let sql =
            "SELECT DISTINCT resource FROM event WHERE resource IS NOT NULL ORDER BY resource";
        let mut select = self.connection.prepare_cached(sql)?;
        let names = select.query_map((), |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// Returns the number at which a selection begins.
    ///
    /// # Errors
    /// [`Unreadable`] if the database cannot be read.
    pub fn begin(&self, wanted: &Wanted) -> Result<u64, Unreadable> {
        let mut from = wanted.from.unwrap_or_default();
        // If no recorded event matches, the selection begins with the next event.
        let next = || self.span().map(|span| span.map_or(0, |(_, last)| last + 1));
        let or_next =
            |first: Option<i64>| first.map_or_else(next, |number| Ok(number.cast_unsigned()));
        if let Some(since) = wanted.since {
            let sql = "SELECT number FROM event WHERE at >= ?1 ORDER BY number LIMIT 1";
            let first =
                self.connection
                    .query_row(sql, [i64::try_from(since).unwrap_or(i64::MAX)], |row| row.get(0));
            from = from.max(or_next(first.optional()?)?);
        }
        if let Some(limit) = wanted.limit {
            // Level 1 is info.
            let sql = "SELECT min(number) FROM (SELECT number FROM event WHERE \
                       (?1 IS NULL OR resource IN (SELECT value FROM json_each(?1))) AND \
                       (?3 OR level > 1 OR level = 1 AND what NOT IN (?4, ?5)) \
                       ORDER BY number DESC LIMIT ?2)";
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let [one, other] = DETAILS;
            let names = wanted.resources.as_ref().map(|names| serde_json::json!(**names));
            let names = names.map(|names| names.to_string());
            let arguments = (names, limit, wanted.details, one, other);
            let first = self.connection.query_row(sql, arguments, |row| row.get(0))?;
            from = from.max(or_next(first)?);
        }
        Ok(from)
    }

    /// Returns at most `limit` events between two numbers, in order. Deleted events at the start are represented by a
    /// gap event with the last of their numbers (C-21).
    ///
    /// # Errors
    /// [`Unreadable`] if the database cannot be read.
    pub fn read(
        &self,
        from: u64,
        to: u64,
        limit: usize,
    ) -> Result<Vec<PublishedEvent>, Unreadable> {
        let sql = rows::selecting(
            self.version,
            "WHERE number BETWEEN ?1 AND ?2 ORDER BY number LIMIT ?3",
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let to = to.min(i64::MAX.cast_unsigned());
        let mut found = select.query((
            from.cast_signed(),
            to.cast_signed(),
            i64::try_from(limit).unwrap_or(i64::MAX),
        ))?;
        let mut events: Vec<PublishedEvent> = Vec::new();
        let mut next = from.max(1);
        while let Some(row) = found.next()? {
            let event = rows::read(row)?;
            let number = event.number.unwrap_or_default();
            // A replaced log has its own gap event.
            if number > next && event.kind.name() != "gap" {
                let gone = number - next;
                events.push(gap(number - 1, event.at, gone));
            }
            next = number + 1;
            events.push(event);
        }
        Ok(events)
    }

    /// Returns the position of a recorder; `None` for an unknown one.
    ///
    /// # Errors
    /// [`Unreadable`] if the database cannot be read.
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

/// Creates the event that represents deleted events.
fn gap(number: u64, at: u64, gone: u64) -> PublishedEvent {
    let reason = format!("{gone} events are no longer stored");
    PublishedEvent::new(Some(number), at, NewEvent::gap(Some(gone), reason, Level::Warn))
}
