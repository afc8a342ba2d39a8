//! The store on disk: one `SQLite` database (WAL, `synchronous=FULL`) in a directory of its own.
//!
//! Every row carries a checksum, and the whole a digest over all rows: a damaged database is never taken for another
//! state (B-11), and stays as it is until the operator repairs it. A readable record that violates a rule is repaired
//! at the load, and a copy of the database is stored beside it. A batch must never be committed without the check of
//! the fence (C-10).
//!
//! Reading order: this file, `rows` and `ownership` (records as rows), `schema`, `checksums`, `migrations`, `manifest`,
//! `fence`, `read_snapshot`, `read_only`, `deferred_open`, `log_recovery`, then `repair`, `replace` and `secure_erase`.

mod checksums;
mod deferred_open;
mod fence;
mod log_recovery;
mod manifest;
mod migrations;
mod ownership;
mod read_only;
mod read_snapshot;
mod repair;
mod replace;
mod rows;
mod schema;
mod secure_erase;

pub use read_only::{Overview, Verified};
pub use repair::{Imported, RepairReport};

use super::database::{self, Fault};
use super::integrity;
use super::integrity::RecordReaders;
use super::key_check;
use super::regular_file;
use super::replay::{Records, fold, settle};
use super::state_dir;
use super::state_dir::StateLock;
use super::write_ahead_log::WriteAheadLog;
use super::{Entry, Key, Store, StoreError, StoredState};
use deferred_open::Seen;
use manifest::Manifest;
use read_snapshot::Generation;
use rows::Batch;
use rusqlite::{Connection, TransactionBehavior};
use schema::LAYOUT;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The schema that this program writes, and the newest that it reads.
const SCHEMA: i64 = 9;

/// A store that writes entries to `state.db` in the state directory, and holds the directory.
#[derive(Debug)]
pub struct SqliteStore {
    /// None after a handle was given up, until the next one is open, and before the first write of a deferred open.
    connection: Option<Connection>,
    /// The write-ahead log of this connection; none without a connection.
    log: Option<WriteAheadLog>,
    /// The committed entries that may be in the log alone, and are written again if the log is overwritten.
    unsaved: Vec<Entry>,
    /// The log was given up, and the unsaved entries are not written again yet.
    is_log_lost: bool,
    /// The state as it was read, until the first write takes it over.
    seen: Option<Seen>,
    /// The records read by the verification, until they are returned or anything is written. Reading them twice would
    /// double the time of a start.
    verified: Option<Records>,
    manifest: Manifest,
    path: PathBuf,
    readers: RecordReaders,
    repaired: RepairReport,
    /// The lock of the directory, held as long as this value lives.
    state_lock: Arc<StateLock>,
}

impl SqliteStore {
    /// Opens the store of a state directory, and makes it if it is missing.
    ///
    /// # Errors
    ///
    /// Returns an error for a damaged database, which is left as it is.
    pub fn open(state_directory: &Path) -> Result<Self, StoreError> {
        Self::open_held(Arc::new(StateLock::take(state_directory)?), RecordReaders::default())
    }

    /// Opens the store of a locked state directory. Records that violate a rule are repaired and reported to `readers`.
    ///
    /// # Errors
    ///
    /// Returns an error for a damaged database, which is left as it is, and for one of a newer program.
    pub fn open_held(
        state_lock: Arc<StateLock>,
        readers: RecordReaders,
    ) -> Result<Self, StoreError> {
        Self::open_on(state_lock, readers, state_dir::machine())
    }

    /// Opens the store of a locked state directory on a machine with this ID.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::open_held`].
    pub fn open_on(
        state_lock: Arc<StateLock>,
        readers: RecordReaders,
        machine: Option<String>,
    ) -> Result<Self, StoreError> {
        let path = state_lock.directory().join(state_dir::DATABASE);
        state_lock.placement().forget_database();
        state_lock.check_place()?;
        let opened = connect(&path).and_then(|mut opened| {
            let repaired = repair::at_load(&mut opened, &path, (&state_lock, &readers), machine)?;
            Ok((opened, repaired))
        });
        let (opened, repaired) = opened.map_err(|fault| refusal(&path, fault))?;
        replace::forget(&path);
        state_lock.placement().note_database(&path);
        for line in repaired.lines() {
            (readers.report)(integrity::REPAIRED, line);
        }
        let Opened { connection, records: kept, manifest } = opened;
        report_unknown_kinds(&kept, &readers);
        let log = Some(log_recovery::own_log(&path, &connection));
        Ok(Self {
            connection: Some(connection),
            log,
            unsaved: Vec::new(),
            is_log_lost: false,
            seen: None,
            verified: Some(kept),
            manifest,
            path,
            readers,
            repaired,
            state_lock,
        })
    }

    /// Returns true if this state directory contains a state.
    #[must_use]
    pub fn is_there(state_directory: &Path) -> bool {
        state_directory.join(state_dir::DATABASE).exists() || state_dir::has_key(state_directory)
    }

    /// Returns the key of the hashes of this state directory, and makes it if there is neither a key nor a state.
    ///
    /// # Errors
    ///
    /// A state without its key is damaged: with another key every hashed value would count as changed.
    pub fn key(state_directory: &Path) -> Result<Key, StoreError> {
        let key = read_only::key_of(state_directory, || read_only::holds_rows(state_directory))?;
        let Some(key) = key else { return state_dir::make_key(state_directory) };
        key_check::complete(state_directory, &key.0);
        Ok(key)
    }

    /// Returns the key of the hashes without making one.
    #[must_use]
    pub fn peek_key(state_directory: &Path) -> Option<Key> {
        state_dir::peek_key(state_directory)
    }

    /// Returns the repairs made when the store was opened.
    pub fn repair_report(&self) -> &RepairReport {
        &self.repaired
    }

    /// Copies a removed write-ahead log into the database; returns true if the handle must be reopened.
    fn save_log(&self) -> Result<bool, StoreError> {
        let (Some(connection), Some(log)) = (&self.connection, &self.log) else { return Ok(false) };
        if log.is_in_place() {
            return Ok(false);
        }
        // In a removed directory nothing can be saved.
        self.state_lock.check_place()?;
        log.save(connection).map_err(|fault| refusal(&self.path, fault))
    }

    /// Writes a batch in one transaction.
    fn write_batch(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        let (readers, state_lock) = (self.readers.clone(), Arc::clone(&self.state_lock));
        let mut manifest = self.manifest.clone();
        let found = self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let epoch = fence::guard(&transaction, &state_lock)?;
            // Writes into a removed file would be lost.
            state_lock.check_place().map_err(|lost| Fault::Refused(lost.to_string()))?;
            let mut rows = Batch::begin(&transaction, epoch)?;
            for entry in batch {
                fold(entry, &mut rows).map_err(|error| Fault::Refused(error.to_string()))?;
            }
            let found = look_at(&rows, &readers, &mut manifest);
            rows.write()?;
            if batch.iter().any(|entry| matches!(entry, Entry::Wipe { .. })) {
                secure_erase::owe(&transaction)?;
            }
            if let Some(found) = &found {
                // In the same transaction: no reader takes this generation for a sound one (B-20).
                tracing::debug!(records = found.len(), "inconsistent");
                manifest.write(&transaction)?;
            }
            transaction.commit()?;
            if batch.contains(&Entry::Wipe { now: true }) {
                secure_erase::wipe(connection);
            }
            Ok(found)
        })?;
        self.manifest = manifest;
        for line in found.unwrap_or_default() {
            (self.readers.report)(integrity::UNSOUND, &line);
        }
        Ok(())
    }

    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        if let Some(seen) = self.seen {
            let taken = deferred_open::take_over(&self.path, &self.state_lock, seen);
            let taken = taken.map_err(|fault| refusal(&self.path, fault))?;
            self.log = Some(log_recovery::own_log(&self.path, &taken));
            (self.connection, self.seen) = (Some(taken), None);
        }
        let Some(connection) = self.connection.as_mut() else {
            let why = "the database could not be reopened".to_owned();
            return Err(refusal(&self.path, Fault::Refused(why)));
        };
        work(connection).map_err(|fault| refusal(&self.path, fault))
    }
}

impl Store for SqliteStore {
    fn recall(&mut self) -> Result<StoredState, StoreError> {
        let mut kept = match self.verified.take() {
            Some(verified) => verified,
            None => self.with(|connection| rows::read_all(connection))?,
        };
        let in_flight = kept.in_flight();
        if in_flight.is_empty() {
            return Ok(self.readers.only_known(kept.recalled()));
        }
        let before = kept.clone();
        for identity in &in_flight {
            settle(identity, &mut kept)?;
        }
        // Stored now, so that a later end does not delete refreshes that are still owed. On a full disk the result is
        // correct all the same, and the next recall derives it again (B-12).
        let state_lock = Arc::clone(&self.state_lock);
        let written = self.with(|open| write_settled(open, &state_lock, (&before, &in_flight)));
        match written {
            Ok(()) => self.copy_log(),
            Err(error) => {
                tracing::warn!(%error, "cannot record what the last run left behind");
            }
        }
        Ok(self.readers.only_known(kept.recalled()))
    }

    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        self.verified = None;
        self.check_log()?;
        let written = self.write_batch(batch);
        self.note_write(batch, written.is_ok());
        written
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.give_up_log()?;
        self.save_log()?;
        // Dropped first: after a failed sync the old handle must not be used again.
        drop((self.connection.take(), self.log.take()));
        self.verified = None;
        if self.seen.is_some() {
            // The state was not taken over yet: the next call does that.
            return Ok(());
        }
        self.state_lock.check_place()?;
        match connect(&self.path) {
            Ok(opened) => {
                self.log = Some(log_recovery::own_log(&self.path, &opened.connection));
                (self.connection, self.manifest) = (Some(opened.connection), opened.manifest);
                self.write_unsaved()
            }
            // Not repaired while the daemon runs: nothing is recorded, so nothing is changed, until a restart.
            Err(fault) => Err(refusal(&self.path, fault)),
        }
    }

    fn check_files(&mut self) -> Result<(), StoreError> {
        self.check_log()?;
        self.copy_log_when_quiet();
        Ok(())
    }
}

/// Reports the stored records of unknown kinds.
fn report_unknown_kinds(kept: &Records, readers: &RecordReaders) {
    for why in kept.records.keys().filter_map(|name| Some((name, (readers.kind)(name)?))) {
        let line = format!("{}: {}; the record stays unchanged", why.0, why.1);
        (readers.report)(integrity::LEFT_ALONE, &line);
    }
}

/// Judges the records that a batch touches, and notes new and resolved violations in the manifest. Returns the lines to
/// report; none if the manifest does not change.
fn look_at(
    rows: &Batch<'_>,
    readers: &RecordReaders,
    manifest: &mut Manifest,
) -> Option<Vec<String>> {
    let (touched, newest) = rows.touched();
    let (mut told, mut changed) = (Vec::new(), false);
    for (identity, record) in touched {
        let found = if *record == super::replay::Record::default() {
            Vec::new()
        } else {
            integrity::judge(identity, record, newest, readers)
        };
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        if manifest.unsound.get(identity).map_or(lines.is_empty(), |before| *before == lines) {
            continue;
        }
        changed = true;
        if lines.is_empty() {
            manifest.unsound.remove(identity);
        } else {
            told.extend(lines.iter().map(|line| format!("inconsistent, kept: {line}")));
            manifest.unsound.insert(identity.clone(), lines);
        }
    }
    changed.then_some(told)
}

fn write_settled(
    connection: &mut Connection,
    state_lock: &StateLock,
    (before, in_flight): (&Records, &[String]),
) -> Result<(), Fault> {
    debug_assert!(in_flight.iter().all(|identity| before.records.contains_key(identity)));
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let epoch = fence::guard(&transaction, state_lock)?;
    let mut rows = Batch::begin(&transaction, epoch)?;
    for identity in in_flight {
        settle(identity, &mut rows).map_err(|error| Fault::Refused(error.to_string()))?;
    }
    rows.write()?;
    Ok(transaction.commit()?)
}

/// A database that was opened and read.
struct Opened {
    connection: Connection,
    records: Records,
    manifest: Manifest,
}

/// Makes a new database after the old one was moved aside.
fn begin_anew(path: &Path) -> Result<Opened, Fault> {
    connect_to(path, false)
}

/// Opens the database, makes its tables if it is new, and verifies everything in it. The key beside it is made later,
/// so a key without a database is a loss.
fn connect(path: &Path) -> Result<Opened, Fault> {
    let was_there = path.parent().is_some_and(state_dir::has_key);
    if was_there && let Some(gone) = gone(path)? {
        // The database is not even opened: SQLite would delete the log of an empty one.
        return Err(gone);
    }
    connect_to(path, was_there)
}

/// Returns the damage if the database is missing or empty.
fn gone(path: &Path) -> Result<Option<Fault>, Fault> {
    regular_file::is_there(path)?;
    let what = match std::fs::metadata(path) {
        Ok(found) if found.len() > 0 => return Ok(None),
        Ok(_) => "the file is empty",
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "the file is missing",
        Err(error) => return Err(Fault::Refused(error.to_string())),
    };
    Ok(Some(Fault::Damaged(format!("{what}, but {} exists", state_dir::KEY))))
}

/// The error of a database without a version beside a key: its content is lost.
fn no_tables() -> Fault {
    Fault::Damaged("the database has no tables".to_owned())
}

/// Opens and verifies the database. `was_there` excludes a new one.
fn connect_to(path: &Path, was_there: bool) -> Result<Opened, Fault> {
    let (mut connection, version) = database::open(path, &LAYOUT)?;
    if version == 0 && was_there {
        return Err(no_tables());
    }
    make_durable(&connection)?;
    if version == 0 {
        rows::create(&mut connection, SCHEMA)?;
    }
    if (1..SCHEMA).contains(&version) {
        // An unreadable database is not upgraded.
        database::check(&connection)?;
        rows::read_all(&connection)?;
        database::copy_aside(&connection, path, &format!("schema-{version}"))?;
        migrations::upgrade(&mut connection, version, SCHEMA)?;
    }
    let Generation { records: kept, manifest } = Generation::held(&connection, path)?;
    if secure_erase::is_owed(&connection)? {
        secure_erase::wipe(&connection);
    }
    Ok(Opened { connection, records: kept, manifest })
}

/// Configures a connection so that commits are durable and overwritten content is erased: it may have been a plaintext
/// secret (B-26).
fn make_durable(connection: &Connection) -> Result<(), Fault> {
    database::make_durable(connection)?;
    Ok(connection.query_row("PRAGMA secure_delete=ON", (), |_| Ok(()))?)
}

/// Returns the error of a state without its key.
fn keyless(state_directory: &Path, why: String) -> StoreError {
    let path = state_directory.join(state_dir::KEY).display().to_string();
    StoreError::Damaged { path, why }
}

fn refusal(path: &Path, fault: Fault) -> StoreError {
    let path = path.display().to_string();
    match fault {
        Fault::Damaged(why) => StoreError::Damaged { path, why },
        newer @ Fault::Newer { .. } => StoreError::Newer { path, why: newer.to_string() },
        Fault::Refused(why) => StoreError::Database { path, why },
    }
}
