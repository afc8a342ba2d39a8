//! Repairs: automatic ones at a load (B-21), and those of unreadable data at the operator's request (B-24).

use super::fence;
use super::manifest::Manifest;
use super::{
    Opened, Records, SCHEMA, SqliteStore, connect, gone, migrations, refusal, replace, rows,
};
use crate::store::database;
use crate::store::database::Fault;
use crate::store::integrity;
use crate::store::integrity::{RecordReaders, Violation};
use crate::store::state_dir;
use crate::store::state_dir::StateLock;
use crate::store::{Origin, StoreError, StoredState};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The repairs made, and the path of the copy from before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    lines: Vec<String>,
    copy: Option<PathBuf>,
}

impl RepairReport {
    /// Returns a line for each repair; none if the state was sound.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns the path of the copy from before.
    #[must_use]
    pub fn copy(&self) -> Option<&Path> {
        self.copy.as_deref()
    }
}

/// Repairs records that violate a rule, and notes the program and machine. A sound state is not written.
pub(super) fn at_load(
    opened: &mut Opened,
    path: &Path,
    (state_lock, readers): (&StateLock, &RecordReaders),
    machine: Option<String>,
) -> Result<RepairReport, Fault> {
    let Opened { connection, records: kept, manifest } = opened;
    let mut repaired = RepairReport::default();
    let wrong = integrity::of_kept(kept, readers);
    let is_sound = wrong.is_empty();
    if !is_sound {
        repaired.lines = repair_all(kept, wrong, readers)?;
    }
    // A rejected owner leaves the state as it is.
    fence::take(connection, state_lock, None)?;
    if !is_sound {
        repaired.copy = Some(database::copy_aside(connection, path, "bad")?);
    }
    let adopted = adopt(kept, manifest, machine.as_deref());
    let says = Manifest::on(machine.or_else(|| manifest.machine.clone()));
    if is_sound && adopted.is_none() && says == *manifest {
        return Ok(repaired);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    fence::guard(&transaction, state_lock)?;
    if !is_sound || adopted.is_some() {
        rows::replace(&transaction, kept)?;
    }
    says.write(&transaction)?;
    transaction.commit()?;
    repaired.lines.extend(adopted);
    *manifest = says;
    Ok(repaired)
}

/// Repairs all violations, and returns a line for each.
pub(super) fn repair_all(
    kept: &mut Records,
    mut wrong: Vec<Violation>,
    readers: &RecordReaders,
) -> Result<Vec<String>, Fault> {
    let mut lines = Vec::new();
    // A repaired record may violate a rule that was not checked before.
    for _ in 0..3 {
        if let Some(damage) = wrong.iter().find(|one| one.is_damage()) {
            return Err(Fault::Damaged(damage.to_string()));
        }
        lines.extend(integrity::repair(kept, &wrong));
        wrong = integrity::of_kept(kept, readers);
    }
    wrong.first().map_or(Ok(lines), |left| Err(Fault::Damaged(left.to_string())))
}

/// Marks all objects as adopted if the state was made on another machine, as in a copied one: objects created there are
/// not ours to delete here.
pub(super) fn adopt(
    kept: &mut Records,
    manifest: &Manifest,
    machine: Option<&str>,
) -> Option<String> {
    let (before, now) = manifest.machine.as_deref().zip(machine)?;
    if before == now {
        return None;
    }
    let count = adopt_all(kept);
    Some(format!(
        "the state is from another machine ({before}; this one is {now}): its created objects are adopted and never deleted here ({count} resources)"
    ))
}

/// Marks all objects as adopted. Returns the number of objects that were marked as created.
fn adopt_all(kept: &mut Records) -> usize {
    let mut count = 0;
    for owned in kept.records.values_mut().filter_map(|record| record.owned.as_mut()) {
        if owned.origin == Some(Origin::Created) {
            Arc::make_mut(owned).origin = Some(Origin::Adopted);
            count += 1;
        }
    }
    count
}

impl SqliteStore {
    /// Repairs a state as far as possible (B-24). Readable records are preserved, and a copy of the old database stays
    /// beside it.
    ///
    /// # Errors
    ///
    /// A state of a newer program, or one that cannot be written, is an error.
    pub fn repair(
        state_lock: Arc<StateLock>,
        readers: RecordReaders,
    ) -> Result<RepairReport, StoreError> {
        Self::repair_on(state_lock, readers, state_dir::machine())
    }

    /// Repairs a state on a machine with this ID.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::repair`].
    pub fn repair_on(
        state_lock: Arc<StateLock>,
        readers: RecordReaders,
        machine: Option<String>,
    ) -> Result<RepairReport, StoreError> {
        let folder = state_lock.directory().to_owned();
        let path = folder.join(state_dir::DATABASE);
        match Self::open_on(Arc::clone(&state_lock), readers.clone(), machine.clone()) {
            Ok(mut store) => return with_key(&folder, std::mem::take(&mut store.repaired)),
            Err(StoreError::Damaged { .. }) => {}
            Err(other) => return Err(other),
        }
        let refuse = |fault| refusal(&path, fault);
        if replace::is_whole(&path) {
            let copy = replace::put_into_place(&path).map_err(refuse)?;
            let store = Self::open_on(state_lock, readers, machine)?;
            let mut lines = vec!["completing an interrupted repair".to_owned()];
            lines.extend(store.repaired.lines.iter().cloned());
            return with_key(&folder, RepairReport { lines, copy: copy.exists().then_some(copy) });
        }
        let Salvaged { mut records, lost, manifest, epoch } = match read_damaged(&path) {
            Ok(found) => found,
            Err(fault @ (Fault::Refused(_) | Fault::Newer { .. })) => return Err(refuse(fault)),
            Err(Fault::Damaged(why)) => {
                let lost = vec![format!("no records could be read: {why}")];
                Salvaged { records: Records::default(), lost, manifest: None, epoch: 0 }
            }
        };
        let mut lines: Vec<String> =
            lost.into_iter().map(|line| format!("unreadable: {line}")).collect();
        for _ in 0..3 {
            let found = integrity::of_kept(&records, &readers);
            lines.extend(integrity::repair(&mut records, &found));
        }
        lines.push(format!("recovered: {} resources", records.records.len()));
        if manifest.is_none() && !records.records.is_empty() {
            // The state may be from another machine.
            let count = adopt_all(&mut records);
            lines.push(format!(
                "the machine of the state is unknown: created objects are adopted and never deleted here ({count} resources)"
            ));
        }
        let says = Manifest::on(manifest.and_then(|manifest| manifest.machine));
        // An owner that the old database fenced off is fenced by the new one, too.
        state_lock
            .comes_after(epoch)
            .map_err(|fenced| refuse(Fault::Refused(fenced.to_string())))?;
        let copy = replace::replace(&path, &state_lock, (&records, &says)).map_err(refuse)?;
        // The open adopts a state of another machine, and verifies the result.
        let store = Self::open_on(state_lock, readers, machine)?;
        lines.extend(store.repaired.lines.iter().cloned());
        // The store holds the directory until here.
        let repaired =
            with_key(&folder, RepairReport { lines, copy: copy.exists().then_some(copy) });
        drop(store);
        repaired
    }

    /// Replaces the state with an imported one of a given machine (B-24); the old state stays beside it, at the path in
    /// the report. Exports contain no secrets: stored secrets with the same hashes are preserved.
    ///
    /// # Errors
    ///
    /// Returns an error if the state directory was lost or taken over, or cannot be written.
    pub fn import(
        state_lock: &StateLock,
        new: Imported,
        readers: &RecordReaders,
    ) -> Result<RepairReport, StoreError> {
        Self::import_on(state_lock, new, readers, state_dir::machine())
    }

    /// Imports a state on a machine with this ID.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Self::import`].
    pub fn import_on(
        state_lock: &StateLock,
        Imported { recalled, machine }: Imported,
        readers: &RecordReaders,
        here: Option<String>,
    ) -> Result<RepairReport, StoreError> {
        let path = state_lock.directory().join(state_dir::DATABASE);
        state_lock.placement().forget_database();
        state_lock.check_place()?;
        let refuse = |fault| refusal(&path, fault);
        let mut kept = Records::from(recalled);
        let mut lines = vec![format!("{} resources imported", kept.records.len())];
        if machine.is_none() || machine != here {
            let count = adopt_all(&mut kept);
            lines.push(format!(
                "the records are from another machine ({}): its created objects are adopted and never deleted here ({count} resources)",
                machine.as_deref().unwrap_or("unknown")
            ));
        }
        let says = Manifest::on(here);
        let copy = match connect(&path) {
            Ok(Opened { mut connection, records: before, .. }) => {
                keep_secrets(&mut kept, &before, readers);
                let copy = database::copy_aside(&connection, &path, "before").map_err(refuse)?;
                write_all(&mut connection, state_lock, (&kept, &says)).map_err(refuse)?;
                copy
            }
            Err(Fault::Damaged(_)) => {
                if let Ok(found) = read_damaged(&path) {
                    let after = state_lock.comes_after(found.epoch);
                    after.map_err(|fenced| refuse(Fault::Refused(fenced.to_string())))?;
                    keep_secrets(&mut kept, &found.records, readers);
                }
                replace::replace(&path, state_lock, (&kept, &says)).map_err(refuse)?
            }
            Err(refused) => return Err(refuse(refused)),
        };
        with_key(
            state_lock.directory(),
            RepairReport { lines, copy: copy.exists().then_some(copy) },
        )
    }
}

/// Makes a new key if that of the state is lost, and reports the consequences.
fn with_key(directory: &Path, mut repaired: RepairReport) -> Result<RepairReport, StoreError> {
    if let Err(why) = state_dir::found_key(directory)? {
        if super::read_only::holds_rows(directory)? {
            repaired.lines.push(format!(
                "{}: {why}; a new key is created: received values count as changed, and saved passwords are lost",
                state_dir::KEY
            ));
        }
        if directory.join(state_dir::HISTORY).exists() {
            repaired.lines.push(format!(
                "{}: {why}; history entries made with this key cannot be read or restored",
                state_dir::KEY
            ));
        }
        state_dir::make_key(directory)?;
    }
    Ok(repaired)
}

/// An exported state, with the ID of its machine, if known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The whole state.
    pub recalled: StoredState,
    /// The machine.
    pub machine: Option<String>,
}

/// Adds the stored secrets to imported records, since exports contain none.
fn keep_secrets(new: &mut Records, before: &Records, readers: &RecordReaders) {
    for (identity, record) in &mut new.records {
        let before = before.records.get(identity).and_then(|before| before.sent.as_ref());
        let joined = record.sent.as_ref().zip(before);
        if let Some(joined) = joined.and_then(|(sent, before)| (readers.secrets)(sent, before)) {
            record.sent = Some(joined);
        }
    }
}

/// Replaces the whole content of a database.
pub(super) fn write_all(
    connection: &mut Connection,
    state_lock: &StateLock,
    (kept, says): (&Records, &Manifest),
) -> Result<(), Fault> {
    fence::take(connection, state_lock, None)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    fence::guard(&transaction, state_lock)?;
    rows::replace(&transaction, kept)?;
    says.write(&transaction)?;
    Ok(transaction.commit()?)
}

/// The readable rest of a damaged database.
struct Salvaged {
    records: Records,
    lost: Vec<String>,
    /// None if it cannot be read.
    manifest: Option<Manifest>,
    /// 0 if it cannot be read.
    epoch: u64,
}

/// Reads as much of a damaged database as possible, and lists the losses.
fn read_damaged(path: &Path) -> Result<Salvaged, Fault> {
    if let Some(gone) = gone(path)? {
        return Err(gone);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    if version > SCHEMA {
        return Err(Fault::Newer { version, known: SCHEMA });
    }
    let (kept, mut lost) = rows::salvage(&connection);
    // A database without a version has no manifest.
    let manifest = Manifest::read(&connection).ok().filter(|_| version > 0);
    let standing = fence::current_epoch(&connection);
    if let Err(fault) = &standing
        && version >= migrations::HAS_LEASE
    {
        lost.push(format!("last lease holder: {fault}"));
    }
    let epoch = standing.unwrap_or_default();
    Ok(Salvaged { records: kept, lost, manifest, epoch })
}
