//! All that a database holds, read and verified at once: whoever opens it and whoever only looks reads it here, so that nobody takes
//! for sound what another one refuses.

use super::super::database::{self, Fault};
use super::manifest::Manifest;
use super::{Kept, fence, older, rows};
use rusqlite::Connection;

/// What stood there at one moment.
pub(super) struct Generation {
    pub(super) kept: Kept,
    pub(super) manifest: Manifest,
}

impl Generation {
    /// Reads it where its pages are whole.
    pub(super) fn of(connection: &Connection) -> Result<Self, Fault> {
        database::check(connection)?;
        Self::unchecked(connection)
    }

    /// The same for one who looks at the pages otherwise.
    pub(super) fn unchecked(connection: &Connection) -> Result<Self, Fault> {
        let (kept, manifest) = (rows::read_all(connection)?, Manifest::read(connection)?);
        // Who takes it into use asks whose it is: where that cannot be read it cannot be used.
        if older::version(connection)? >= older::HAS_LEASE {
            fence::standing(connection)?;
        }
        Ok(Self { kept, manifest })
    }
}
