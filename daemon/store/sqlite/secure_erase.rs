//! Erasure of plaintext secrets that are no longer stored (B-26), from the log and from free pages. The database header
//! records a pending erasure, in the same commit as its cause: after a kill, or on a full disk, the next open completes
//! it.

use crate::store::database::Fault;
use rusqlite::{Connection, Row};

/// The header value of a pending erasure; 0 if there is none.
const OWED: i64 = 0x5769_7065;

/// Records a pending erasure.
pub(super) fn owe(connection: &Connection) -> Result<(), Fault> {
    Ok(connection.pragma_update(None, "application_id", OWED)?)
}

/// Returns true if an erasure is pending.
pub(super) fn is_owed(connection: &Connection) -> Result<bool, Fault> {
    let found: i64 = connection.query_row("PRAGMA application_id", (), |row| row.get(0))?;
    Ok(found == OWED)
}

/// Erases overwritten content. If that fails, a warning is logged, and the next open of the database repeats it.
pub(super) fn wipe(connection: &Connection) {
    match done(connection) {
        Ok(true) => {}
        Ok(false) => tracing::warn!(
            "another process reads the state: overwritten pages are erased at the next start"
        ),
        Err(error) => tracing::warn!(%error, "overwritten pages are erased at the next start"),
    }
}

fn done(connection: &Connection) -> rusqlite::Result<bool> {
    let is_whole = |row: &Row<'_>| Ok(row.get::<_, i64>(0)? == 0);
    let take_in = || connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), is_whole);
    connection.execute_batch("VACUUM")?;
    if !take_in()? {
        return Ok(false);
    }
    connection.pragma_update(None, "application_id", 0)?;
    take_in()
}
