//! The meaning of each entry, in one place: both stores use this code.

use super::{
    Ended, Entry, OpaqueText, Ownership, PauseRecord, ResourceRecord, StoreError, StoredState, Verb,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The stored record of one identity, with a run in flight. Rare fields are boxed: a start reads a hundred thousand of
/// these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) done: Option<u64>,
    pub(super) owed: Option<(u64, String)>,
    /// The definition of a run that was cut off.
    pub(super) interrupted: Option<u64>,
    /// The operation of that run.
    pub(super) cut: Option<Verb>,
    /// The refreshes that this run did, up to this stamp.
    pub(super) cut_pays: Option<u64>,
    pub(super) flight: Option<Box<InFlight>>,
    pub(super) sent: Option<OpaqueText>,
    pub(super) taken: Option<Arc<str>>,
    pub(super) pause: Option<Box<PauseRecord>>,
    pub(super) owned: Option<Arc<Ownership>>,
}

impl Record {
    fn forget_interruption(&mut self) {
        (self.interrupted, self.cut, self.cut_pays) = (None, None, None);
    }
}

/// A begin without an end so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InFlight {
    pub(super) definition: u64,
    pub(super) stamp: u64,
    /// None in records of older programs.
    pub(super) verb: Option<Verb>,
    /// The epoch of the writer; 0 if there is none.
    pub(super) epoch: u64,
    pub(super) owes: Vec<String>,
    /// The run does the refreshes owed up to this stamp. None in records of older programs.
    pub(super) pays: Option<u64>,
}

/// The part of the state that is not about one identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GlobalRecord {
    pub(super) pause: Option<PauseRecord>,
    pub(super) stamp: u64,
}

/// The storage of records while entries are applied. A default record is equal to none.
pub(super) trait Rows {
    fn load(&mut self, identity: &str) -> Result<Record, StoreError>;
    fn save(&mut self, identity: &str, record: Record);
    fn whole(&mut self) -> &mut GlobalRecord;
    /// Returns the epoch of the writer; 0 if there is none.
    fn epoch(&self) -> u64;
}

/// All records, in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    pub(super) records: BTreeMap<String, Record>,
    pub(super) whole: GlobalRecord,
}

impl Rows for Records {
    fn load(&mut self, identity: &str) -> Result<Record, StoreError> {
        Ok(self.records.get(identity).cloned().unwrap_or_default())
    }

    fn save(&mut self, identity: &str, record: Record) {
        if record == Record::default() {
            self.records.remove(identity);
        } else {
            self.records.insert(identity.to_owned(), record);
        }
    }

    fn whole(&mut self) -> &mut GlobalRecord {
        &mut self.whole
    }

    fn epoch(&self) -> u64 {
        0
    }
}

impl Records {
    /// Returns the state for a start, once nothing is in flight.
    pub(super) fn recalled(self) -> StoredState {
        let stored = |record: Record| ResourceRecord {
            done: record.done,
            owed: record.owed,
            cut: record.flight.as_ref().map_or(record.cut, |flight| flight.verb),
            cut_pays: record.flight.as_ref().map_or(record.cut_pays, |flight| flight.pays),
            interrupted: record.flight.map(|f| f.definition).or(record.interrupted),
            sent: record.sent,
            taken: record.taken,
            pause: record.pause.map(|pause| *pause),
            owned: record.owned,
        };
        StoredState {
            resources: self.records.into_iter().map(|(name, kept)| (name, stored(kept))).collect(),
            pause: self.whole.pause,
            stamp: self.whole.stamp,
            key: None,
        }
    }

    /// Returns the identities with a run in flight.
    pub(super) fn in_flight(&self) -> Vec<String> {
        let flying = |(name, kept): (&String, &Record)| kept.flight.is_some().then(|| name.clone());
        self.records.iter().filter_map(flying).collect()
    }

    /// Returns the identities with a run that was begun under this epoch and has not ended.
    pub(super) fn begun_under(&self, epoch: u64) -> BTreeSet<String> {
        let is_begun = |kept: &Record| kept.flight.as_ref().is_some_and(|it| it.epoch == epoch);
        let begun = self.records.iter().filter(|(_, kept)| is_begun(kept));
        begun.map(|(name, _)| name.clone()).collect()
    }
}

/// Converts a loaded state into records without runs in flight.
impl From<StoredState> for Records {
    fn from(recalled: StoredState) -> Self {
        let record = |kept: ResourceRecord| Record {
            done: kept.done,
            owed: kept.owed,
            interrupted: kept.interrupted,
            cut: kept.cut,
            cut_pays: kept.cut_pays,
            flight: None,
            sent: kept.sent,
            taken: kept.taken,
            pause: kept.pause.map(Box::new),
            owned: kept.owned,
        };
        let records = recalled.resources.into_iter().map(|(name, kept)| (name, record(kept)));
        let records = records.filter(|(_, record)| *record != Record::default());
        let whole = GlobalRecord { pause: recalled.pause, stamp: recalled.stamp };
        Self { records: records.collect(), whole }
    }
}

/// Changes one record.
fn alter(
    identity: &str,
    rows: &mut impl Rows,
    change: impl FnOnce(&mut Record),
) -> Result<(), StoreError> {
    let mut record = rows.load(identity)?;
    change(&mut record);
    rows.save(identity, record);
    Ok(())
}

/// Applies one entry.
pub(super) fn fold(entry: &Entry, rows: &mut impl Rows) -> Result<(), StoreError> {
    match entry {
        Entry::Begin { identity, definition, stamp, verb, owes, pays } => {
            let flight = InFlight {
                definition: *definition,
                stamp: *stamp,
                verb: Some(*verb),
                epoch: rows.epoch(),
                owes: owes.iter().map(ToString::to_string).collect(),
                pays: *pays,
            };
            begin(identity, flight, rows)?;
        }
        Entry::Withdraw { identity, stamp } => {
            let mut record = rows.load(identity)?;
            record.flight = record.flight.filter(|flight| flight.stamp != *stamp);
            rows.save(identity, record);
        }
        Entry::End { identity, definition, outcome, begun, stamp, owes, paid } => {
            reach(*stamp, rows);
            end(identity, (*begun, *stamp), (*outcome, *definition), rows)?;
            ended(identity, (*outcome, *definition), *paid, rows)?;
            let owes: Vec<&str> = owes.iter().map(Arc::as_ref).collect();
            raise(&owes, *stamp, identity, rows)?;
        }
        Entry::Sent { identity, values } => note_sent(identity, values, rows)?,
        Entry::Taken { identity, hashes } => {
            alter(identity, rows, |record| record.taken = Some(Arc::clone(hashes)))?;
        }
        Entry::Forget(identity) => {
            // Refreshes that the resource owes outlive it (E-9); only those owed to it are deleted.
            settle(identity, rows)?;
            rows.save(identity, Record::default());
        }
        Entry::Reset(identity) => {
            alter(identity, rows, |record| {
                record.done = None;
                record.forget_interruption();
                record.owned = None;
            })?;
        }
        Entry::ForgetSent(identity) => alter(identity, rows, |record| record.sent = None)?,
        Entry::Retry(identity) => {
            // Includes a run that was cut off: the operator has decided.
            alter(identity, rows, |record| {
                record.done = None;
                record.forget_interruption();
            })?;
        }
        Entry::ResourcePause { identity, pause } => {
            alter(identity, rows, |record| record.pause = pause.clone().map(Box::new))?;
        }
        Entry::Own { identity, owned } => {
            let owned = owned.clone().filter(|owned| owned.is_recorded());
            alter(identity, rows, |record| record.owned = owned)?;
        }
        Entry::Protect { identity, protect } => {
            let mut record = rows.load(identity)?;
            let owned = record.owned.as_ref().map(|owned| owned.protected(*protect));
            record.owned = owned.filter(Ownership::is_recorded).map(Arc::new);
            rows.save(identity, record);
        }
        Entry::Rename { from, to, definition, sent } => {
            rename((from, to), *definition, rows)?;
            if let Some(values) = sent {
                note_sent(to, values, rows)?;
            }
        }
        Entry::Pause(pause) => rows.whole().pause.clone_from(pause),
        // The records do not change.
        Entry::Wipe { .. } => {}
    }
    Ok(())
}

fn note_sent(identity: &str, values: &OpaqueText, rows: &mut impl Rows) -> Result<(), StoreError> {
    let mut record = rows.load(identity)?;
    record.sent = Some(values.clone());
    rows.save(identity, record);
    Ok(())
}

/// Moves a record to a new identity, unless the new one has more than an old run: the record with ownership wins. A run
/// in flight under either identity will not end under it, and counts as cut off.
fn rename(
    (from, to): (&str, &str),
    definition: Option<(u64, u64)>,
    rows: &mut impl Rows,
) -> Result<(), StoreError> {
    settle(from, rows)?;
    settle(to, rows)?;
    let (mut old, mut new) = (rows.load(from)?, rows.load(to)?);
    let owed = old.owed.take().max(new.owed.take());
    if new == Record::default() || (new.owned.is_none() && old.owned.is_some()) {
        let called = |old: u64| definition.filter(|(of, _)| *of == old).map_or(old, |(_, new)| new);
        let cut_off = (new.interrupted, new.cut, new.cut_pays);
        new = std::mem::take(&mut old);
        new.done = new.done.map(called);
        new.interrupted = new.interrupted.map(called);
        if new.interrupted.is_none() {
            (new.interrupted, new.cut, new.cut_pays) = cut_off;
        }
    }
    new.owed = owed;
    rows.save(from, old);
    rows.save(to, new);
    Ok(())
}

/// Records a begin. An earlier run in flight was cut off. A begin that is repeated because its result was unknown is
/// the same run, or an earlier one.
fn begin(identity: &str, flight: InFlight, rows: &mut impl Rows) -> Result<(), StoreError> {
    reach(flight.stamp, rows);
    let mut record = rows.load(identity)?;
    if record.flight.as_ref().is_some_and(|other| other.stamp > flight.stamp) {
        return Ok(());
    }
    if record.flight.as_ref().is_some_and(|other| other.stamp != flight.stamp) {
        settle(identity, rows)?;
        record = rows.load(identity)?;
    }
    record.flight = Some(Box::new(flight));
    rows.save(identity, record);
    Ok(())
}

/// Records the definition of a good run as completed, and deletes refreshes that the run has done.
fn ended(
    identity: &str,
    (outcome, definition): (Ended, u64),
    paid: Option<u64>,
    rows: &mut impl Rows,
) -> Result<(), StoreError> {
    let mut record = rows.load(identity)?;
    if outcome == Ended::Well {
        record.done = Some(definition);
    }
    let covered = |(owed, _): &(u64, String)| paid.is_some_and(|paid| *owed <= paid);
    record.owed = record.owed.filter(|owed| !covered(owed));
    rows.save(identity, record);
    Ok(())
}

/// Ends the run in flight. A begin with another stamp was cut off, and its refreshes are owed. A begin that is newer
/// than the end stays: the end was repeated because its result was unknown.
fn end(
    identity: &str,
    (begun, stamp): (Option<u64>, u64),
    (outcome, definition): (Ended, u64),
    rows: &mut impl Rows,
) -> Result<(), StoreError> {
    let mut record = rows.load(identity)?;
    if record.flight.as_ref().is_some_and(|flight| flight.stamp > stamp) {
        return Ok(());
    }
    let own = record.flight.as_ref().is_none_or(|flight| Some(flight.stamp) == begun);
    if outcome == Ended::Interrupted || !own {
        settle(identity, rows)?;
        record = rows.load(identity)?;
    }
    let run = record.flight.take();
    let (verb, pays) = run.map_or((record.cut, record.cut_pays), |run| (run.verb, run.pays));
    record.forget_interruption();
    if outcome == Ended::Interrupted {
        (record.interrupted, record.cut, record.cut_pays) = (Some(definition), verb, pays);
    }
    rows.save(identity, record);
    Ok(())
}

/// Turns a begin that will never get its end into an interruption: its refreshes are owed.
pub(super) fn settle(identity: &str, rows: &mut impl Rows) -> Result<(), StoreError> {
    let mut record = rows.load(identity)?;
    let Some(flight) = record.flight.take() else { return Ok(()) };
    record.interrupted = Some(flight.definition);
    (record.cut, record.cut_pays) = (flight.verb, flight.pays);
    rows.save(identity, record);
    let owes: Vec<&str> = flight.owes.iter().map(String::as_str).collect();
    raise(&owes, flight.stamp, identity, rows)
}

fn raise(owes: &[&str], stamp: u64, cause: &str, rows: &mut impl Rows) -> Result<(), StoreError> {
    for child in owes {
        let mut record = rows.load(child)?;
        if record.owed.as_ref().is_none_or(|(owed, _)| *owed < stamp) {
            record.owed = Some((stamp, cause.to_owned()));
            rows.save(child, record);
        }
    }
    Ok(())
}

fn reach(stamp: u64, rows: &mut impl Rows) {
    let whole = rows.whole();
    whole.stamp = whole.stamp.max(stamp);
}
