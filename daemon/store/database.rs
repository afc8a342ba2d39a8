//! What the databases of a state directory have in common: how one is opened and held to the disk, how damage is noticed, and
//! how a damaged one is moved aside.

pub(crate) use super::directory::{private, sync};

use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, Transaction};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// Why a database cannot be used.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    /// What is in it is not what was written.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// It cannot be read or written now.
    #[error("{0}")]
    Refused(String),
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        let detail = error.sqlite_error().map(|error| error.extended_code);
        if detail == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) {
            // Beside the log stands a file that readers and writers share; it could not be made.
            return Self::Refused("no room beside it: its file system is full".to_owned());
        }
        let shape = matches!(
            error,
            rusqlite::Error::QueryReturnedNoRows
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..)
        );
        // An unknown error is what a missing table or column gives.
        let bad = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase, ErrorCode::Unknown];
        if shape || code.is_some_and(|code| bad.contains(&code)) {
            Self::Damaged(error.to_string())
        } else {
            Self::Refused(error.to_string())
        }
    }
}

/// Opens the file, which is made where there is none, for us alone. Also answers the version of its schema; nothing of it is
/// changed yet.
pub(crate) fn open(path: &Path) -> Result<(Connection, i64), Fault> {
    let refused = |error: std::io::Error| Fault::Refused(error.to_string());
    let new = !path.exists();
    let length = private(path).and_then(|file| file.metadata()).map_err(refused)?.len();
    // SQLite takes a file of one byte for a new database.
    if (1..512).contains(&length) {
        return Err(Fault::Damaged(format!("it has only {length} bytes")));
    }
    if new && let Some(parent) = path.parent() {
        sync(parent).map_err(refused)?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(2))?;
    let version = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    Ok((connection, version))
}

/// What it was made by, where that is not known here.
pub(crate) fn newer(version: i64, known: i64) -> String {
    format!("it was made by a newer steadfast (schema {version}, this one knows {known})")
}

/// From now on what is committed is on the disk.
pub(crate) fn hold(connection: &Connection) -> Result<(), Fault> {
    let mode: String = connection.query_row("PRAGMA journal_mode=WAL", (), |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::Refused(format!("its file system cannot hold a WAL (mode {mode})")));
    }
    connection.execute_batch("PRAGMA synchronous=FULL; PRAGMA cell_size_check=ON")?;
    if connection.is_readonly(MAIN_DB)? {
        // The file itself can be written to: this is what a damaged header gives.
        return Err(Fault::Damaged("its format says that it must not be written to".to_owned()));
    }
    Ok(())
}

/// Makes the tables of a database without a version; with something already in it, it is not new but damaged.
pub(crate) fn make(transaction: &Transaction<'_>, tables: &str) -> Result<(), Fault> {
    is_new(transaction)?;
    Ok(transaction.execute_batch(tables)?)
}

/// A database without a version has nothing in it, or is none of ours.
pub(crate) fn is_new(connection: &Connection) -> Result<(), Fault> {
    let count: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    if count == 0 {
        return Ok(());
    }
    Err(Fault::Damaged("it has tables but no version".to_owned()))
}

/// Whether its pages are whole.
pub(crate) fn check(connection: &Connection) -> Result<(), Fault> {
    let answer: String = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    if answer == "ok" { Ok(()) } else { Err(Fault::Damaged(answer)) }
}

/// The name under which `SQLite` reads a database, and opens nothing for writing, while nobody uses it: its log is empty or gone.
pub(crate) fn unused(path: &Path) -> Option<PathBuf> {
    let log = PathBuf::from(format!("{}-wal", path.to_str()?));
    if std::fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return None;
    }
    named(path, "immutable=1")
}

/// The name under which it reads one that others use, and opens nothing for writing: not even the file beside the log that its users share.
pub(crate) fn shared(path: &Path) -> Option<PathBuf> {
    named(path, "readonly_shm=1")
}

fn named(path: &Path, parameter: &str) -> Option<PathBuf> {
    let mut name = "file:".to_owned();
    for character in path.to_str()?.chars() {
        match character {
            '%' => name.push_str("%25"),
            '?' => name.push_str("%3f"),
            '#' => name.push_str("%23"),
            other => name.push(other),
        }
    }
    Some(PathBuf::from(format!("{name}?{parameter}")))
}

/// So many copies of one sort are kept beside.
const COPIES: usize = 3;

/// Gives the database and what belongs to it another name, so that somebody can look into it.
pub(crate) fn move_aside(path: &Path) -> std::io::Result<PathBuf> {
    let aside = beside(path, "bad");
    // The log goes first: a database must never meet the log of another.
    for suffix in PARTS {
        match std::fs::rename(with_suffix(path, suffix), with_suffix(&aside, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    sync_beside(path)?;
    thin_out(path, "bad");
    Ok(aside)
}

/// What was renamed beside it is so on the disk.
pub(crate) fn sync_beside(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), sync)
}

/// Removes a database, if there is one, with what belongs to it.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    for suffix in PARTS {
        match std::fs::remove_file(with_suffix(path, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Puts a copy of it beside, as it is now. `word` says what it is the copy of.
pub(crate) fn copy_aside(
    connection: &Connection,
    path: &Path,
    word: &str,
) -> Result<PathBuf, Fault> {
    let refused = |error: std::io::Error| Fault::Refused(format!("no copy can be kept: {error}"));
    let aside = beside(path, word);
    // An empty file is written into, and stays ours alone.
    drop(private(&aside).map_err(refused)?);
    let name = aside.to_str().ok_or_else(|| Fault::Refused("its path is no text".to_owned()))?;
    if let Err(error) = connection.execute("VACUUM INTO ?1", [name]) {
        drop(std::fs::remove_file(&aside));
        return Err(match Fault::from(error) {
            Fault::Refused(why) => Fault::Refused(format!("no copy can be kept: {why}")),
            damaged @ Fault::Damaged(_) => damaged,
        });
    }
    std::fs::File::open(&aside).and_then(|copy| copy.sync_all()).map_err(refused)?;
    if let Some(parent) = path.parent() {
        sync(parent).map_err(refused)?;
    }
    thin_out(path, word);
    Ok(aside)
}

/// What belongs to a database, itself last.
const PARTS: [&str; 3] = ["-wal", "-shm", ""];

/// A name that is free, and sorts after those that were given before.
fn beside(path: &Path, word: &str) -> PathBuf {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = format!("{word}-{}", since.as_secs());
    // After the last of this second, not into a place that was given free.
    let last = copies(path, &now).pop();
    let last = last.and_then(|name| name.rsplit_once('-')?.1.parse::<u32>().ok());
    let count = last.map_or(0, |last| last + 1);
    with_suffix(path, &format!(".{now}-{count:03}"))
}

/// The copies whose names go on so, oldest first, without what belongs to them.
fn copies(path: &Path, word: &str) -> Vec<String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
    else {
        return Vec::new();
    };
    let beginning = format!("{name}.{word}-");
    let is_part = |name: &str| PARTS.iter().any(|part| !part.is_empty() && name.ends_with(part));
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut copies: Vec<String> =
        names.filter(|name| name.starts_with(&beginning) && !is_part(name)).collect();
    copies.sort_unstable();
    copies
}

/// Only the newest copies stay.
fn thin_out(path: &Path, word: &str) {
    let Some(folder) = path.parent() else { return };
    let copies = copies(path, word);
    let many = copies.len().saturating_sub(COPIES);
    for old in copies.iter().take(many) {
        for suffix in PARTS {
            let gone = std::fs::remove_file(with_suffix(&folder.join(old), suffix));
            if let Err(error) = gone
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::debug!(%error, "an old copy stays");
            }
        }
    }
}

/// The same name with this behind it.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
