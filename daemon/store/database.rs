//! Functions shared by the databases of a state directory: opening a database, making commits durable, detecting
//! damage, and moving a damaged database aside.

pub(crate) use super::state_dir::{private, sync};

use super::regular_file;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, Transaction};
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// The reason for which a database cannot be used.
#[derive(Debug, Error)]
pub(crate) enum Fault {
    /// The content is not what was written.
    #[error("damaged: {0}")]
    Damaged(String),
    /// A newer program made the database. The file is left as it is, since its content is unknown.
    #[error("made by a newer steadfast (schema {version}, this one supports {known})")]
    Newer {
        /// The schema of the database.
        version: i64,
        /// The newest schema known to this program.
        known: i64,
    },
    /// The database cannot be read or written now.
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
        // A lack of memory or room is no damage, whatever statement it stopped.
        let passing = [ErrorCode::OutOfMemory, ErrorCode::DiskFull, ErrorCode::SystemIoFailure];
        let is_passing = code.is_some_and(|code| passing.contains(&code));
        if detail == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) {
            // SQLite could not create the shared-memory file (`-shm`) beside the log.
            return Self::Refused("no space left: the file system is full".to_owned());
        }
        if code == Some(ErrorCode::ConstraintViolation) {
            // Our own rows never violate a constraint of each other.
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
        // SQLite reports a missing table or column as an unknown error.
        let bad = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase, ErrorCode::Unknown];
        if !is_passing && (shape || code.is_some_and(|code| bad.contains(&code))) {
            Self::Damaged(error.to_string())
        } else {
            Self::Refused(error.to_string())
        }
    }
}

/// The layout of one of our databases, by which it is distinguished from one of another program.
pub(crate) struct Layout {
    /// The newest schema that this program knows.
    pub(crate) schema: i64,
    /// Queries that every database of a schema can answer: they name its tables and columns.
    pub(crate) asks: fn(version: i64) -> Vec<String>,
    /// Queries that only a later schema can answer.
    pub(crate) later: fn(version: i64) -> Vec<String>,
}

impl Layout {
    /// Returns the schema of a database, 0 for an empty one. The database is only read.
    pub(crate) fn version(&self, connection: &Connection) -> Result<i64, Fault> {
        let version = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
        match version {
            0 => is_new(connection)?,
            known if (1..=self.schema).contains(&known) => {
                for ask in (self.asks)(known) {
                    connection.prepare(&ask).map_err(foreign)?;
                }
                if let Some(ask) =
                    (self.later)(known).iter().find(|ask| connection.prepare(ask).is_ok())
                {
                    return Err(not_ours(&format!("schema {known} cannot answer `{ask}`")));
                }
            }
            older if older < 0 => return Err(not_ours(&format!("schema {older}"))),
            newer => return Err(Fault::Newer { version: newer, known: self.schema }),
        }
        Ok(version)
    }
}

/// Converts the error of a layout query: a missing table or column means that the database is not ours.
fn foreign(error: rusqlite::Error) -> Fault {
    match error {
        rusqlite::Error::SqlInputError { error, msg, .. } if error.code == ErrorCode::Unknown => {
            not_ours(&msg)
        }
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

/// Reads a database in one transaction, without a lock, opening as little as possible for writing. The database is not
/// changed.
pub(crate) fn read<T>(
    path: &Path,
    work: impl Fn(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    length_of(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let read = |name: &Path, flags| {
        let connection = Connection::open_with_flags(name, flags)?;
        connection.busy_timeout(Duration::from_secs(2))?;
        // All reads are of one generation, whatever a daemon commits meanwhile (B-25).
        connection.execute_batch("BEGIN")?;
        work(&connection)
    };
    let with_uri = flags | OpenFlags::SQLITE_OPEN_URI;
    // Somebody may start to use the database meanwhile, so a failed read is repeated once.
    for is_last in [false, true] {
        let Some(name) = unused(path) else { break };
        match read(&name, with_uri) {
            Err(fault) if !is_last || matches!(fault, Fault::Refused(_)) => {
                tracing::debug!(%fault, "the database is checked again");
            }
            decided => return decided,
        }
    }
    // The last resort: a reader of a log in use writes into the file that readers and writers share.
    if let Some(name) = shared(path) {
        match read(&name, with_uri) {
            Ok(found) => return Ok(found),
            Err(fault) => tracing::debug!(%fault, "the database is in use"),
        }
    }
    read(path, flags)
}

/// Returns the length of the file, or none if there is no file. A file of a few bytes, which `SQLite` would take for a
/// new database, is an error.
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

/// Opens a database for this process alone, and makes it if it is missing. Also returns the version of its schema.
///
/// A database that is not ours, or of a newer program, is rejected before anything is opened for writing. Nothing is
/// changed yet.
pub(crate) fn open(path: &Path, layout: &Layout) -> Result<(Connection, i64), Fault> {
    let refused = |error: std::io::Error| Fault::Refused(error.to_string());
    let length = length_of(path)?;
    // A database with a leftover rollback journal can be read only by a process that also writes.
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

/// Configures a connection so that every commit is durable when it returns.
pub(crate) fn make_durable(connection: &Connection) -> Result<(), Fault> {
    let mode: String = connection.query_row("PRAGMA journal_mode=WAL", (), |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::Refused(format!(
            "the file system does not support a write-ahead log (mode {mode})"
        )));
    }
    // A small page cache, in KiB: the kernel has the pages too, and a daemon at rest keeps its cache.
    connection.execute_batch(
        "PRAGMA synchronous=FULL; PRAGMA cell_size_check=ON; PRAGMA cache_size=-256",
    )?;
    if connection.is_readonly(MAIN_DB)? {
        // The file itself is writable, so a damaged header is the reason.
        return Err(Fault::Damaged("the format is read-only".to_owned()));
    }
    Ok(())
}

/// Makes the tables of a database without a version. A database without a version that is not empty is damaged.
pub(crate) fn make(transaction: &Transaction<'_>, tables: &str) -> Result<(), Fault> {
    is_new(transaction)?;
    Ok(transaction.execute_batch(tables)?)
}

/// Returns an error unless a database without a version is empty.
pub(crate) fn is_new(connection: &Connection) -> Result<(), Fault> {
    let count: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
    if count == 0 {
        return Ok(());
    }
    Err(not_ours("the database has tables but no version"))
}

/// Checks the pages of a database.
pub(crate) fn check(connection: &Connection) -> Result<(), Fault> {
    let answer: String = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    if answer == "ok" { Ok(()) } else { Err(Fault::Damaged(answer)) }
}

/// Checks the pages of a database that is open in this process, through a second, read-only connection.
pub(crate) fn check_beside(path: &Path) -> Result<(), Fault> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.execute_batch("PRAGMA cell_size_check=ON")?;
    check(&connection)
}

/// The size of a log that contains only its header, and so no data. A reader that finds such a log waits ten seconds,
/// because `SQLite` assumes that a writer is just starting it.
const LOG_HEADER: u64 = 32;

/// Returns true if a log may contain data. A log whose header is not of `SQLite` contains nothing for a writer either,
/// and a reader would wait for it, too.
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

/// The first bytes of a log; the last bit selects the byte order of its checksums.
const LOG_MAGIC: u32 = 0x377f_0683;

/// Returns the URI with which `SQLite` reads a database without opening anything for writing; none if the log may
/// contain data.
pub(crate) fn unused(path: &Path) -> Option<PathBuf> {
    let log = PathBuf::from(format!("{}-wal", path.to_str()?));
    if is_log(&log) {
        return None;
    }
    named(path, "immutable=1")
}

/// Returns the URI with which `SQLite` reads a database in use without opening anything for writing, not even the
/// shared-memory file.
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

/// The number of copies with one word that are stored beside a database.
const COPIES: usize = 3;

/// Renames a damaged database and its files, so that it can be examined. Returns the new path.
pub(crate) fn move_aside(path: &Path) -> std::io::Result<PathBuf> {
    let aside = beside(path, "bad");
    // The log is renamed first: a database must never be combined with the log of another.
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

/// Makes renames beside the database durable.
pub(crate) fn sync_beside(path: &Path) -> std::io::Result<()> {
    path.parent().map_or(Ok(()), sync)
}

/// Removes a database with its files, if it exists.
pub(crate) fn remove(path: &Path) -> std::io::Result<()> {
    for suffix in PARTS {
        match std::fs::remove_file(with_suffix(path, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Stores a copy of the database beside it, as it is now. `word` is part of its name and gives the reason.
pub(crate) fn copy_aside(
    connection: &Connection,
    path: &Path,
    word: &str,
) -> Result<PathBuf, Fault> {
    let refused =
        |error: std::io::Error| Fault::Refused(format!("no backup can be stored: {error}"));
    let aside = beside(path, word);
    // SQLite writes into the empty file, which keeps its private mode.
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

/// The suffixes of the files of a database, the database itself last.
const PARTS: [&str; 3] = ["-wal", "-shm", ""];

/// Returns an unused name that sorts after all earlier ones.
fn beside(path: &Path, word: &str) -> PathBuf {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = format!("{word}-{}", since.as_secs());
    // The number follows the largest one of this second; gaps are not reused.
    let last = copies(path, &now).pop();
    let last = last.and_then(|name| name.rsplit_once('-')?.1.parse::<u32>().ok());
    let count = last.map_or(0, |last| last + 1);
    with_suffix(path, &format!(".{now}-{count:03}"))
}

/// Returns the copies with this word, oldest first, without their log files.
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

/// Removes all but the newest copies.
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

/// Returns the path with a suffix appended to its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B-25: a commit during a read is not visible to that read.
    #[test]
    fn reads_see_one_generation() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("some.db");
        let writer = Connection::open(&path).expect("opened");
        make_durable(&writer).expect("held");
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

    /// A log that a kill left with an incomplete header, or with nothing but a header, delays no reader.
    #[test]
    fn a_log_without_a_header_or_with_nothing_else_is_empty() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("some.db");
        let open = Connection::open(&path).expect("opened");
        make_durable(&open).expect("held");
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
