//! The store for one who only looks: no lock, nothing opened for writing, beside a daemon too.

use super::super::database::{Fault, shared, unused};
use super::super::fold::{Kept, settle};
use super::super::{Recalled, StoreError, directory};
use super::manifest::Manifest;
use super::{Imported, SqliteStore, fence, gone, refusal, rows};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::{Duration, SystemTime};

impl SqliteStore {
    /// All that is kept, for one who only looks: takes no lock and changes nothing, beside a daemon too. Nothing is kept where
    /// there is no state yet.
    pub fn peek(state_directory: &Path) -> Result<Recalled, StoreError> {
        let path = state_directory.join(directory::DATABASE);
        let kept = look(&path, rows::read_all);
        kept.map_err(|fault| refusal(&path, fault))?
            .map_or_else(|| Ok(Recalled::default()), settled)
    }

    /// Whether a pause of all holds, and nothing is under way: as long as nobody writes, nothing begins.
    pub fn rests(state_directory: &Path) -> Result<bool, StoreError> {
        let path = state_directory.join(directory::DATABASE);
        let kept = look(&path, rows::read_all).map_err(|fault| refusal(&path, fault))?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(kept.is_some_and(|kept| {
            let pause = kept.whole.pause.as_ref();
            pause.is_some_and(|pause| pause.until_unix > now.as_secs())
                && kept.in_flight().is_empty()
        }))
    }

    /// The epoch of who took it last, where that can be read.
    pub(in super::super) fn standing(state_directory: &Path) -> Option<u64> {
        look(&state_directory.join(directory::DATABASE), fence::standing).ok()?
    }

    /// The same as [`Self::peek`], with the machine on which it is kept.
    pub fn export(state_directory: &Path) -> Result<Imported, StoreError> {
        let path = state_directory.join(directory::DATABASE);
        let read = |connection: &Connection| {
            Ok((rows::read_all(connection)?, Manifest::read(connection)?.machine))
        };
        match look(&path, read).map_err(|fault| refusal(&path, fault))? {
            Some((kept, machine)) => Ok(Imported { recalled: settled(kept)?, machine }),
            None => Ok(Imported::default()),
        }
    }

    /// The same as [`Self::peek`], with all that the database finds wrong with itself: its own check, and that of every row and the whole.
    pub fn verify(state_directory: &Path) -> Result<Verified, StoreError> {
        let path = state_directory.join(directory::DATABASE);
        let found = look(&path, |connection| {
            let mut check = connection.prepare("PRAGMA integrity_check")?;
            let lines = check.query_map((), |row| row.get::<_, String>(0))?;
            let mut damage = lines.collect::<Result<Vec<_>, _>>()?;
            damage.retain(|line| line != "ok");
            let read = |connection| Ok((rows::read_all(connection)?, Manifest::read(connection)?));
            match read(connection) {
                Ok((kept, manifest)) => Ok((damage, kept, manifest)),
                Err(Fault::Damaged(why)) => {
                    damage.push(why);
                    Ok((damage, Kept::default(), Manifest::default()))
                }
                Err(refused) => Err(refused),
            }
        });
        match found {
            Ok(None) => Ok(Verified::default()),
            Ok(Some((damage, kept, manifest))) => {
                Ok(Verified { damage, unsound: manifest.lines(), recalled: settled(kept)? })
            }
            Err(Fault::Damaged(why)) => Ok(Verified { damage: vec![why], ..Verified::default() }),
            Err(refused) => Err(refusal(&path, refused)),
        }
    }
}

/// What was found by [`SqliteStore::verify`].
#[derive(Debug, Default)]
pub struct Verified {
    /// All damage, in words.
    pub damage: Vec<String>,
    /// What a write has left that is not as it must be, as far as no load has put it right (B-20).
    pub unsound: Vec<String>,
    /// What could be read; nothing where rows are damaged.
    pub recalled: Recalled,
}

/// Whether anything is kept of a resource.
pub(super) fn holds_rows(state_directory: &Path) -> Result<bool, StoreError> {
    let path = state_directory.join(directory::DATABASE);
    let kept = look(&path, rows::read_all).map_err(|fault| refusal(&path, fault))?;
    Ok(kept.is_some_and(|kept| !kept.records.is_empty()))
}

fn settled(mut kept: Kept) -> Result<Recalled, StoreError> {
    for identity in kept.in_flight() {
        settle(&identity, &mut kept)?;
    }
    Ok(kept.recalled())
}

/// Reads a database without a lock of ours, at one moment; nothing where there is none.
fn look<T>(
    path: &Path,
    work: impl Fn(&Connection) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    match gone(path)? {
        Some(gone) if path.parent().is_some_and(directory::has_key) => return Err(gone),
        // Nothing is kept yet.
        Some(_) => return Ok(None),
        None => {}
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read = |name: &Path, flags| {
        let connection = Connection::open_with_flags(name, flags)?;
        connection.busy_timeout(Duration::from_secs(2))?;
        // What follows is of one generation, whatever a daemon commits meanwhile (B-25).
        connection.execute_batch("BEGIN")?;
        work(&connection)
    };
    // As a reader of a log in use it would write into the file that readers and writers share: that is the last resort.
    for name in [unused(path), shared(path)].into_iter().flatten() {
        match read(&name, flags | OpenFlags::SQLITE_OPEN_URI) {
            Ok(found) => return Ok(Some(found)),
            Err(fault) => tracing::debug!(%fault, "the state is in use, or was taken into use"),
        }
    }
    read(path, flags).map(Some)
}
