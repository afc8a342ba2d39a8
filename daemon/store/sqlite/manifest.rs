//! The manifest of a database: the program that wrote it last, the machine, and known violations.

use super::super::database::Fault;
use super::checksums::sum_of_texts;
use super::migrations;
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// The table with one row; schemas before the fifth have none.
pub(super) const TABLE: &str = "
CREATE TABLE manifest (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    program TEXT NOT NULL,
    machine TEXT,
    unsound TEXT,
    sum INTEGER NOT NULL,
    written_at INTEGER
) STRICT;";

/// The first schema whose manifest contains the time of writing.
pub(super) const HAS_TIME: i64 = 8;

/// The one row of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The version of the program that opened the database last.
    pub(super) program: String,
    /// The machine of that program, if it has an ID.
    pub(super) machine: Option<String>,
    /// The violations that writes have left, by identity. An empty map is a sound generation.
    pub(super) unsound: BTreeMap<String, Vec<String>>,
}

impl Manifest {
    /// Returns the manifest of this program on a machine, without violations.
    pub(super) fn on(machine: Option<String>) -> Self {
        Self { program: env!("CARGO_PKG_VERSION").to_owned(), machine, unsound: BTreeMap::new() }
    }

    /// Reads the manifest; the default for an older schema.
    pub(super) fn read(connection: &Connection) -> Result<Self, Fault> {
        let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
        if version < 5 {
            return Ok(Self::default());
        }
        let sql = "SELECT program, machine, unsound, sum FROM manifest";
        let (program, machine, unsound, sum) = connection.query_row(sql, (), |row| {
            let text = |index| row.get::<_, Option<String>>(index);
            Ok((row.get::<_, String>(0)?, text(1)?, text(2)?, row.get::<_, i64>(3)?))
        })?;
        let texts = [Some(program.as_str()), machine.as_deref(), unsound.as_deref()];
        let time = Self::written_at(connection)?;
        if sum.cast_unsigned() != sum_of(&texts, time) {
            return Err(Fault::Damaged("the checksum of the manifest does not match".to_owned()));
        }
        let list =
            unsound.map_or_else(|| Some(BTreeMap::new()), |text| serde_json::from_str(&text).ok());
        let unsound = list.ok_or_else(|| {
            Fault::Damaged("the manifest has no list of damaged records".to_owned())
        })?;
        Ok(Self { program, machine, unsound })
    }

    /// Returns the time of writing, in seconds since 1970; none if an older program wrote the database.
    pub(super) fn written_at(connection: &Connection) -> Result<Option<u64>, Fault> {
        if migrations::version(connection)? < HAS_TIME {
            return Ok(None);
        }
        let sql = "SELECT written_at FROM manifest";
        let time: Option<i64> = connection.query_row(sql, (), |row| row.get(0))?;
        Ok(time.map(i64::cast_unsigned))
    }

    /// Writes the stored manifest again with the present time.
    pub(super) fn renew(connection: &Connection) -> Result<(), Fault> {
        Self::read(connection)?.write(connection)
    }

    /// Writes the manifest with the present time.
    pub(super) fn write(&self, connection: &Connection) -> Result<(), Fault> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unsound =
            serde_json::to_string(&self.unsound).ok().filter(|_| !self.unsound.is_empty());
        let texts = [Some(self.program.as_str()), self.machine.as_deref(), unsound.as_deref()];
        let sql = "INSERT OR REPLACE INTO manifest (id, program, machine, unsound, sum, written_at)
                   VALUES (1, ?1, ?2, ?3, ?4, ?5)";
        connection.prepare_cached(sql)?.execute(params![
            self.program,
            self.machine,
            unsound,
            sum_of(&texts, Some(now.as_secs())).cast_signed(),
            now.as_secs().cast_signed()
        ])?;
        Ok(())
    }

    /// Returns all violations, a line each.
    pub(super) fn lines(&self) -> Vec<String> {
        self.unsound.values().flatten().cloned().collect()
    }
}

/// Returns the checksum of the row. A row without a time has the sum that older programs wrote.
fn sum_of(texts: &[Option<&str>; 3], time: Option<u64>) -> u64 {
    let time = time.map(|seconds| seconds.to_string());
    let [program, machine, unsound] = *texts;
    match &time {
        Some(time) => sum_of_texts(&[program, machine, unsound, Some(time)]),
        None => sum_of_texts(texts),
    }
}
