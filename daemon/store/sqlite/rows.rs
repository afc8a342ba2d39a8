//! The tables: how a record becomes a row and back, and how damage is noticed.

use super::super::StoreError;
use super::super::database::{self, Fault};
use super::super::fold::{Flight, Kept, Record, Rows, Whole};
use super::manifest::{self, Manifest};
use super::{fence, owned};

use crate::store::{Hidden, PauseRecord};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use std::collections::HashMap;

const TABLES: &str = "
CREATE TABLE resource (
    identity TEXT PRIMARY KEY NOT NULL,
    done INTEGER,
    owed INTEGER,
    cause TEXT,
    interrupted INTEGER,
    begun INTEGER,
    definition INTEGER,
    owes TEXT,
    sum INTEGER NOT NULL,
    sent TEXT,
    taken TEXT,
    parked TEXT,
    parked_until INTEGER,
    owned INTEGER,
    graph TEXT,
    thing INTEGER,
    removal TEXT,
    needs TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE whole (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    stamp INTEGER NOT NULL,
    reason TEXT,
    until INTEGER,
    rows INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    sum INTEGER NOT NULL
) STRICT;";

const COLUMNS: &str = "identity, done, owed, cause, interrupted, begun, definition, owes, sum, sent, taken, \
     parked, parked_until, owned, graph, thing, removal, needs";

/// The same of older schemas: the first knew nothing of values, the second nothing of single pauses, the third not whose a thing is.
const OLDER: [&str; 3] = [
    "identity, done, owed, cause, interrupted, begun, definition, owes, sum, NULL, NULL, NULL, NULL, \
     NULL, NULL, NULL, NULL, NULL",
    "identity, done, owed, cause, interrupted, begun, definition, owes, sum, sent, taken, NULL, NULL, \
     NULL, NULL, NULL, NULL, NULL",
    "identity, done, owed, cause, interrupted, begun, definition, owes, sum, sent, taken, parked, \
     parked_until, NULL, NULL, NULL, NULL, NULL",
];

/// Brings the tables of an older schema to this one. Rows stay as they are, with their sums.
pub(super) fn upgrade(connection: &mut Connection, from: i64, schema: i64) -> Result<(), Fault> {
    let transaction = connection.transaction()?;
    if from < 2 {
        transaction.execute_batch(
            "ALTER TABLE resource ADD COLUMN sent TEXT; ALTER TABLE resource ADD COLUMN taken TEXT",
        )?;
    }
    if from < 3 {
        transaction.execute_batch(
            "ALTER TABLE resource ADD COLUMN parked TEXT;
             ALTER TABLE resource ADD COLUMN parked_until INTEGER",
        )?;
    }
    if from < 4 {
        transaction.execute_batch(
            "ALTER TABLE resource ADD COLUMN owned INTEGER; ALTER TABLE resource ADD COLUMN graph TEXT;
             ALTER TABLE resource ADD COLUMN thing INTEGER; ALTER TABLE resource ADD COLUMN removal TEXT;
             ALTER TABLE resource ADD COLUMN needs TEXT",
        )?;
    }
    if from < 5 {
        transaction.execute_batch(manifest::TABLE)?;
        Manifest::default().write(&transaction)?;
    }
    transaction.execute_batch(fence::TABLE)?;
    fence::write(&transaction, 0)?;
    transaction.pragma_update(None, "user_version", schema)?;
    Ok(transaction.commit()?)
}

/// Makes the tables of a new database; with something already in it, it is not new but damaged.
pub(super) fn create(connection: &mut Connection, schema: i64) -> Result<(), Fault> {
    let transaction = connection.transaction()?;
    database::make(&transaction, &[TABLES, manifest::TABLE, fence::TABLE].concat())?;
    write_whole(&transaction, &Whole::default(), Tally::default())?;
    Manifest::default().write(&transaction)?;
    fence::write(&transaction, 0)?;
    transaction.pragma_update(None, "user_version", schema)?;
    Ok(transaction.commit()?)
}

/// Reads and verifies everything.
pub(super) fn read_all(connection: &Connection) -> Result<Kept, Fault> {
    let (whole, expected) = read_whole(connection)?;
    let (mut records, mut found) = (Vec::new(), Tally::default());
    let sql = format!("SELECT {} FROM resource ORDER BY identity", columns(connection)?);
    let mut select = connection.prepare(&sql)?;
    let mut rows = select.query(())?;
    while let Some(row) = rows.next()? {
        let (identity, record, sum) = read_record(row)?;
        found.add(sum);
        records.push((identity, record));
    }
    if found != expected {
        return Err(Fault::Damaged(format!(
            "expected {} rows (digest {:x}), found {} (digest {:x})",
            expected.rows, expected.digest, found.rows, found.digest
        )));
    }
    // In order: so the tree is made at once.
    Ok(Kept { whole, records: records.into_iter().collect() })
}

/// The columns of this schema, as they are called in the tables that are there.
fn columns(connection: &Connection) -> Result<&'static str, Fault> {
    let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    if version > super::SCHEMA {
        return Err(Fault::Refused(database::newer(version, super::SCHEMA)));
    }
    let older = usize::try_from(version - 1).ok().and_then(|version| OLDER.get(version));
    Ok(older.copied().unwrap_or(COLUMNS))
}

/// What can still be read of a damaged database, with what cannot: rows that are whole are taken, from both ends of the table.
pub(super) fn salvage(connection: &Connection) -> (Kept, Vec<String>) {
    let mut lost = Vec::new();
    let mut kept = Kept::default();
    match read_whole(connection) {
        Ok((whole, _)) => kept.whole = whole,
        Err(fault) => lost.push(format!("the whole, with a pause if there was one: {fault}")),
    }
    for order in ["ASC", "DESC"] {
        if let Err(fault) = salvage_rows(connection, order, &mut kept, &mut lost) {
            lost.push(format!("some rows cannot be reached: {fault}"));
        }
    }
    lost.sort_unstable();
    lost.dedup();
    // Nothing that is owed may be owed later than the newest stamp.
    let owed = |record: &Record| record.owed.as_ref().map(|(stamp, _)| *stamp);
    let begun = |record: &Record| record.flight.as_ref().map(|flight| flight.stamp);
    let stamps = kept.records.values().flat_map(|record| [owed(record), begun(record)]).flatten();
    kept.whole.stamp = stamps.max().unwrap_or_default().max(kept.whole.stamp);
    (kept, lost)
}

fn salvage_rows(
    connection: &Connection,
    order: &str,
    kept: &mut Kept,
    lost: &mut Vec<String>,
) -> Result<(), Fault> {
    let columns = columns(connection)?;
    let sql = format!("SELECT {columns} FROM resource ORDER BY identity {order}");
    let mut select = connection.prepare(&sql)?;
    let mut rows = select.query(())?;
    while let Some(row) = rows.next()? {
        match read_record(row) {
            Ok((identity, record, _)) => drop(kept.records.insert(identity, record)),
            Err(fault) => lost.push(fault.to_string()),
        }
    }
    Ok(())
}

/// Keeps this and nothing else.
pub(super) fn replace(transaction: &Transaction<'_>, kept: &Kept) -> Result<(), Fault> {
    transaction.execute("DELETE FROM resource", ())?;
    let mut batch = Batch {
        transaction,
        touched: HashMap::new(),
        whole: kept.whole.clone(),
        tally: Tally::default(),
    };
    for (identity, record) in &kept.records {
        batch.touched.insert(identity.clone(), Touched { sum: None, record: record.clone() });
    }
    batch.write()
}

/// How many rows there are, and the sums of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    rows: u64,
    digest: u64,
}

impl Tally {
    fn add(&mut self, sum: u64) {
        self.rows = self.rows.wrapping_add(1);
        self.digest ^= sum;
    }

    fn take(&mut self, sum: u64) {
        self.rows = self.rows.wrapping_sub(1);
        self.digest ^= sum;
    }
}

/// The records that one transaction touches: each read once and written once.
pub(super) struct Batch<'t> {
    transaction: &'t Transaction<'t>,
    touched: HashMap<String, Touched>,
    whole: Whole,
    tally: Tally,
}

struct Touched {
    /// The sum of the row that stands in the table.
    sum: Option<u64>,
    record: Record,
}

impl<'t> Batch<'t> {
    pub(super) fn begin(transaction: &'t Transaction<'t>) -> Result<Self, Fault> {
        let (whole, tally) = read_whole(transaction)?;
        Ok(Self { transaction, touched: HashMap::new(), whole, tally })
    }

    fn read(&self, identity: &str) -> Result<Touched, Fault> {
        let sql = format!("SELECT {COLUMNS} FROM resource WHERE identity = ?1");
        let mut select = self.transaction.prepare_cached(&sql)?;
        let read = |row: &Row<'_>| Ok(read_record(row));
        match select.query_row([identity], read).optional()? {
            Some(found) => found.map(|(_, record, sum)| Touched { sum: Some(sum), record }),
            None => Ok(Touched { sum: None, record: Record::default() }),
        }
    }

    /// What was touched, as it is now, and the newest stamp.
    pub(super) fn touched(&self) -> (impl Iterator<Item = (&String, &Record)>, u64) {
        let records = self.touched.iter().map(|(identity, touched)| (identity, &touched.record));
        (records, self.whole.stamp)
    }

    /// Writes what was touched.
    pub(super) fn write(mut self) -> Result<(), Fault> {
        let mut replace = self.transaction.prepare_cached(&format!(
            "INSERT OR REPLACE INTO resource ({COLUMNS}) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18)"
        ))?;
        let mut delete =
            self.transaction.prepare_cached("DELETE FROM resource WHERE identity = ?1")?;
        for (identity, Touched { sum: old, record }) in &self.touched {
            let sum = sum_of(identity, record);
            if *old == Some(sum) {
                continue;
            }
            if let Some(old) = *old {
                self.tally.take(old);
            }
            if *record == Record::default() {
                if old.is_some() {
                    delete.execute([identity])?;
                }
                continue;
            }
            self.tally.add(sum);
            let flight = record.flight.as_ref();
            let owned = record.owned.as_deref();
            replace.execute(params![
                identity,
                record.done.map(u64::cast_signed),
                record.owed.as_ref().map(|(stamp, _)| stamp.cast_signed()),
                record.owed.as_ref().map(|(_, cause)| cause),
                record.interrupted.map(u64::cast_signed),
                flight.map(|flight| flight.stamp.cast_signed()),
                flight.map(|flight| flight.definition.cast_signed()),
                flight.map(|flight| join(&flight.owes)),
                sum.cast_signed(),
                record.sent.as_ref().map(|Hidden(values)| values.as_ref()),
                record.taken.as_deref(),
                record.parked.as_ref().map(|pause| &pause.reason),
                record.parked.as_ref().map(|pause| pause.until_unix.cast_signed()),
                owned.map(owned::marks),
                owned.map(|owned| owned.graph.as_ref()),
                owned.map(|owned| owned.thing.cast_signed()),
                owned.and_then(|owned| owned.removal.as_deref()),
                owned.filter(|owned| !owned.after.is_empty()).map(|owned| join(&owned.after)),
            ])?;
        }
        write_whole(self.transaction, &self.whole, self.tally)
    }
}

impl Rows for Batch<'_> {
    fn load(&mut self, identity: &str) -> Result<Record, StoreError> {
        if let Some(touched) = self.touched.get(identity) {
            return Ok(touched.record.clone());
        }
        let read = self.read(identity).map_err(|fault| StoreError::Database {
            path: super::directory::DATABASE.to_owned(),
            why: fault.to_string(),
        })?;
        let record = read.record.clone();
        self.touched.insert(identity.to_owned(), read);
        Ok(record)
    }

    fn save(&mut self, identity: &str, record: Record) {
        debug_assert!(self.touched.contains_key(identity), "loaded before it is saved");
        if let Some(touched) = self.touched.get_mut(identity) {
            touched.record = record;
        }
    }

    fn whole(&mut self) -> &mut Whole {
        &mut self.whole
    }
}

fn read_record(row: &Row<'_>) -> Result<(String, Record, u64), Fault> {
    let number = |index: usize| -> Result<Option<u64>, rusqlite::Error> {
        Ok(row.get::<_, Option<i64>>(index)?.map(i64::cast_unsigned))
    };
    let identity: String = row.get(0)?;
    let damaged = |what: &str| Fault::Damaged(format!("the row of {identity}: {what}"));
    let owed = match (number(2)?, row.get::<_, Option<String>>(3)?) {
        (Some(stamp), Some(cause)) => Some((stamp, cause)),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return Err(damaged("half of what is owed")),
    };
    let flight = match (number(5)?, number(6)?, row.get::<_, Option<String>>(7)?) {
        (Some(stamp), Some(definition), Some(list)) => {
            let list = split(&list).ok_or_else(|| damaged("no list of what it owes"))?;
            Some(Flight { definition, stamp, owes: list })
        }
        (None, None, None) => None,
        _ => return Err(damaged("half of a begin")),
    };
    let text = |index: usize| row.get::<_, Option<String>>(index);
    let (sent, taken) = (text(9)?.map(|text| Hidden(text.into())), text(10)?.map(Into::into));
    let parked = match (text(11)?, number(12)?) {
        (Some(reason), Some(until_unix)) => Some(PauseRecord { reason, until_unix }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return Err(damaged("half of a pause")),
    };
    let (done, interrupted) = (number(1)?, number(4)?);
    let whose = owned::read(row, 13).map_err(|fault| match fault {
        Fault::Damaged(what) => damaged(&what),
        Fault::Refused(_) => fault,
    })?;
    let record = Record { done, owed, interrupted, flight, sent, taken, parked, owned: whose };
    let sum = row.get::<_, i64>(8)?.cast_unsigned();
    if sum != sum_of(&identity, &record) {
        return Err(damaged("its checksum does not match"));
    }
    Ok((identity, record, sum))
}

fn read_whole(connection: &Connection) -> Result<(Whole, Tally), Fault> {
    let sql = "SELECT stamp, reason, until, rows, digest, sum FROM whole";
    let read = |row: &Row<'_>| {
        let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
        let until = row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned);
        let pause = row.get::<_, Option<String>>(1)?.zip(until);
        let pause = pause.map(|(reason, until_unix)| PauseRecord { reason, until_unix });
        let whole = Whole { pause, stamp: number(0)? };
        Ok((whole, Tally { rows: number(3)?, digest: number(4)? }, number(5)?))
    };
    let (whole, tally, sum) = connection.prepare_cached(sql)?.query_row((), read)?;
    if sum != sum_of_whole(&whole, tally) {
        return Err(Fault::Damaged("the checksum of the whole does not match".to_owned()));
    }
    Ok((whole, tally))
}

fn write_whole(connection: &Connection, whole: &Whole, tally: Tally) -> Result<(), Fault> {
    let sql = "INSERT OR REPLACE INTO whole (id, stamp, reason, until, rows, digest, sum)
               VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)";
    connection.prepare_cached(sql)?.execute(params![
        whole.stamp.cast_signed(),
        whole.pause.as_ref().map(|pause| &pause.reason),
        whole.pause.as_ref().map(|pause| pause.until_unix.cast_signed()),
        tally.rows.cast_signed(),
        tally.digest.cast_signed(),
        sum_of_whole(whole, tally).cast_signed(),
    ])?;
    Ok(())
}

/// A list of identities as one text that an operator can read.
fn join<T: AsRef<str>>(owes: &[T]) -> String {
    let names: Vec<&str> = owes.iter().map(AsRef::as_ref).collect();
    serde_json::Value::from(names).to_string()
}

pub(super) fn split(owes: &str) -> Option<Vec<String>> {
    serde_json::from_str(owes).ok()
}

fn sum_of(identity: &str, record: &Record) -> u64 {
    let mut sum = Sum::default();
    sum.text(Some(identity));
    sum.number(record.done);
    sum.number(record.owed.as_ref().map(|(stamp, _)| *stamp));
    sum.text(record.owed.as_ref().map(|(_, cause)| cause.as_str()));
    sum.number(record.interrupted);
    sum.number(record.flight.as_ref().map(|flight| flight.stamp));
    sum.number(record.flight.as_ref().map(|flight| flight.definition));
    for owes in record.flight.iter().flat_map(|flight| &flight.owes) {
        sum.text(Some(owes));
    }
    // Rows of the first schema have neither, and the same sum.
    if record.sent.is_some() || record.taken.is_some() {
        sum.text(record.sent.as_ref().map(|Hidden(values)| values.as_ref()));
        sum.text(record.taken.as_deref());
    }
    if let Some(pause) = &record.parked {
        sum.text(Some("parked"));
        sum.text(Some(&pause.reason));
        sum.number(Some(pause.until_unix));
    }
    if let Some(owned) = &record.owned {
        sum.text(Some("owned"));
        sum.number(Some(owned::marks(owned).cast_unsigned()));
        sum.text(Some(&owned.graph));
        sum.number(Some(owned.thing));
        sum.text(owned.removal.as_deref());
        owned.after.iter().for_each(|name| sum.text(Some(name)));
    }
    sum.0
}

/// Of a manifest.
pub(super) fn sum_of_texts(texts: &[Option<&str>]) -> u64 {
    let mut sum = Sum::default();
    for text in texts {
        sum.text(*text);
    }
    sum.0
}

/// Of a number alone.
pub(super) fn sum_of_number(number: u64) -> u64 {
    let mut sum = Sum::default();
    sum.number(Some(number));
    sum.0
}

fn sum_of_whole(whole: &Whole, tally: Tally) -> u64 {
    let mut sum = Sum::default();
    sum.number(Some(whole.stamp));
    sum.text(whole.pause.as_ref().map(|pause| pause.reason.as_str()));
    sum.number(whole.pause.as_ref().map(|pause| pause.until_unix));
    sum.number(Some(tally.rows));
    sum.number(Some(tally.digest));
    sum.0
}

/// FNV-1a over 64 bits: every step is a bijection, so that a single changed byte always shows. It guards against damage, not
/// against somebody who can write the file.
struct Sum(u64);

impl Default for Sum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn number(&mut self, number: Option<u64>) {
        self.bytes(&[u8::from(number.is_some())]);
        self.bytes(&number.unwrap_or_default().to_le_bytes());
    }

    fn text(&mut self, text: Option<&str>) {
        self.number(text.map(|text| text.len() as u64));
        self.bytes(text.unwrap_or_default().as_bytes());
    }
}
