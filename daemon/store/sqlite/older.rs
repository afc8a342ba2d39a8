//! Tables of older schemas: how their rows are read, and how they are brought to this one.

use super::super::database::Fault;
use super::manifest::{self, Manifest};
use super::rows::COLUMNS;
use super::{SCHEMA, fence};
use rusqlite::Connection;

/// The columns of older schemas: the first knew nothing of values, the second nothing of single pauses, the third not whose a thing is.
const OLDER: [&str; 3] = [
    "identity, done, owed, cause, interrupted, begun, definition, owes, sum, NULL, NULL, NULL, NULL, \
     NULL, NULL, NULL, NULL, NULL",
    "identity, done, owed, cause, interrupted, begun, definition, owes, sum, sent, taken, NULL, NULL, \
     NULL, NULL, NULL, NULL, NULL",
    "identity, done, owed, cause, interrupted, begun, definition, owes, sum, sent, taken, parked, \
     parked_until, NULL, NULL, NULL, NULL, NULL",
];

/// The first schema that knows what a run is about to do, and how long a pause lasts.
pub(super) const HAS_FEW: i64 = 7;

/// The first schema that says who has taken it last.
pub(super) const HAS_LEASE: i64 = 6;

/// Brings the tables of an older schema to this one. Rows stay as they are, with their sums.
pub(super) fn upgrade(connection: &mut Connection, from: i64, schema: i64) -> Result<(), Fault> {
    let transaction = connection.transaction()?;
    if from < 2 {
        transaction.execute_batch(
            "ALTER TABLE resource ADD COLUMN sent TEXT; ALTER TABLE resource ADD COLUMN taken TEXT",
        )?;
    }
    if from < 3 {
        transaction.execute_batch(
            "ALTER TABLE resource ADD COLUMN parked TEXT;
             ALTER TABLE resource ADD COLUMN parked_until INTEGER",
        )?;
    }
    if from < 4 {
        transaction.execute_batch(
            "ALTER TABLE resource ADD COLUMN owned INTEGER; ALTER TABLE resource ADD COLUMN graph TEXT;
             ALTER TABLE resource ADD COLUMN thing INTEGER; ALTER TABLE resource ADD COLUMN removal TEXT;
             ALTER TABLE resource ADD COLUMN needs TEXT",
        )?;
    }
    if from < 5 {
        transaction.execute_batch(manifest::TABLE)?;
        Manifest::default().write(&transaction)?;
    }
    if from < HAS_LEASE {
        transaction.execute_batch(fence::TABLE)?;
        fence::write(&transaction, 0)?;
    }
    transaction.execute_batch(
        "ALTER TABLE resource ADD COLUMN verb TEXT; ALTER TABLE resource ADD COLUMN epoch INTEGER;
         ALTER TABLE resource ADD COLUMN cut TEXT; ALTER TABLE resource ADD COLUMN parked_for INTEGER;
         ALTER TABLE whole ADD COLUMN lasts INTEGER",
    )?;
    transaction.pragma_update(None, "user_version", schema)?;
    Ok(transaction.commit()?)
}

/// The schema of the tables that are there.
pub(super) fn version(connection: &Connection) -> Result<i64, Fault> {
    let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    if version > SCHEMA {
        return Err(Fault::Newer { version, known: SCHEMA });
    }
    Ok(version)
}

/// The columns of this schema, as they are called in the tables of that one.
pub(super) fn columns_of(version: i64) -> &'static str {
    let older = usize::try_from(version - 1).ok().and_then(|version| OLDER.get(version));
    older.copied().unwrap_or(COLUMNS)
}
