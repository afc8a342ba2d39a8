//! What is put right: at a load by itself (B-21), and what cannot be read when the operator asks for it (B-24).

use super::super::database::{self, Fault};
use super::super::directory::{self, Hold};
use super::super::rules::{self, Readers};
use super::super::{Origin, Recalled, StoreError};
use super::manifest::Manifest;
use super::{Kept, Opened, SCHEMA, SqliteStore, begin_anew, connect, gone, refusal, rows};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What was put right, and where what stood there before is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    lines: Vec<String>,
    copy: Option<PathBuf>,
}

impl Mended {
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
    readers: &Readers,
    machine: Option<String>,
) -> Result<Mended, Fault> {
    let Opened { connection, kept, manifest } = opened;
    let mut after = kept.clone();
    let mut mended = Mended::default();
    // What is right after one round may break a rule that was not asked before.
    for _ in 0..3 {
        let found = rules::of_kept(&after, readers);
        if found.is_empty() {
            break;
        }
        mended.lines.extend(rules::repair(&mut after, &found));
    }
    if let Some(left) = rules::of_kept(&after, readers).first() {
        return Err(Fault::Damaged(left.to_string()));
    }
    if after != *kept {
        mended.copy = Some(database::copy_aside(connection, path, "bad")?);
    }
    mended.lines.extend(adopt(&mut after, manifest, machine.as_deref()));
    let says = Manifest {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine.or_else(|| manifest.machine.clone()),
        unsound: std::collections::BTreeMap::new(),
    };
    if after == *kept && says == *manifest {
        return Ok(mended);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if after != *kept {
        rows::replace(&transaction, &after)?;
    }
    says.write(&transaction)?;
    transaction.commit()?;
    (*kept, *manifest) = (after, says);
    Ok(mended)
}

/// A state that was made on another machine, such as the one of which this is a copy: what was made there is not ours to delete here.
fn adopt(kept: &mut Kept, manifest: &Manifest, machine: Option<&str>) -> Option<String> {
    let (before, now) = manifest.machine.as_deref().zip(machine)?;
    if before == now {
        return None;
    }
    let mut count = 0_usize;
    for owned in kept.records.values_mut().filter_map(|record| record.owned.as_mut()) {
        if owned.origin == Some(Origin::Created) {
            Arc::make_mut(owned).origin = Some(Origin::Adopted);
            count += 1;
        }
    }
    Some(format!(
        "this state was made on another machine ({before}; this one is {now}): what was made there is adopted, and never deleted here ({count} resources)"
    ))
}

impl SqliteStore {
    /// Repairs a state as far as it can be (B-24). What can be read is kept, what stood there before stays beside. What was made by
    /// a newer program, or cannot be written, is refused.
    pub fn repair(hold: Arc<Hold>, readers: Readers) -> Result<Mended, StoreError> {
        let path = hold.directory().join(directory::DATABASE);
        match Self::open_held(Arc::clone(&hold), readers.clone()) {
            Ok(store) => return with_key(hold.directory(), store.mended),
            Err(StoreError::Damaged { .. }) => {}
            Err(other) => return Err(other),
        }
        let refuse = |fault| refusal(&path, fault);
        let failed = |error: std::io::Error| refuse(Fault::Refused(error.to_string()));
        let (mut kept, mut lines) = match read_damaged(&path) {
            Ok(found) => found,
            Err(fault @ Fault::Refused(_)) => return Err(refuse(fault)),
            Err(Fault::Damaged(why)) => (Kept::default(), vec![format!("nothing of it: {why}")]),
        };
        lines = lines.into_iter().map(|line| format!("cannot be read: {line}")).collect();
        for _ in 0..3 {
            let found = rules::of_kept(&kept, &readers);
            lines.extend(rules::repair(&mut kept, &found));
        }
        lines.push(format!("kept: {} resources that could be read", kept.records.len()));
        let copy = database::move_aside(&path).map_err(failed)?;
        let put = |mut opened: Opened| write_all(&mut opened.connection, &kept);
        begin_anew(&path).and_then(put).map_err(refuse)?;
        // The name of the machine, and the last look.
        drop(Self::open_held(Arc::clone(&hold), readers)?);
        with_key(hold.directory(), Mended { lines, copy: copy.exists().then_some(copy) })
    }

    /// Keeps this instead of what is kept, which stays beside (B-24). Answers where.
    pub fn import(hold: &Hold, new: Recalled) -> Result<Mended, StoreError> {
        let path = hold.directory().join(directory::DATABASE);
        let refuse = |fault| refusal(&path, fault);
        let failed = |error: std::io::Error| refuse(Fault::Refused(error.to_string()));
        let kept = Kept::from(new);
        let lines = vec![format!("{} resources were taken in", kept.records.len())];
        let copy = match connect(&path) {
            Ok(Opened { mut connection, .. }) => {
                let copy = database::copy_aside(&connection, &path, "before").map_err(refuse)?;
                write_all(&mut connection, &kept).map_err(refuse)?;
                copy
            }
            Err(Fault::Damaged(_)) => {
                let copy = database::move_aside(&path).map_err(failed)?;
                let put = |mut opened: Opened| write_all(&mut opened.connection, &kept);
                begin_anew(&path).and_then(put).map_err(refuse)?;
                copy
            }
            Err(refused) => return Err(refuse(refused)),
        };
        with_key(hold.directory(), Mended { lines, copy: copy.exists().then_some(copy) })
    }
}

/// Makes another key where the one of what is kept is lost, and says so.
fn with_key(directory: &Path, mut mended: Mended) -> Result<Mended, StoreError> {
    if let Err(why) = directory::found_key(directory)? {
        if super::look::holds_rows(directory)? {
            mended.lines.push(format!(
                "{}: {why}; another one is made, so that what was received counts as changed and is made again",
                directory::KEY
            ));
        }
        directory::make_key(directory)?;
    }
    Ok(mended)
}

fn write_all(connection: &mut Connection, kept: &Kept) -> Result<(), Fault> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    rows::replace(&transaction, kept)?;
    Ok(transaction.commit()?)
}

/// What can be read of a damaged database, and what cannot.
fn read_damaged(path: &Path) -> Result<(Kept, Vec<String>), Fault> {
    if let Some(gone) = gone(path)? {
        return Err(gone);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    if version > SCHEMA {
        return Err(Fault::Refused(database::newer(version, SCHEMA)));
    }
    Ok(rows::salvage(&connection))
}
