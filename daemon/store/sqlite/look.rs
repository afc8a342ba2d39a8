//! The store for one who only looks: no lock, nothing opened for writing, beside a daemon too.

use super::super::database::{self, Fault};
use super::super::fold::{Kept, settle};
use super::super::rules::{self, Readers};
use super::super::{Recalled, StoreError, directory};
use super::manifest::Manifest;
use super::{Imported, LAYOUT, SqliteStore, fence, gone, keyless, mend, refusal, rows};
use rusqlite::Connection;
use std::path::Path;
use std::time::SystemTime;

impl SqliteStore {
    /// All that is kept, for one who only looks: takes no lock and changes nothing, beside a daemon too. Nothing is kept where
    /// there is no state yet.
    pub fn peek(state_directory: &Path) -> Result<Recalled, StoreError> {
        let path = state_directory.join(directory::DATABASE);
        let kept = look(&path, rows::read_all);
        kept.map_err(|fault| refusal(&path, fault))?
            .map_or_else(|| Ok(Recalled::default()), settled)
    }

    /// What a load would tell back, or its refusal, with nothing changed: what breaks a rule is put right in what is told only.
    pub fn foresee(state_directory: &Path, readers: &Readers) -> Result<Recalled, StoreError> {
        let path = state_directory.join(directory::DATABASE);
        let refuse = |fault| refusal(&path, fault);
        let read = |connection: &Connection| {
            database::check(connection)?;
            Ok((rows::read_all(connection)?, Manifest::read(connection)?))
        };
        let Some((mut kept, manifest)) = look(&path, read).map_err(refuse)? else {
            return Ok(Recalled::default());
        };
        let wrong = rules::of_kept(&kept, readers);
        mend::repair_all(&mut kept, wrong, readers).map_err(refuse)?;
        mend::adopt(&mut kept, &manifest, directory::machine().as_deref());
        let key = match directory::found_key(state_directory)? {
            Ok(key) => Some(key),
            Err(_) if kept.records.is_empty() => None,
            Err(why) => return Err(keyless(state_directory, why)),
        };
        Ok(Recalled { key, ..readers.only_known(settled(kept)?) })
    }

    /// Whether what is kept is not for this process to read.
    #[must_use]
    pub fn is_denied(state_directory: &Path) -> bool {
        let opened = std::fs::File::open(state_directory.join(directory::DATABASE));
        opened.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
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
    database::read(path, |connection| match LAYOUT.version(connection)? {
        // Its tables are being made this moment.
        0 => Ok(None),
        _ => work(connection).map(Some),
    })
}
