//! What is put right: at a load by itself (B-21), and what cannot be read when the operator asks for it (B-24).

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

/// What was put right, and where what stood there before is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    lines: Vec<String>,
    copy: Option<PathBuf>,
}

impl RepairReport {
    /// What was done, a line for each thing; nothing where all was as it must be.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// What stood there before.
    #[must_use]
    pub fn copy(&self) -> Option<&Path> {
        self.copy.as_deref()
    }
}

/// Puts right what breaks a rule, and notes who opens it where. Nothing is written where all is as it must be.
pub(super) fn at_load(
    opened: &mut Opened,
    path: &Path,
    (hold, readers): (&StateLock, &RecordReaders),
    machine: Option<String>,
) -> Result<RepairReport, Fault> {
    let Opened { connection, records: kept, manifest } = opened;
    let mut mended = RepairReport::default();
    let wrong = integrity::of_kept(kept, readers);
    let is_sound = wrong.is_empty();
    if !is_sound {
        mended.lines = repair_all(kept, wrong, readers)?;
    }
    // What is refused was left as it is.
    fence::take(connection, hold, None)?;
    if !is_sound {
        mended.copy = Some(database::copy_aside(connection, path, "bad")?);
    }
    let adopted = adopt(kept, manifest, machine.as_deref());
    let says = Manifest::on(machine.or_else(|| manifest.machine.clone()));
    if is_sound && adopted.is_none() && says == *manifest {
        return Ok(mended);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    fence::guard(&transaction, hold)?;
    if !is_sound || adopted.is_some() {
        rows::replace(&transaction, kept)?;
    }
    says.write(&transaction)?;
    transaction.commit()?;
    mended.lines.extend(adopted);
    *manifest = says;
    Ok(mended)
}

/// Puts right what is wrong, and says what it did.
pub(super) fn repair_all(
    kept: &mut Records,
    mut wrong: Vec<Violation>,
    readers: &RecordReaders,
) -> Result<Vec<String>, Fault> {
    let mut lines = Vec::new();
    // What is right after one round may break a rule that was not asked before.
    for _ in 0..3 {
        if let Some(damage) = wrong.iter().find(|one| one.is_damage()) {
            return Err(Fault::Damaged(damage.to_string()));
        }
        lines.extend(integrity::repair(kept, &wrong));
        wrong = integrity::of_kept(kept, readers);
    }
    wrong.first().map_or(Ok(lines), |left| Err(Fault::Damaged(left.to_string())))
}

/// A state that was made on another machine, such as the one of which this is a copy: what was made there is not ours to delete here.
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

/// Nothing of it was made here. Answers how many were said to be.
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
    /// Repairs a state as far as it can be (B-24). What can be read is kept, what stood there before stays beside. What was made by
    /// a newer program, or cannot be written, is refused.
    pub fn repair(
        hold: Arc<StateLock>,
        readers: RecordReaders,
    ) -> Result<RepairReport, StoreError> {
        Self::repair_on(hold, readers, state_dir::machine())
    }

    /// The same on a machine of this name.
    pub fn repair_on(
        hold: Arc<StateLock>,
        readers: RecordReaders,
        machine: Option<String>,
    ) -> Result<RepairReport, StoreError> {
        let folder = hold.directory().to_owned();
        let path = folder.join(state_dir::DATABASE);
        match Self::open_on(Arc::clone(&hold), readers.clone(), machine.clone()) {
            Ok(store) => return with_key(&folder, store.mended),
            Err(StoreError::Damaged { .. }) => {}
            Err(other) => return Err(other),
        }
        let refuse = |fault| refusal(&path, fault);
        if replace::is_whole(&path) {
            let copy = replace::put_into_place(&path).map_err(refuse)?;
            let store = Self::open_on(hold, readers, machine)?;
            let mut lines = vec!["completing an interrupted repair".to_owned()];
            lines.extend(store.mended.lines.iter().cloned());
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
            // It may be that of another machine.
            let count = adopt_all(&mut records);
            lines.push(format!(
                "the machine of the state is unknown: created objects are adopted and never deleted here ({count} resources)"
            ));
        }
        let says = Manifest::on(manifest.and_then(|manifest| manifest.machine));
        // Who was fenced off by what stands there is so by what takes its place.
        hold.comes_after(epoch).map_err(|fenced| refuse(Fault::Refused(fenced.to_string())))?;
        let copy = replace::replace(&path, &hold, (&records, &says)).map_err(refuse)?;
        // Whether it was made on this machine, and the last look.
        let store = Self::open_on(hold, readers, machine)?;
        lines.extend(store.mended.lines.iter().cloned());
        // The directory is held as long as the store lives.
        let mended = with_key(&folder, RepairReport { lines, copy: copy.exists().then_some(copy) });
        drop(store);
        mended
    }

    /// Keeps this, as it was made on a machine, instead of what is kept, which stays beside (B-24). Answers where. Secrets are not in what is
    /// exported: those whose hashes are the same stay.
    pub fn import(
        hold: &StateLock,
        new: Imported,
        readers: &RecordReaders,
    ) -> Result<RepairReport, StoreError> {
        Self::import_on(hold, new, readers, state_dir::machine())
    }

    /// The same on a machine of this name.
    pub fn import_on(
        hold: &StateLock,
        Imported { recalled, machine }: Imported,
        readers: &RecordReaders,
        here: Option<String>,
    ) -> Result<RepairReport, StoreError> {
        let path = hold.directory().join(state_dir::DATABASE);
        hold.placement().forget_database();
        hold.check_place()?;
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
                write_all(&mut connection, hold, (&kept, &says)).map_err(refuse)?;
                copy
            }
            Err(Fault::Damaged(_)) => {
                if let Ok(found) = read_damaged(&path) {
                    let after = hold.comes_after(found.epoch);
                    after.map_err(|fenced| refuse(Fault::Refused(fenced.to_string())))?;
                    keep_secrets(&mut kept, &found.records, readers);
                }
                replace::replace(&path, hold, (&kept, &says)).map_err(refuse)?
            }
            Err(refused) => return Err(refuse(refused)),
        };
        with_key(hold.directory(), RepairReport { lines, copy: copy.exists().then_some(copy) })
    }
}

/// Makes another key where the one of what is kept is lost, and says so, and what is lost with it.
fn with_key(directory: &Path, mut mended: RepairReport) -> Result<RepairReport, StoreError> {
    if let Err(why) = state_dir::found_key(directory)? {
        if super::read_only::holds_rows(directory)? {
            mended.lines.push(format!(
                "{}: {why}; a new key is created: received values count as changed, and saved passwords are lost",
                state_dir::KEY
            ));
        }
        if directory.join(state_dir::HISTORY).exists() {
            mended.lines.push(format!(
                "{}: {why}; history entries made with this key cannot be read or restored",
                state_dir::KEY
            ));
        }
        state_dir::make_key(directory)?;
    }
    Ok(mended)
}

/// What was exported, and on which machine it was kept, where that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// All that is to be kept.
    pub recalled: StoredState,
    /// The machine.
    pub machine: Option<String>,
}

/// What is exported is without its secrets: those that are kept here stay.
fn keep_secrets(new: &mut Records, before: &Records, readers: &RecordReaders) {
    for (identity, record) in &mut new.records {
        let before = before.records.get(identity).and_then(|before| before.sent.as_ref());
        let joined = record.sent.as_ref().zip(before);
        if let Some(joined) = joined.and_then(|(sent, before)| (readers.secrets)(sent, before)) {
            record.sent = Some(joined);
        }
    }
}

/// Keeps this and nothing else.
pub(super) fn write_all(
    connection: &mut Connection,
    hold: &StateLock,
    (kept, says): (&Records, &Manifest),
) -> Result<(), Fault> {
    fence::take(connection, hold, None)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    fence::guard(&transaction, hold)?;
    rows::replace(&transaction, kept)?;
    says.write(&transaction)?;
    Ok(transaction.commit()?)
}

/// What is left of a damaged database.
struct Salvaged {
    records: Records,
    lost: Vec<String>,
    /// None where it cannot be read.
    manifest: Option<Manifest>,
    /// 0 where it cannot be read.
    epoch: u64,
}

/// What can be read of a damaged database, and what cannot.
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
    // One without a version says nothing of itself.
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
