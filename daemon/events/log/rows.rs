//! The tables of the event log, and an event as a row.

use super::super::event::{NewEvent, PublishedEvent};
use crate::api::{Event, EventKind, Level, OldData, OldEvent};
use crate::store::database::{self, Fault, Layout};
use rusqlite::{Connection, Row, Statement, params};
use serde_json::{Value, json};

/// The schema version that this program writes, and the newest that it reads.
pub(super) const SCHEMA: i64 = 2;

/// The layout that identifies a database as an event log.
pub(super) const LAYOUT: Layout = Layout { schema: SCHEMA, asks, later: |_| Vec::new() };

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
    says TEXT NOT NULL,
    data TEXT
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

/// The columns of schema 1. `class`, `count` and `run` have values in rows of that schema only.
const COLUMNS: &str = "number, at, what, resource, class, count, run, level, says";

fn asks(version: i64) -> Vec<String> {
    let others = [
        "SELECT number FROM run",
        "SELECT recorder, number FROM cursor",
        "SELECT recorder, first, last FROM batch",
        "SELECT id, born FROM log",
    ];
    let events = selecting(version, "");
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

/// Brings the tables of an older schema to the present one. Old rows keep their text and get no data.
pub(super) fn migrate(connection: &mut Connection, version: i64) -> Result<(), Fault> {
    let transaction = connection.transaction()?;
    if version < 2 {
        transaction.execute_batch("ALTER TABLE event ADD COLUMN data TEXT")?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    Ok(transaction.commit()?)
}

/// Prepares the statement for [`insert`].
pub(super) fn inserting(connection: &Connection) -> Result<Statement<'_>, Fault> {
    let sql = "INSERT INTO event (number, at, what, resource, level, says, data) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    Ok(connection.prepare(sql)?)
}

/// Inserts one event.
pub(super) fn insert(
    into: &mut Statement<'_>,
    number: u64,
    at: u64,
    happening: &NewEvent,
) -> Result<(), Fault> {
    let NewEvent { resource, level, kind, message } = happening;
    let resource = resource.as_deref().filter(|name| name.len() <= LONGEST);
    let (name, data) = (kind.name(), data_text(kind));
    let (number, at) = (number.cast_signed(), at.cast_signed());
    into.execute(params![number, at, name, resource, of_level(*level), message, data])?;
    Ok(())
}

/// Returns the data of an event as JSON; `None` if the name of the event says everything.
fn data_text(kind: &EventKind) -> Option<String> {
    let kind = serde_json::to_value(kind).ok()?;
    Some(kind.get("data")?.to_string())
}

/// Returns the event, or an error event in place of one that cannot be stored (C-17).
pub(in super::super) fn keepable(happening: NewEvent) -> NewEvent {
    let data = data_text(&happening.kind).map_or(0, |data| data.len());
    let length =
        data + happening.message.len() + happening.resource.as_ref().map_or(0, String::len);
    if length <= LONGEST && !happening.message.contains('\0') {
        return happening;
    }
    let name = happening.kind.name();
    let text = format!("an event `{name}` of {length} bytes could not be recorded");
    let resource = happening.resource.filter(|name| name.len() <= 4096);
    NewEvent { resource, ..NewEvent::internal_error(text) }
}

/// Returns a query of the columns that [`read`] expects, for a database of this schema.
pub(super) fn selecting(version: i64, which: &str) -> String {
    let data = if version < 2 { "NULL" } else { "data" };
    format!("SELECT {COLUMNS}, {data} FROM event {which}")
}

/// Reads one event. An unreadable row becomes an error event with the same number, so that other events are returned
/// (C-17).
pub(super) fn read(row: &Row<'_>) -> Result<PublishedEvent, Fault> {
    let number = row.get::<_, i64>(0)?.cast_unsigned();
    match whole(row, number) {
        Ok(event) => Ok(event),
        Err(error) => {
            let told = NewEvent::internal_error(format!("the event cannot be read: {error}"));
            let at = row.get(1).map_or(0, i64::cast_unsigned);
            Ok(PublishedEvent::new(Some(number), at, told))
        }
    }
}

fn whole(row: &Row<'_>, number: u64) -> rusqlite::Result<PublishedEvent> {
    let event = Event {
        number: Some(number),
        at: row.get::<_, i64>(1)?.cast_unsigned(),
        resource: row.get(3)?,
        level: to_level(row.get(7)?),
        message: row.get(8)?,
        kind: kind(row)?,
    };
    Ok(event.into())
}

/// Reads the name and the data of an event. An event of an older version, or with data of an unknown form, is a text.
fn kind(row: &Row<'_>) -> rusqlite::Result<EventKind> {
    let name: String = row.get(2)?;
    let data: Option<String> = row.get(9)?;
    let data = data.and_then(|data| serde_json::from_str::<Value>(&data).ok());
    let old = OldData {
        class: row.get(4)?,
        count: row.get::<_, Option<i64>>(5)?.map(i64::cast_unsigned),
        run: row.get::<_, Option<i64>>(6)?.map(i64::cast_unsigned),
    };
    let is_old = old != OldData::default();
    let typed = match data {
        Some(data) => Some(json!({"event": name, "data": data})),
        None if is_old => None,
        None => Some(json!({"event": name})),
    };
    let typed = typed.and_then(|typed| serde_json::from_value(typed).ok());
    Ok(typed.unwrap_or(EventKind::Old(OldEvent { event: name, data: old })))
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
