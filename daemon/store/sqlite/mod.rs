//! The store on disk: one `SQLite` database (WAL, `synchronous=FULL`) in a directory of its own.
//!
//! Every row carries a checksum and the whole a digest over all rows: a database that was damaged is never taken for
//! another state (B-11); it stays as it is until the operator has it repaired. What is whole and breaks a rule is put right when it is
//! loaded, and a copy is kept beside.

mod checksums;
mod deferred_open;
mod fence;
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
use super::regular_file;
use super::replay::{Records, fold, settle};
use super::state_dir;
use super::state_dir::StateLock;
use super::{Entry, Key, Store, StoreError, StoredState};
use deferred_open::Seen;
use manifest::Manifest;
use read_snapshot::Generation;
use rows::Batch;
use rusqlite::{Connection, TransactionBehavior};
use schema::LAYOUT;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What this program writes, and the newest that it reads.
const SCHEMA: i64 = 8;

/// Keeps entries in `state.db` below the state directory, and holds the directory.
#[derive(Debug)]
pub struct SqliteStore {
    /// None between a handle that was given up and the next that could be opened, and before anything was to be written.
    connection: Option<Connection>,
    /// What was only read so far, until it is taken over.
    seen: Option<Seen>,
    /// What was read when the database was verified, until it is told or anything is written: reading it all twice would
    /// cost a start as much again.
    verified: Option<Records>,
    manifest: Manifest,
    path: PathBuf,
    readers: RecordReaders,
    mended: RepairReport,
    /// Held as long as this value lives.
    hold: Arc<StateLock>,
}

impl SqliteStore {
    /// Opens the store of a state directory, which is made where it is missing. A damaged database is refused and left as it is.
    pub fn open(state_directory: &Path) -> Result<Self, StoreError> {
        Self::open_held(Arc::new(StateLock::take(state_directory)?), RecordReaders::default())
    }

    /// The same of one that is held already. What breaks a rule is put right, and the one who reads is told.
    pub fn open_held(hold: Arc<StateLock>, readers: RecordReaders) -> Result<Self, StoreError> {
        Self::open_on(hold, readers, state_dir::machine())
    }

    /// The same on a machine of this name.
    pub fn open_on(
        hold: Arc<StateLock>,
        readers: RecordReaders,
        machine: Option<String>,
    ) -> Result<Self, StoreError> {
        let path = hold.directory().join(state_dir::DATABASE);
        hold.placement().forget_database();
        hold.check_place()?;
        let opened = connect(&path).and_then(|mut opened| {
            let mended = repair::at_load(&mut opened, &path, (&hold, &readers), machine)?;
            Ok((opened, mended))
        });
        let (opened, mended) = opened.map_err(|fault| refusal(&path, fault))?;
        replace::forget(&path);
        hold.placement().note_database(&path);
        for line in mended.lines() {
            (readers.report)(integrity::REPAIRED, line);
        }
        let Opened { connection, records: kept, manifest } = opened;
        tell_strangers(&kept, &readers);
        let (connection, verified) = (Some(connection), Some(kept));
        Ok(Self { connection, seen: None, verified, manifest, path, readers, mended, hold })
    }

    /// Whether something is kept in this state directory.
    #[must_use]
    pub fn is_there(state_directory: &Path) -> bool {
        state_directory.join(state_dir::DATABASE).exists() || state_dir::has_key(state_directory)
    }

    /// The key of the hashes of this state directory: made where there is none and nothing is kept yet. What is kept without its key
    /// is damaged: another one would make all that was hashed count as changed.
    pub fn key(state_directory: &Path) -> Result<Key, StoreError> {
        let key = read_only::key_of(state_directory, || read_only::holds_rows(state_directory))?;
        key.map_or_else(|| state_dir::make_key(state_directory), Ok)
    }

    /// The same, for one who only looks: none where there is none.
    #[must_use]
    pub fn peek_key(state_directory: &Path) -> Option<Key> {
        state_dir::peek_key(state_directory)
    }

    /// What was put right when it was opened.
    pub fn mended(&self) -> &RepairReport {
        &self.mended
    }

    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        if let Some(seen) = self.seen {
            let taken = deferred_open::take_over(&self.path, &self.hold, seen);
            self.connection = Some(taken.map_err(|fault| refusal(&self.path, fault))?);
            self.seen = None;
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
        // Kept now, so that an end that comes later clears nothing that is still owed. Where there is no room, what is
        // told back is right all the same, and the next recall finds it again (B-12).
        let hold = Arc::clone(&self.hold);
        let written = self.with(|open| write_settled(open, &hold, (&before, &in_flight)));
        if let Err(error) = written {
            tracing::warn!(%error, "cannot record what the last run left behind");
        }
        Ok(self.readers.only_known(kept.recalled()))
    }

    fn commit(&mut self, batch: &[Entry]) -> Result<(), StoreError> {
        self.verified = None;
        let (readers, hold) = (self.readers.clone(), Arc::clone(&self.hold));
        let mut manifest = self.manifest.clone();
        let found = self.with(|connection| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let epoch = fence::guard(&transaction, &hold)?;
            // What is written into a removed file is lost.
            hold.check_place().map_err(|lost| Fault::Refused(lost.to_string()))?;
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
                // In the same transaction: no reader takes this generation for a good one (B-20).
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

    fn reopen(&mut self) -> Result<(), StoreError> {
        // Dropped first: after a failed sync nothing may be asked of the old handle again.
        drop(self.connection.take());
        self.verified = None;
        if self.seen.is_some() {
            // It was not taken over yet: what comes next does that.
            return Ok(());
        }
        self.hold.check_place()?;
        match connect(&self.path) {
            Ok(opened) => {
                self.connection = Some(opened.connection);
                self.manifest = opened.manifest;
                Ok(())
            }
            // Not mended while we run: nothing is recorded, so nothing is changed, until a restart.
            Err(fault) => Err(refusal(&self.path, fault)),
        }
    }
}

/// Says what is kept of kinds that are not known here.
fn tell_strangers(kept: &Records, readers: &RecordReaders) {
    for why in kept.records.keys().filter_map(|name| Some((name, (readers.kind)(name)?))) {
        let line = format!("{}: {}; the record stays unchanged", why.0, why.1);
        (readers.report)(integrity::LEFT_ALONE, &line);
    }
}

/// Judges what a batch touches, and notes in the manifest what is not as it must be, and what is so again. Answers what is to be told;
/// nothing where the manifest stays as it is.
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
    hold: &StateLock,
    (before, in_flight): (&Records, &[String]),
) -> Result<(), Fault> {
    debug_assert!(in_flight.iter().all(|identity| before.records.contains_key(identity)));
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let epoch = fence::guard(&transaction, hold)?;
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

/// Makes a new database where the one before was moved aside.
fn begin_anew(path: &Path) -> Result<Opened, Fault> {
    connect_to(path, false)
}

/// Opens the database, makes its tables where it is new, and verifies everything in it. The key beside it is made after it: where
/// there is one, there was a state.
fn connect(path: &Path) -> Result<Opened, Fault> {
    let was_there = path.parent().is_some_and(state_dir::has_key);
    if was_there && let Some(gone) = gone(path)? {
        // Not even opened: the log of an empty database would be deleted.
        return Err(gone);
    }
    connect_to(path, was_there)
}

/// Why there is nothing to read, if so: it is missing, or empty.
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

/// One without a version beside a key: what was in it is lost.
fn no_tables() -> Fault {
    Fault::Damaged("the database has no tables".to_owned())
}

/// The same of one that may be new.
fn connect_to(path: &Path, was_there: bool) -> Result<Opened, Fault> {
    let (mut connection, version) = database::open(path, &LAYOUT)?;
    if version == 0 && was_there {
        return Err(no_tables());
    }
    hold(&connection)?;
    if version == 0 {
        rows::create(&mut connection, SCHEMA)?;
    }
    if (1..SCHEMA).contains(&version) {
        // What cannot be read is not brought to another schema.
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

/// From now on what is committed is on the disk, and what takes the place of something leaves nothing of it: it may have been a secret
/// in clear (B-26).
fn hold(connection: &Connection) -> Result<(), Fault> {
    database::hold(connection)?;
    Ok(connection.query_row("PRAGMA secure_delete=ON", (), |_| Ok(()))?)
}

/// What is kept without its key is damaged.
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
