//! The write-ahead log of an open database, which contains the last commits. A log that is removed while in use is
//! saved: its content is copied into the database, which a kill would otherwise leave without the last commits.

use super::database::{Fault, with_suffix};
use crate::file_identity::FileIdentity;
use rusqlite::Connection;
use std::path::Path;

/// The write-ahead log of a database that this process has open.
#[derive(Debug)]
pub(crate) struct WriteAheadLog(Option<FileIdentity>);

impl WriteAheadLog {
    /// Records the log of a database at this path. A connection that has read the database has made the log.
    pub(crate) fn of(database: &Path) -> Self {
        // SQLite puts the log beside the file that a link leads to.
        let database = database.canonicalize().unwrap_or_else(|_| database.to_owned());
        Self(FileIdentity::of(&with_suffix(&database, "-wal")).ok())
    }

    /// Returns true unless the log was removed or replaced.
    pub(crate) fn is_in_place(&self) -> bool {
        self.0.as_ref().is_none_or(|log| log.change().is_none())
    }

    /// Copies the content of a removed log into the database. Returns true if the log was removed: the connection must
    /// then be opened again before the next commit, which would go into the removed file.
    ///
    /// # Errors
    ///
    /// Returns a fault if the content cannot be copied now; the connection must stay open until a later attempt.
    pub(crate) fn save(&self, connection: &Connection) -> Result<bool, Fault> {
        let Some(log) = self.0.as_ref().filter(|log| log.change().is_some()) else {
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
    use crate::store::database::hold;

    fn count(path: &Path) -> i64 {
        let connection = Connection::open(path).expect("opened");
        connection.query_row("SELECT count(*) FROM t", (), |row| row.get(0)).expect("read")
    }

    #[test]
    fn a_removed_log_is_saved_in_the_database() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("some.db");
        let open = Connection::open(&path).expect("opened");
        hold(&open).expect("configured");
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
}
