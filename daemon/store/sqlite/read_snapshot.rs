//! All that a database holds, read and verified at once: whoever opens it and whoever only looks reads it here, so that nobody takes
//! for sound what another one refuses.

use super::manifest::Manifest;
use super::{Records, fence, migrations, rows};
use crate::store::database;
use crate::store::database::Fault;
use rusqlite::Connection;
use std::path::Path;
use std::thread;

/// What stood there at one moment.
pub(super) struct Generation {
    pub(super) records: Records,
    pub(super) manifest: Manifest,
}

impl Generation {
    /// Reads it where its pages are whole.
    pub(super) fn of(connection: &Connection) -> Result<Self, Fault> {
        database::check(connection)?;
        Self::unchecked(connection)
    }

    /// The same for one who holds it, so that nobody writes meanwhile: its pages are looked at through another connection, beside. That
    /// is a fifth of the time that it takes.
    pub(super) fn held(connection: &Connection, path: &Path) -> Result<Self, Fault> {
        thread::scope(|scope| {
            let beside = thread::Builder::new().name("pages".to_owned());
            let checked = beside.spawn_scoped(scope, || database::check_beside(path));
            let read = Self::unchecked(connection);
            let checked = checked.ok().and_then(|checked| checked.join().ok());
            match checked {
                Some(Err(damage @ Fault::Damaged(_))) => return Err(damage),
                Some(Ok(())) => {}
                // It could not be looked at from there.
                Some(Err(_)) | None => database::check(connection)?,
            }
            read
        })
    }

    /// The same for one who looks at the pages otherwise.
    pub(super) fn unchecked(connection: &Connection) -> Result<Self, Fault> {
        let (kept, manifest) = (rows::read_all(connection)?, Manifest::read(connection)?);
        // Who takes it into use asks whose it is: where that cannot be read it cannot be used.
        if migrations::version(connection)? >= migrations::HAS_LEASE {
            fence::current_epoch(connection)?;
        }
        Ok(Self { records: kept, manifest })
    }
}
