//! Migrations: reading the tables of older schemas, and upgrading them to the present one.

use super::manifest;
use super::manifest::Manifest;
use super::{SCHEMA, fence};
use crate::store::database::Fault;
use rusqlite::Connection;

/// The columns of one schema, in the order in which they are read.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    /// The columns that most rows use. The last one is true if a row uses any of the others.
    pub(super) most: &'static str,
    /// The columns that few rows use, read for these rows only.
    pub(super) few: &'static str,
    /// The columns of the global row.
    pub(super) whole: &'static str,
}

/// The columns of each schema. The first has no values, the second no pauses of resources, the third no ownership;
/// those before the seventh have no operation of runs and no duration of pauses, those before the ninth no refreshes of
/// runs.
const COLUMNS: [Columns; 6] = [
    Columns {
        most: "identity, done, owed, cause, sum, NULL, NULL, NULL, NULL, NULL, \
               coalesce(interrupted, begun, definition, owes) IS NOT NULL",
        few: "interrupted, begun, definition, owes, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
        whole: UNTIMED,
    },
    Columns {
        most: "identity, done, owed, cause, sum, NULL, NULL, NULL, NULL, NULL, \
               coalesce(interrupted, begun, definition, owes, sent, taken) IS NOT NULL",
        few: "interrupted, begun, definition, owes, sent, taken, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
        whole: UNTIMED,
    },
    Columns {
        most: "identity, done, owed, cause, sum, NULL, NULL, NULL, NULL, NULL, \
               coalesce(interrupted, begun, definition, owes, sent, taken, parked, parked_until) IS NOT NULL",
        few: VERBLESS,
        whole: UNTIMED,
    },
    Columns { most: OWNED, few: VERBLESS, whole: UNTIMED },
    Columns {
        most: OWNED,
        few: "interrupted, begun, definition, owes, sent, taken, parked, parked_until, verb, epoch, cut, parked_for, \
              NULL, NULL",
        whole: TIMED,
    },
    Columns {
        most: OWNED,
        few: "interrupted, begun, definition, owes, sent, taken, parked, parked_until, verb, epoch, cut, parked_for, \
              pays, cut_pays",
        whole: TIMED,
    },
];

/// The columns of schemas with ownership.
const OWNED: &str = "identity, done, owed, cause, sum, owned, graph, thing, removal, needs, \
     coalesce(interrupted, begun, definition, owes, sent, taken, parked, parked_until) IS NOT NULL";

/// The columns of schemas without the operation of runs.
const VERBLESS: &str = "interrupted, begun, definition, owes, sent, taken, parked, parked_until, NULL, NULL, NULL, \
     NULL, NULL, NULL";

/// The columns of schemas without the duration of pauses.
const UNTIMED: &str = "stamp, reason, until, rows, digest, sum, NULL";

/// The columns of schemas with the duration of pauses.
const TIMED: &str = "stamp, reason, until, rows, digest, sum, lasts";

/// Returns the columns of a schema. An unknown version is read as the newest.
pub(super) fn columns_of(version: i64) -> Columns {
    let [first, values, pauses, owners, verbs, newest] = COLUMNS;
    match version {
        1 => first,
        2 => values,
        3 => pauses,
        4..=6 => owners,
        7..=8 => verbs,
        _ => newest,
    }
}

/// The first schema that records its last owner.
pub(super) const HAS_LEASE: i64 = 6;

/// Upgrades the tables of an older schema. Rows stay as they are, with their sums.
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
    if from < 7 {
        transaction.execute_batch(
            "ALTER TABLE resource ADD COLUMN verb TEXT; ALTER TABLE resource ADD COLUMN epoch INTEGER;
             ALTER TABLE resource ADD COLUMN cut TEXT; ALTER TABLE resource ADD COLUMN parked_for INTEGER;
             ALTER TABLE whole ADD COLUMN lasts INTEGER",
        )?;
    }
    // The manifest of a schema before the fifth was just made, with its time.
    if (5..manifest::HAS_TIME).contains(&from) {
        transaction.execute_batch("ALTER TABLE manifest ADD COLUMN written_at INTEGER")?;
    }
    if from < 9 {
        transaction.execute_batch(
            "ALTER TABLE resource ADD COLUMN pays INTEGER; ALTER TABLE resource ADD COLUMN cut_pays INTEGER",
        )?;
    }
    transaction.pragma_update(None, "user_version", schema)?;
    Ok(transaction.commit()?)
}

/// Returns the schema of the tables.
pub(super) fn version(connection: &Connection) -> Result<i64, Fault> {
    let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    if version > SCHEMA {
        return Err(Fault::Newer { version, known: SCHEMA });
    }
    Ok(version)
}
