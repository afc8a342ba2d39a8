//! The content of a database, read and verified in one place: every reader, with or without a lock, accepts and rejects
//! the same databases.

use super::manifest::Manifest;
use super::{Records, fence, migrations, rows};
use crate::store::database;
use crate::store::database::Fault;
use rusqlite::Connection;
use std::path::Path;
use std::thread;

/// The content of a database at one moment.
pub(super) struct Generation {
    pub(super) records: Records,
    pub(super) manifest: Manifest,
}

impl Generation {
    /// Checks the pages and reads the content.
    pub(super) fn of(connection: &Connection) -> Result<Self, Fault> {
        database::check(connection)?;
        Self::unchecked(connection)
    }

    /// Checks and reads a database for its owner, when nobody else writes. The pages are checked in parallel through a
    /// second connection, which saves a fifth of the time.
    pub(super) fn held(connection: &Connection, path: &Path) -> Result<Self, Fault> {
        thread::scope(|scope| {
            let beside = thread::Builder::new().name("pages".to_owned());
            let checked = beside.spawn_scoped(scope, || database::check_beside(path));
            let read = Self::unchecked(connection);
            let checked = checked.ok().and_then(|checked| checked.join().ok());
            match checked {
                Some(Err(damage @ Fault::Damaged(_))) => return Err(damage),
                Some(Ok(())) => {}
                // The second connection could not check the pages.
                Some(Err(_)) | None => database::check(connection)?,
            }
            read
        })
    }

    /// Reads the content without a check of the pages.
    pub(super) fn unchecked(connection: &Connection) -> Result<Self, Fault> {
        let (kept, manifest) = (rows::read_all(connection)?, Manifest::read(connection)?);
        // A writer needs the epoch: a database with an unreadable epoch cannot be used.
        if migrations::version(connection)? >= migrations::HAS_LEASE {
            fence::current_epoch(connection)?;
        }
        Ok(Self { records: kept, manifest })
    }
}
