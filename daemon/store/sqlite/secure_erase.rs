//! What is no longer kept is wiped where it was a secret in clear (B-26): out of the log, and out of free places. That it is to be done is
//! kept in the header of the database, in the commit that makes it so: who is killed, or finds no room, leaves it to the next.

use crate::store::database::Fault;
use rusqlite::{Connection, Row};

/// What the header says where it is to be done; 0 where it is not.
const OWED: i64 = 0x5769_7065;

/// From now on it is to be done.
pub(super) fn owe(connection: &Connection) -> Result<(), Fault> {
    Ok(connection.pragma_update(None, "application_id", OWED)?)
}

/// Whether it is.
pub(super) fn is_owed(connection: &Connection) -> Result<bool, Fault> {
    let found: i64 = connection.query_row("PRAGMA application_id", (), |row| row.get(0))?;
    Ok(found == OWED)
}

/// Does it. Where it cannot be done now, all is kept, that is said, and the next who opens the database does it.
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
