//! The tables, and the conversion of records to rows and back.

use super::super::StoreError;
use super::super::database::{self, Fault};
use super::checksums::{cut, cut_pays, sum_of, sum_of_whole};
use super::manifest::{self, Manifest};
use super::migrations::Columns;
use super::{SCHEMA, fence, migrations, ownership};
use crate::store::replay::{GlobalRecord, InFlight, Record, Records, Rows};

use crate::store::{OpaqueText, PauseRecord, Verb};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use std::collections::HashMap;
use std::sync::Arc;

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
    needs TEXT,
    verb TEXT,
    epoch INTEGER,
    cut TEXT,
    parked_for INTEGER,
    pays INTEGER,
    cut_pays INTEGER
) STRICT, WITHOUT ROWID;
CREATE TABLE whole (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    stamp INTEGER NOT NULL,
    reason TEXT,
    until INTEGER,
    rows INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    lasts INTEGER
) STRICT;";

/// The largest number of records for which memory is reserved before reading.
const MOST_AT_ONCE: u64 = 1 << 20;

/// Makes the tables of a new database. A database that is not empty is damaged.
pub(super) fn create(connection: &mut Connection, schema: i64) -> Result<(), Fault> {
    let transaction = connection.transaction()?;
    database::make(&transaction, &[TABLES, manifest::TABLE, fence::TABLE].concat())?;
    write_whole(&transaction, &GlobalRecord::default(), Tally::default())?;
    Manifest::default().write(&transaction)?;
    fence::write(&transaction, 0)?;
    transaction.pragma_update(None, "user_version", schema)?;
    Ok(transaction.commit()?)
}

/// Reads and verifies all records.
pub(super) fn read_all(connection: &Connection) -> Result<Records, Fault> {
    let reading = Reading::of(connection)?;
    let (whole, expected) = reading.whole()?;
    let most = usize::try_from(expected.rows.min(MOST_AT_ONCE)).unwrap_or_default();
    let (mut records, mut found) = (Vec::with_capacity(most), Tally::default());
    let sql = format!("SELECT {} FROM resource ORDER BY identity", reading.columns.most);
    let mut select = connection.prepare(&sql)?;
    let mut rows = select.query(())?;
    while let Some(row) = rows.next()? {
        let (identity, record, sum) = reading.record(row)?;
        found.add(sum);
        records.push((identity, record));
    }
    if found != expected {
        return Err(Fault::Damaged(format!(
            "expected {} rows (digest {:x}), found {} (digest {:x})",
            expected.rows, expected.digest, found.rows, found.digest
        )));
    }
    // The records are sorted, so the tree is built at once.
    Ok(Records { whole, records: records.into_iter().collect() })
}

/// Reads as much of a damaged database as possible, from both ends of the table, and lists the losses.
pub(super) fn salvage(connection: &Connection) -> (Records, Vec<String>) {
    let mut lost = Vec::new();
    let mut kept = Records::default();
    match Reading::of(connection).and_then(|reading| reading.whole()) {
        Ok((whole, _)) => kept.whole = whole,
        Err(fault) => lost.push(format!("the global record with the pause: {fault}")),
    }
    for order in ["ASC", "DESC"] {
        if let Err(fault) = salvage_rows(connection, order, &mut kept, &mut lost) {
            lost.push(format!("some rows are unreadable: {fault}"));
        }
    }
    lost.sort_unstable();
    lost.dedup();
    // No owed refresh may be later than the newest stamp.
    let owed = |record: &Record| record.owed.as_ref().map(|(stamp, _)| *stamp);
    let begun = |record: &Record| record.flight.as_ref().map(|flight| flight.stamp);
    let stamps = kept.records.values().flat_map(|record| [owed(record), begun(record)]).flatten();
    kept.whole.stamp = stamps.max().unwrap_or_default().max(kept.whole.stamp);
    (kept, lost)
}

fn salvage_rows(
    connection: &Connection,
    order: &str,
    kept: &mut Records,
    lost: &mut Vec<String>,
) -> Result<(), Fault> {
    let reading = Reading::of(connection)?;
    let sql = format!("SELECT {} FROM resource ORDER BY identity {order}", reading.columns.most);
    let mut select = connection.prepare(&sql)?;
    let mut rows = select.query(())?;
    while let Some(row) = rows.next()? {
        match reading.record(row) {
            Ok((identity, record, _)) => drop(kept.records.insert(identity, record)),
            Err(fault) => lost.push(fault.to_string()),
        }
    }
    Ok(())
}

/// Replaces all records.
pub(super) fn replace(transaction: &Transaction<'_>, kept: &Records) -> Result<(), Fault> {
    transaction.execute("DELETE FROM resource", ())?;
    let mut batch = Batch {
        transaction,
        touched: HashMap::new(),
        whole: kept.whole.clone(),
        tally: Tally::default(),
        epoch: fence::current_epoch(transaction)?,
    };
    for (identity, record) in &kept.records {
        batch.touched.insert(identity.clone(), Touched { sum: None, record: record.clone() });
    }
    batch.write()
}

/// The number of rows, and the combined checksum of all of them.
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

    fn both(self) -> (u64, u64) {
        (self.rows, self.digest)
    }

    fn take(&mut self, sum: u64) {
        self.rows = self.rows.wrapping_sub(1);
        self.digest ^= sum;
    }
}

/// The records of one transaction: each is read once and written once.
pub(super) struct Batch<'t> {
    transaction: &'t Transaction<'t>,
    touched: HashMap<String, Touched>,
    whole: GlobalRecord,
    tally: Tally,
    /// The epoch of the writer.
    epoch: u64,
}

struct Touched {
    /// The checksum of the stored row.
    sum: Option<u64>,
    record: Record,
}

impl<'t> Batch<'t> {
    /// Begins a batch of an owner with this epoch.
    pub(super) fn begin(transaction: &'t Transaction<'t>, epoch: u64) -> Result<Self, Fault> {
        let (whole, tally) = Reading::new(transaction).whole()?;
        Ok(Self { transaction, touched: HashMap::new(), whole, tally, epoch })
    }

    fn read(&self, identity: &str) -> Result<Touched, Fault> {
        let reading = Reading::new(self.transaction);
        let sql = format!("SELECT {} FROM resource WHERE identity = ?1", reading.columns.most);
        let mut select = self.transaction.prepare_cached(&sql)?;
        let read = |row: &Row<'_>| Ok(reading.record(row));
        match select.query_row([identity], read).optional()? {
            Some(found) => found.map(|(_, record, sum)| Touched { sum: Some(sum), record }),
            None => Ok(Touched { sum: None, record: Record::default() }),
        }
    }

    /// Returns the touched records in their present form, and the newest stamp.
    pub(super) fn touched(&self) -> (impl Iterator<Item = (&String, &Record)>, u64) {
        let records = self.touched.iter().map(|(identity, touched)| (identity, &touched.record));
        (records, self.whole.stamp)
    }

    /// Writes the touched records.
    pub(super) fn write(mut self) -> Result<(), Fault> {
        let mut replace = self.transaction.prepare_cached(
            "INSERT OR REPLACE INTO resource (identity, done, owed, cause, interrupted, begun, definition, owes, sum, \
             sent, taken, parked, parked_until, owned, graph, thing, removal, needs, verb, epoch, cut, parked_for, \
             pays, cut_pays) \
             VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,?24)",
        )?;
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
                record.sent.as_ref().map(|OpaqueText(values)| values.as_ref()),
                record.taken.as_deref(),
                record.pause.as_ref().map(|pause| &pause.reason),
                record.pause.as_ref().map(|pause| pause.until_unix.cast_signed()),
                owned.map(ownership::marks),
                owned.map(|owned| owned.graph.as_ref()),
                owned.map(|owned| owned.thing.cast_signed()),
                owned.and_then(|owned| owned.removal.as_deref()),
                owned.filter(|owned| !owned.after.is_empty()).map(|owned| join(&owned.after)),
                flight.and_then(|flight| flight.verb).map(Verb::word),
                flight.map(|flight| flight.epoch.cast_signed()),
                cut(record).map(Verb::word),
                record.pause.as_ref().and_then(|pause| pause.lasts).map(u64::cast_signed),
                flight.and_then(|flight| flight.pays).map(u64::cast_signed),
                cut_pays(record).map(u64::cast_signed),
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
            path: super::super::state_dir::DATABASE.to_owned(),
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

    fn whole(&mut self) -> &mut GlobalRecord {
        &mut self.whole
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// A reader of the tables of one schema.
struct Reading<'c> {
    connection: &'c Connection,
    columns: Columns,
}

/// The content of the columns that few rows use.
#[derive(Default)]
struct Few {
    interrupted: Option<u64>,
    cut: Option<Verb>,
    cut_pays: Option<u64>,
    flight: Option<Box<InFlight>>,
    sent: Option<OpaqueText>,
    taken: Option<Arc<str>>,
    pause: Option<Box<PauseRecord>>,
}

impl<'c> Reading<'c> {
    /// Returns a reader for the present schema.
    fn new(connection: &'c Connection) -> Self {
        Self { connection, columns: migrations::columns_of(SCHEMA) }
    }

    /// Returns a reader for the schema of the database.
    fn of(connection: &'c Connection) -> Result<Self, Fault> {
        Ok(Self { connection, columns: migrations::columns_of(migrations::version(connection)?) })
    }

    fn record(&self, row: &Row<'_>) -> Result<(String, Record, u64), Fault> {
        let identity: String = row.get(0)?;
        let damaged = |what: &str| Fault::Damaged(format!("the row of {identity}: {what}"));
        let owed = match (number(row, 2)?, text(row, 3)?) {
            (Some(stamp), Some(cause)) => Some((stamp, cause)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(damaged("an incomplete owed refresh")),
        };
        let whose = ownership::read(row, 5).map_err(|fault| match fault {
            Fault::Damaged(what) => damaged(&what),
            Fault::Refused(_) | Fault::Newer { .. } => fault,
        })?;
        let few = if row.get(10)? { self.few(&identity)? } else { Few::default() };
        let record = Record {
            done: number(row, 1)?,
            owed,
            interrupted: few.interrupted,
            cut: few.cut,
            cut_pays: few.cut_pays,
            flight: few.flight,
            sent: few.sent,
            taken: few.taken,
            pause: few.pause,
            owned: whose,
        };
        let sum = row.get::<_, i64>(4)?.cast_unsigned();
        if sum != sum_of(&identity, &record) {
            return Err(damaged("the checksum does not match"));
        }
        Ok((identity, record, sum))
    }

    fn few(&self, identity: &str) -> Result<Few, Fault> {
        let sql = format!("SELECT {} FROM resource WHERE identity = ?1", self.columns.few);
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut rows = select.query([identity])?;
        let damaged = |what: &str| Fault::Damaged(format!("the row of {identity}: {what}"));
        let row = rows.next()?.ok_or_else(|| damaged("the row is missing from the index"))?;
        let verb = |word: Option<String>| {
            word.map(|word| Verb::of(&word).ok_or_else(|| damaged("no verb"))).transpose()
        };
        let interrupted = number(row, 0)?;
        let flight = match (number(row, 1)?, number(row, 2)?, text(row, 3)?) {
            (Some(stamp), Some(definition), Some(list)) => {
                let owes = split(&list).ok_or_else(|| damaged("no list of owed refreshes"))?;
                let verb = verb(text(row, 8)?)?;
                // Without a verb the epoch is not part of the checksum.
                let epoch = number(row, 9)?.filter(|_| verb.is_some()).unwrap_or_default();
                Some(Box::new(InFlight {
                    definition,
                    stamp,
                    verb,
                    epoch,
                    owes,
                    pays: number(row, 12)?,
                }))
            }
            (None, None, None) => None,
            _ => return Err(damaged("an incomplete begin record")),
        };
        let pause = match (text(row, 6)?, number(row, 7)?) {
            (Some(reason), Some(until_unix)) => {
                Some(Box::new(PauseRecord { reason, until_unix, lasts: number(row, 11)? }))
            }
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(damaged("an incomplete pause record")),
        };
        Ok(Few {
            interrupted,
            cut: verb(text(row, 10)?)?.filter(|_| interrupted.is_some()),
            cut_pays: number(row, 13)?.filter(|_| interrupted.is_some()),
            flight,
            sent: text(row, 4)?.map(|text| OpaqueText(text.into())),
            taken: text(row, 5)?.map(Into::into),
            pause,
        })
    }

    /// Reads the global row.
    fn whole(&self) -> Result<(GlobalRecord, Tally), Fault> {
        let sql = format!("SELECT {} FROM whole", self.columns.whole);
        let read = |row: &Row<'_>| {
            let number = |index| row.get::<_, i64>(index).map(i64::cast_unsigned);
            let until = row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned);
            let lasts = row.get::<_, Option<i64>>(6)?.map(i64::cast_unsigned);
            let pause = row.get::<_, Option<String>>(1)?.zip(until);
            let pause = pause.map(|(reason, until_unix)| PauseRecord { reason, until_unix, lasts });
            let whole = GlobalRecord { pause, stamp: number(0)? };
            Ok((whole, Tally { rows: number(3)?, digest: number(4)? }, number(5)?))
        };
        let (whole, tally, sum) = self.connection.prepare_cached(&sql)?.query_row((), read)?;
        if sum != sum_of_whole(&whole, tally.both()) {
            return Err(Fault::Damaged(
                "the checksum of the global record does not match".to_owned(),
            ));
        }
        Ok((whole, tally))
    }
}

fn number(row: &Row<'_>, index: usize) -> Result<Option<u64>, rusqlite::Error> {
    Ok(row.get::<_, Option<i64>>(index)?.map(i64::cast_unsigned))
}

fn text(row: &Row<'_>, index: usize) -> Result<Option<String>, rusqlite::Error> {
    row.get(index)
}

/// Returns the checksum over the whole state, which changes with any record.
pub(super) fn sum(connection: &Connection) -> Result<u64, Fault> {
    let (whole, tally) = Reading::new(connection).whole()?;
    Ok(sum_of_whole(&whole, tally.both()))
}

fn write_whole(connection: &Connection, whole: &GlobalRecord, tally: Tally) -> Result<(), Fault> {
    let sql = "INSERT OR REPLACE INTO whole (id, stamp, reason, until, rows, digest, sum, lasts)
               VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    connection.prepare_cached(sql)?.execute(params![
        whole.stamp.cast_signed(),
        whole.pause.as_ref().map(|pause| &pause.reason),
        whole.pause.as_ref().map(|pause| pause.until_unix.cast_signed()),
        tally.rows.cast_signed(),
        tally.digest.cast_signed(),
        sum_of_whole(whole, tally.both()).cast_signed(),
        whole.pause.as_ref().and_then(|pause| pause.lasts).map(u64::cast_signed),
    ])?;
    Ok(())
}

/// Joins a list of identities to one text that an operator can read.
fn join<T: AsRef<str>>(owes: &[T]) -> String {
    let names: Vec<&str> = owes.iter().map(AsRef::as_ref).collect();
    serde_json::Value::from(names).to_string()
}

pub(super) fn split(owes: &str) -> Option<Vec<String>> {
    serde_json::from_str(owes).ok()
}
