//! The write-ahead log of an open database, which contains the last commits. A log that is removed while in use is
//! saved: its content is copied into the database, which a kill would otherwise leave without the last commits.
//!
//! Another program can also truncate or overwrite the log. `SQLite` would copy such content into the database, so the
//! log is given up. Commits are copied into the database after each quiet second: a log that is given up holds little.

use super::database::{Fault, with_suffix};
use crate::file_identity::FileIdentity;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// The time without a commit after which the log is copied into the database.
pub(crate) const QUIET: Duration = Duration::from_secs(1);

/// The longest time for which the log has a commit that the database lacks.
const LONGEST: Duration = Duration::from_secs(10);

/// The length below which `SQLite` never shortens a log by itself (`journal_size_limit` of the event log).
const SHRINKS_TO: u64 = 4 << 20;

/// The write-ahead log of a database that this process has open.
#[derive(Debug)]
pub(crate) struct WriteAheadLog {
    database: PathBuf,
    file: Option<FileIdentity>,
    /// The length and the time of the last change, as this process has left them.
    extent: Option<(u64, SystemTime)>,
    /// The number that changes when another connection commits.
    version: Option<i64>,
    /// The times of the first and of the last commit that may not be in the database yet.
    ahead: Option<(Instant, Instant)>,
}

impl WriteAheadLog {
    /// Records the log of a database at this path. A connection that has read the database has made the log.
    pub(crate) fn of(database: &Path) -> Self {
        // SQLite puts the log beside the file that a link leads to.
        let database = database.canonicalize().unwrap_or_else(|_| database.to_owned());
        let file = FileIdentity::of(&with_suffix(&database, "-wal")).ok();
        Self { database, file, extent: None, version: None, ahead: None }
    }

    /// Returns true unless the log was removed or replaced.
    pub(crate) fn is_in_place(&self) -> bool {
        self.file.as_ref().is_none_or(|log| log.change().is_none())
    }

    /// Records the log as this process has left it, after a commit of this connection.
    pub(crate) fn note_commit(&mut self, connection: &Connection) {
        let now = Instant::now();
        self.note_extent(connection);
        self.ahead = Some((self.ahead.map_or(now, |(first, _)| first), now));
    }

    /// Records the log as this process has left it. A transaction that was rolled back may have written, too.
    pub(crate) fn note_extent(&mut self, connection: &Connection) {
        let extent = self.file.as_ref().and_then(|file| extent(file.path()));
        let has_shrunk = self
            .extent
            .zip(extent)
            .is_some_and(|((before, _), (length, _))| length < before.min(SHRINKS_TO));
        // A log that another program has truncated during the commit is noticed at the next check.
        if !has_shrunk {
            self.extent = extent;
        }
        self.version = version(connection);
    }

    /// Allows the next commit to leave a shorter log.
    pub(crate) fn allow_truncation(&mut self) {
        self.extent = None;
    }

    /// Returns true if another program has truncated or overwritten the log since the last commit. The file is not
    /// opened, see [`is_emptied`].
    pub(crate) fn is_overwritten(&self, connection: &Connection) -> bool {
        let (Some(file), Some(left)) = (&self.file, self.extent) else { return false };
        let is_other = extent(file.path()).is_some_and(|now| now != left);
        // The fence judges commits of another steadfast. A log that cannot be read has none.
        let is_commit = || version(connection).is_some_and(|now| Some(now) != self.version);
        is_other && self.is_in_place() && !is_commit()
    }

    /// Returns true if the log may have a commit that the database lacks.
    pub(crate) fn is_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    /// Copies the log into the database after a quiet second, or when its oldest commit has waited for long. A log
    /// that was overwritten must not be copied.
    pub(crate) fn copy_when_quiet(&mut self, connection: &Connection) {
        let is_due = |(first, last): (Instant, Instant)| {
            last.elapsed() >= QUIET || first.elapsed() >= LONGEST
        };
        if self.ahead.is_some_and(is_due) {
            self.copy(connection);
        }
    }

    /// Copies the log into the database. A failure is harmless, and the copy is tried again later.
    pub(crate) fn copy(&mut self, connection: &Connection) {
        let sql = "PRAGMA wal_checkpoint(PASSIVE)";
        let numbers = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
        };
        match connection.query_row(sql, (), numbers) {
            Ok((0, frames, copied)) if frames == copied => self.ahead = None,
            other => {
                tracing::debug!(?other, "the log is not in the database yet");
                self.ahead = Some((Instant::now(), Instant::now()));
            }
        }
    }

    /// Closes a connection without copying its overwritten log, and removes the log. Returns true if the database may
    /// lack commits.
    ///
    /// # Errors
    ///
    /// Returns a fault if the log cannot be removed.
    pub(crate) fn give_up(self, connection: Connection) -> Result<bool, Fault> {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        drop(connection);
        for suffix in ["-wal", "-shm"] {
            match std::fs::remove_file(with_suffix(&self.database, suffix)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error.into());
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(self.is_ahead())
    }

    /// Copies the content of a removed log into the database. Returns true if the log was removed: the connection must
    /// then be opened again before the next commit, which would go into the removed file.
    ///
    /// # Errors
    ///
    /// Returns a fault if the content cannot be copied now; the connection must stay open until a later attempt.
    pub(crate) fn save(&self, connection: &Connection) -> Result<bool, Fault> {
        let Some(log) = self.file.as_ref().filter(|log| log.change().is_some()) else {
            return Ok(false);
        };
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let is_busy: bool = connection.query_row(sql, (), |row| row.get(0))?;
        if is_busy {
            let why = "the write-ahead log was removed, and a reader delays its recovery";
            return Err(Fault::Refused(why.to_owned()));
        }
        let path = log.path().display();
        tracing::warn!(
            event = "log_saved",
            "{path} was removed while in use; its content was saved in the database"
        );
        Ok(true)
    }
}

/// Returns the length of a file and the time of its last change.
fn extent(path: &Path) -> Option<(u64, SystemTime)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.len(), found.modified().ok()?))
}

/// Returns the number that changes when another connection commits.
fn version(connection: &Connection) -> Option<i64> {
    connection.query_row("PRAGMA data_version", (), |row| row.get(0)).ok()
}

/// The length of the header of a `SQLite` database, in bytes. A database in use is never shorter.
const HEADER: u64 = 100;

/// Returns true if somebody has emptied the file of an open database: its commits would be lost with the process.
///
/// The file is not opened: to close it would release the locks of `SQLite` in this process, and another process would
/// then truncate the index of the log, which this process has mapped.
pub(crate) fn is_emptied(database: &Path) -> bool {
    std::fs::metadata(database).is_ok_and(|found| found.len() < HEADER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::database::make_durable;

    fn count(path: &Path) -> i64 {
        let connection = Connection::open(path).expect("opened");
        connection.query_row("SELECT count(*) FROM t", (), |row| row.get(0)).expect("read")
    }

    #[test]
    fn a_removed_log_is_saved_in_the_database() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("some.db");
        let open = Connection::open(&path).expect("opened");
        make_durable(&open).expect("configured");
        open.execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (1)").expect("written");
        let log = WriteAheadLog::of(&path);
        assert!(!log.save(&open).expect("in place"));
        for suffix in ["-wal", "-shm"] {
            std::fs::remove_file(with_suffix(&path, suffix)).expect("removed");
        }
        open.execute_batch("INSERT INTO t VALUES (2)").expect("written into the removed file");
        assert!(!log.is_in_place());
        assert!(log.save(&open).expect("saved"));
        // A kill closes no connection.
        let copy = directory.path().join("copy.db");
        std::fs::copy(&path, &copy).expect("copied");
        assert_eq!(count(&copy), 2);
    }

    /// An overwritten log is noticed, also one of the same length, and it never reaches the database.
    #[test]
    fn an_overwritten_log_does_not_reach_the_database() {
        for damage in [|length: usize| vec![7; length], |_| Vec::new()] {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("some.db");
            let open = Connection::open(&path).expect("opened");
            make_durable(&open).expect("configured");
            open.execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (1)").expect("written");
            let mut log = WriteAheadLog::of(&path);
            log.note_commit(&open);
            log.copy(&open);
            assert!(!log.is_ahead() && !log.is_overwritten(&open));
            open.execute_batch("INSERT INTO t VALUES (2)").expect("written");
            log.note_commit(&open);
            assert!(!log.is_overwritten(&open));
            let length = std::fs::read(with_suffix(&path, "-wal")).expect("a log").len();
            std::thread::sleep(Duration::from_millis(20));
            std::fs::write(with_suffix(&path, "-wal"), damage(length)).expect("overwritten");
            assert!(log.is_overwritten(&open));
            assert!(log.give_up(open).expect("removed"), "a commit is not in the database");
            assert_eq!(count(&path), 1);
        }
    }

    /// A commit of another connection is no damage.
    #[test]
    fn a_commit_of_another_connection_is_no_damage() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("some.db");
        let open = Connection::open(&path).expect("opened");
        make_durable(&open).expect("configured");
        open.execute_batch("CREATE TABLE t (n)").expect("written");
        let mut log = WriteAheadLog::of(&path);
        log.note_commit(&open);
        std::thread::sleep(Duration::from_millis(20));
        let other = Connection::open(&path).expect("opened");
        other.execute_batch("INSERT INTO t VALUES (2)").expect("written");
        assert!(!log.is_overwritten(&open));
    }
}
