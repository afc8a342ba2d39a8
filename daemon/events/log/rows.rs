//! The tables of the event log, and an event as a row.

use super::super::event::{Event, Level, NewEvent, what};
use crate::store::database::{self, Fault, Layout};
use rusqlite::{Connection, Row, Statement, params};

/// The schema version that this program writes, and the newest that it reads.
pub(super) const SCHEMA: i64 = 1;

/// The layout that identifies a database as an event log.
pub(super) const LAYOUT: Layout = Layout { schema: SCHEMA, asks };

/// The maximum length of an event's text in bytes; a longer event is replaced by an error event (C-17).
pub(super) const LONGEST: usize = 1 << 20;

const TABLES: &str = "
CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    what TEXT NOT NULL,
    resource TEXT,
    class TEXT,
    count INTEGER,
    run INTEGER,
    level INTEGER NOT NULL,
    says TEXT NOT NULL
) STRICT;
CREATE TABLE run (number INTEGER PRIMARY KEY) STRICT;
CREATE TABLE cursor (recorder TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL) STRICT;
CREATE TABLE batch (
    recorder TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (recorder, first)
) STRICT, WITHOUT ROWID;
CREATE TABLE log (id INTEGER PRIMARY KEY CHECK (id = 1), born INTEGER NOT NULL) STRICT;
";

const COLUMNS: &str = "number, at, what, resource, class, count, run, level, says";

fn asks(_version: i64) -> Vec<String> {
    let others = [
        "SELECT number FROM run",
        "SELECT recorder, number FROM cursor",
        "SELECT recorder, first, last FROM batch",
        "SELECT id, born FROM log",
    ];
    let events = format!("SELECT {COLUMNS} FROM event");
    others.into_iter().map(str::to_owned).chain([events]).collect()
}

/// Creates the tables.
pub(super) fn create(connection: &mut Connection, born: u64) -> Result<(), Fault> {
    let transaction = connection.transaction()?;
    database::make(&transaction, TABLES)?;
    transaction.execute("INSERT INTO log (id, born) VALUES (1, ?1)", [born.cast_signed()])?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    Ok(transaction.commit()?)
}

/// Prepares the statement for [`insert`].
pub(super) fn inserting(connection: &Connection) -> Result<Statement<'_>, Fault> {
    let sql = format!("INSERT INTO event ({COLUMNS}) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)");
    Ok(connection.prepare(&sql)?)
}

/// Inserts one event. An event that cannot be stored is replaced by an error event.
pub(super) fn insert(
    into: &mut Statement<'_>,
    number: u64,
    at: u64,
    happening: &NewEvent,
) -> Result<(), Fault> {
    let NewEvent { what, resource, class, count, run, message: says, level } = happening;
    let resource = resource.as_deref().filter(|name| name.len() <= LONGEST);
    into.execute(params![
        number.cast_signed(),
        at.cast_signed(),
        what,
        resource,
        class,
        count.map(u64::cast_signed),
        run.map(u64::cast_signed),
        of_level(*level),
        says,
    ])?;
    Ok(())
}

/// Returns the event, or an error event in place of one that cannot be stored (C-17).
pub(in super::super) fn keepable(happening: NewEvent) -> NewEvent {
    let length = happening.message.len() + happening.resource.as_ref().map_or(0, String::len);
    if length <= LONGEST && !happening.message.contains('\0') {
        return happening;
    }
    let says = format!("an event `{}` of {length} bytes could not be recorded", happening.what);
    let resource = happening.resource.filter(|name| name.len() <= 4096);
    NewEvent { resource, ..NewEvent::new(what::INTERNAL_ERROR, says, Level::Error) }
}

/// Returns a query of the columns that [`read`] expects.
pub(super) fn selecting(which: &str) -> String {
    format!("SELECT {COLUMNS} FROM event {which}")
}

/// Reads one event. An unreadable row becomes an error event with the same number, so that other events are returned
/// (C-17).
pub(super) fn read(row: &Row<'_>) -> Result<Event, Fault> {
    let number = row.get::<_, i64>(0)?.cast_unsigned();
    match whole(row, number) {
        Ok(event) => Ok(event),
        Err(error) => {
            let says = format!("the event cannot be read: {error}");
            let told = NewEvent::new(what::INTERNAL_ERROR, says, Level::Error);
            Ok(Event::new(Some(number), row.get(1).map_or(0, i64::cast_unsigned), told))
        }
    }
}

fn whole(row: &Row<'_>, number: u64) -> rusqlite::Result<Event> {
    let empty = NewEvent::new("", row.get::<_, String>(8)?, to_level(row.get(7)?));
    let mut event = Event::new(Some(number), row.get::<_, i64>(1)?.cast_unsigned(), empty);
    event.what = row.get(2)?;
    event.resource = row.get(3)?;
    event.class = row.get(4)?;
    event.count = row.get::<_, Option<i64>>(5)?.map(i64::cast_unsigned);
    event.run = row.get::<_, Option<i64>>(6)?.map(i64::cast_unsigned);
    Ok(event)
}

const fn of_level(level: Level) -> i64 {
    match level {
        Level::Debug => 0,
        Level::Info => 1,
        Level::Warn => 2,
        Level::Error => 3,
    }
}

const fn to_level(number: i64) -> Level {
    match number {
        0 => Level::Debug,
        1 => Level::Info,
        2 => Level::Warn,
        _ => Level::Error,
    }
}
