//! What the databases of a state directory have in common: how one is opened and held to the disk, how damage is noticed, and
//! how a damaged one is moved aside.

pub(crate) use super::state_dir::{private, sync};

use super::regular_file;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, Transaction};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// Why a database cannot be used.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    /// What is in it is not what was written.
    #[error("damaged: {0}")]
    Damaged(String),
    /// It is left as it is: we cannot know what stands in it.
    #[error("made by a newer steadfast (schema {version}, this one supports {known})")]
    Newer {
        /// Its schema.
        version: i64,
        /// The newest that is known here.
        known: i64,
    },
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
            return Self::Refused("no space left: the file system is full".to_owned());
        }
        if code == Some(ErrorCode::ConstraintViolation) {
            // No row of ours is in the way of another one of ours.
            return Self::Refused("another steadfast writes to the database".to_owned());
        }
        let shape = matches!(
            error,
            rusqlite::Error::QueryReturnedNoRows
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..)
                | rusqlite::Error::SqlInputError { .. }
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

/// How a database of ours is laid out: by this it is told from one of another program.
pub(crate) struct Layout {
    /// The newest schema that this program knows.
    pub(crate) schema: i64,
    /// What can be asked of each database of a schema: tables and columns.
    pub(crate) asks: fn(version: i64) -> Vec<String>,
}

impl Layout {
    /// The schema of a database; 0 of one in which nothing is yet. Only reads.
    pub(crate) fn version(&self, connection: &Connection) -> Result<i64, Fault> {
        let version = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
        match version {
            0 => is_new(connection)?,
            known if (1..=self.schema).contains(&known) => {
                for ask in (self.asks)(known) {
                    connection.prepare(&ask).map_err(foreign)?;
                }
            }
            older if older < 0 => return Err(not_ours(&format!("schema {older}"))),
            newer => return Err(Fault::Newer { version: newer, known: self.schema }),
        }
        Ok(version)
    }
}

/// What of ours is not in it is said by the question that has no answer.
fn foreign(error: rusqlite::Error) -> Fault {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => not_ours(&msg),
        rusqlite::Error::SqliteFailure(failure, Some(said))
            if failure.code == ErrorCode::Unknown =>
        {
            not_ours(&said)
        }
        other => other.into(),
    }
}

fn not_ours(why: &str) -> Fault {
    Fault::Damaged(format!("made by another program: {why}"))
}

/// Reads a database at one moment, without a lock of ours and with as little as can be opened for writing; nothing of it is changed.
pub(crate) fn read<T>(
    path: &Path,
    work: impl Fn(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    length_of(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read = |name: &Path, flags| {
        let connection = Connection::open_with_flags(name, flags)?;
        connection.busy_timeout(Duration::from_secs(2))?;
        // What follows is of one generation, whatever a daemon commits meanwhile (B-25).
        connection.execute_batch("BEGIN")?;
        work(&connection)
    };
    let with_uri = flags | OpenFlags::SQLITE_OPEN_URI;
    // Somebody may take it into use meanwhile: what cannot be read is looked at once more.
    for is_last in [false, true] {
        let Some(name) = unused(path) else { break };
        match read(&name, with_uri) {
            Err(fault) if !is_last || matches!(fault, Fault::Refused(_)) => {
                tracing::debug!(%fault, "the database is checked again");
            }
            decided => return decided,
        }
    }
    // As a reader of a log in use it would write into the file that readers and writers share: that is the last resort.
    if let Some(name) = shared(path) {
        match read(&name, with_uri) {
            Ok(found) => return Ok(found),
            Err(fault) => tracing::debug!(%fault, "the database is in use"),
        }
    }
    read(path, flags)
}

/// How long the file is; none where there is none. `SQLite` takes one of a few bytes for a new database: it is none.
fn length_of(path: &Path) -> Result<Option<u64>, Fault> {
    if !regular_file::is_there(path)? {
        return Ok(None);
    }
    match std::fs::metadata(path) {
        Ok(found) => match found.len() {
            length @ 1..512 => Err(Fault::Damaged(format!("the file has only {length} bytes"))),
            length => Ok(Some(length)),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens the file, which is made where there is none, for us alone. Also answers the version of its schema. What is not ours, or of a
/// newer program, is refused before anything is opened for writing; of the rest nothing is changed yet.
pub(crate) fn open(path: &Path, layout: &Layout) -> Result<(Connection, i64), Fault> {
    let refused = |error: std::io::Error| Fault::Refused(error.to_string());
    let length = length_of(path)?;
    // What was cut off with a journal beside it can only be read by one who also writes.
    if length.is_some_and(|length| length > 0) && !with_suffix(path, "-journal").exists() {
        match read(path, |connection| layout.version(connection)) {
            Ok(_) | Err(Fault::Refused(_)) => {}
            Err(other) => return Err(other),
        }
    }
    drop(private(path).map_err(refused)?);
    if length.is_none()
        && let Some(parent) = path.parent()
    {
        sync(parent).map_err(refused)?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(2))?;
    let version = layout.version(&connection)?;
    Ok((connection, version))
}

/// From now on what is committed is on the disk.
pub(crate) fn hold(connection: &Connection) -> Result<(), Fault> {
    let mode: String = connection.query_row("PRAGMA journal_mode=WAL", (), |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::Refused(format!(
            "the file system does not support a write-ahead log (mode {mode})"
        )));
    }
    connection.execute_batch("PRAGMA synchronous=FULL; PRAGMA cell_size_check=ON")?;
    if connection.is_readonly(MAIN_DB)? {
        // The file itself can be written to: this is what a damaged header gives.
        return Err(Fault::Damaged("the format is read-only".to_owned()));
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
    Err(not_ours("the database has tables but no version"))
}

/// Whether its pages are whole.
pub(crate) fn check(connection: &Connection) -> Result<(), Fault> {
    let answer: String = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    if answer == "ok" { Ok(()) } else { Err(Fault::Damaged(answer)) }
}

/// The same of one that is open here already, through a connection that only reads.
pub(crate) fn check_beside(path: &Path) -> Result<(), Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch("PRAGMA cell_size_check=ON")?;
    check(&connection)
}

/// A log of no more bytes than its header has holds nothing. One that only reads, and finds a header alone, waits ten seconds for
/// what could follow: `SQLite` takes it for one that is begun anew just then.
const LOG_HEADER: u64 = 32;

/// Whether there is a log that may hold anything. One whose header is of no log of `SQLite` holds nothing for who writes either, and
/// would be waited for too.
fn is_log(path: &Path) -> bool {
    let Ok(mut log) = std::fs::File::open(path) else { return path.exists() };
    if !log.metadata().is_ok_and(|log| log.len() > LOG_HEADER) {
        return false;
    }
    let mut header = [[0; 4]; 3];
    if let Err(error) = log.read_exact(header.as_flattened_mut()) {
        tracing::debug!(%error, "the header of the log cannot be read");
        return true;
    }
    let [magic, _, page] = header.map(u32::from_be_bytes);
    (magic | 1) == LOG_MAGIC && page.is_power_of_two() && (512..=65536).contains(&page)
}

/// What a log begins with; the last bit says how its sums are made.
const LOG_MAGIC: u32 = 0x377f_0683;

/// The name under which `SQLite` reads a database, and opens nothing for writing, while nobody uses it: nothing is in its log.
pub(crate) fn unused(path: &Path) -> Option<PathBuf> {
    let log = PathBuf::from(format!("{}-wal", path.to_str()?));
    if is_log(&log) {
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
    let refused =
        |error: std::io::Error| Fault::Refused(format!("no backup can be stored: {error}"));
    let aside = beside(path, word);
    // An empty file is written into, and stays ours alone.
    drop(private(&aside).map_err(refused)?);
    let name = aside.to_str().ok_or_else(|| Fault::Refused("the path is not UTF-8".to_owned()))?;
    if let Err(error) = connection.execute("VACUUM INTO ?1", [name]) {
        drop(std::fs::remove_file(&aside));
        return Err(match Fault::from(error) {
            Fault::Refused(why) => Fault::Refused(format!("no backup can be stored: {why}")),
            other => other,
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
                tracing::debug!(%error, "an old backup could not be removed");
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

#[cfg(test)]
mod tests {
    use super::*;

    /// B-25: what is committed while somebody reads is not in what that one reads.
    #[test]
    fn what_is_read_is_of_one_moment() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("some.db");
        let writer = Connection::open(&path).expect("opened");
        hold(&writer).expect("held");
        writer.execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (0)").expect("written");
        let of = |open: &Connection| open.query_row("SELECT n FROM t", (), |row| row.get(0));
        let read = read(&path, |open| {
            let before: i64 = of(open)?;
            writer.execute_batch("UPDATE t SET n = n + 1").expect("committed");
            Ok((before, of(open)?))
        });
        let (before, after) = read.expect("read");
        assert_eq!(before, after);
        assert_eq!(of(&writer).expect("read"), after + 1);
    }

    /// What a kill leaves between the header of the log and what was to follow holds up nobody who reads.
    #[test]
    fn a_log_without_a_header_or_with_nothing_else_is_empty() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("some.db");
        let open = Connection::open(&path).expect("opened");
        hold(&open).expect("held");
        open.execute_batch("CREATE TABLE t (n)").expect("written");
        let log = with_suffix(&path, "-wal");
        let whole = std::fs::read(&log).expect("a log");
        assert!(unused(&path).is_none());
        drop(open);
        let no_log = [&[0], &whole[1..]].concat();
        for left in [&whole[..0], &whole[..32], &no_log] {
            std::fs::write(&log, left).expect("cut off");
            std::fs::write(with_suffix(&path, "-shm"), vec![0; 1 << 15]).expect("written");
            let name = unused(&path).expect("nothing is in its log");
            assert!(name.to_string_lossy().ends_with("?immutable=1"));
            let count = read(&path, |open| {
                Ok(open.query_row("SELECT count(*) FROM t", (), |row| row.get::<_, i64>(0))?)
            });
            assert_eq!(count.expect("read"), 0);
        }
    }
}
