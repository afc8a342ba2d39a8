//! The recorder of one run: it stores the prior state of each object before the run changes the object.

use super::database::{Job, StoredPrior, milliseconds};
use super::entry::Stored;
use super::{History, HistoryError, PRODUCED, UNDO};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use steadfast_resources::{
    After, Failure, FieldValues, FormerValue, Loss, NotRecorded, PendingRecord, PriorContent,
    PriorEntry, PriorShape, PriorState, PriorStateRecorder, printable,
};

/// The recorder of one run.
#[derive(Debug)]
pub(super) struct OfRun {
    pub(super) history: Arc<History>,
    pub(super) resource: String,
    pub(super) cause: String,
    /// The number of the first entry of the run; 0 before there is one.
    pub(super) run: AtomicU64,
}

impl PriorStateRecorder for OfRun {
    fn largest(&self) -> u64 {
        // One file takes at most a quarter of the history.
        let limits = self.history.limits.get();
        limits.file.min(limits.total / 4)
    }

    fn keep(&self, path: &Path, former: PriorState, losing: Loss<'_>) -> Result<u64, Failure> {
        if !losing.purged && former != PriorState::Nothing {
            let record = self.begin_keep(path, former, losing)?;
            let number = record.number();
            return record.wait().map(|()| number);
        }
        let losing = self.bounded(losing);
        // An undo that completes an interrupted one reads from the history which objects were already created, so it
        // waits.
        let wait = former != PriorState::Nothing || self.cause == UNDO;
        let loses = loses(&former);
        let stored = self.stored(path, former, losing.what);
        let without_content = losing.purged.then(|| without_content(&stored));
        let kept = self.history.hand_in(StoredPrior::new(stored, losing), &self.run, wait);
        match (kept, without_content) {
            // A purge is not blocked by a file that is too large: the entry records that the content is gone.
            (Err(why @ HistoryError::Beyond(_)), Some(stored)) => {
                self.history.warn(&why);
                let kept = self.history.hand_in(StoredPrior::new(stored, losing), &self.run, wait);
                Ok(kept.unwrap_or_default())
            }
            (kept, _) => answer_for(&self.history, path, kept, loses),
        }
    }

    fn begin_keep(
        &self,
        path: &Path,
        former: PriorState,
        losing: Loss<'_>,
    ) -> Result<PendingRecord, Failure> {
        // A purge may go ahead without a record, which shows only at the end.
        if losing.purged || former == PriorState::Nothing {
            return self.keep(path, former, losing).map(PendingRecord::durable);
        }
        let loses = loses(&former);
        let losing = self.bounded(losing);
        let prior = StoredPrior::new(self.stored(path, former, losing.what), losing);
        let (number, answer) = match self.history.begin(prior, &self.run, true) {
            Ok((number, Some(answer))) => (number, answer),
            Ok((number, None)) => return Ok(PendingRecord::durable(number)),
            Err(why) => {
                let answer = answer_for(&self.history, path, Err(why), loses);
                return answer.map(PendingRecord::durable);
            }
        };
        let (history, path) = (Arc::clone(&self.history), path.to_owned());
        Ok(PendingRecord::pending(number, move || {
            let written = history.wait_for(&answer).map(|()| number);
            answer_for(&history, &path, written, loses).map(drop)
        }))
    }

    fn settle(&self, number: u64, made: bool) {
        if number > 0 {
            self.history.hand_over(Job::Settle(number, made));
        }
    }

    fn keep_values(&self, before: FieldValues) -> u64 {
        let value = |(field, before): (&str, _)| FormerValue {
            field: field.to_owned(),
            before,
            after: After::Unknown,
        };
        let values = before.into_iter().map(value).collect();
        let stored = Stored { values, ..self.stored(Path::new(""), PriorState::Nothing, "values") };
        let kept = StoredPrior { stored, content: None, edited: None, secret: false };
        self.history.hand_in(kept, &self.run, true).unwrap_or_else(|why| {
            self.history.warn(&why);
            0
        })
    }

    fn note_values(&self, values: FieldValues) {
        let value = |(field, value): (&str, Option<String>)| FormerValue {
            field: field.to_owned(),
            before: None,
            after: value.into(),
        };
        let values = values.into_iter().map(value).collect();
        let stored = Stored { values, ..self.stored(Path::new(""), PriorState::Nothing, PRODUCED) };
        let kept = StoredPrior { stored, content: None, edited: None, secret: false };
        if let Err(why) = self.history.hand_in(kept, &self.run, false) {
            self.history.warn(&why);
        }
    }

    fn settle_values(&self, number: u64, after: FieldValues) {
        if number > 0 {
            self.history.hand_over(Job::SettleValues(number, after));
        }
    }
}

impl OfRun {
    fn stored(&self, path: &Path, former: PriorState, what: &str) -> Stored {
        Stored {
            number: 0,
            run: 0,
            resource: self.resource.clone(),
            path: path.to_owned(),
            at: milliseconds((self.history.clock)()),
            cause: self.cause.clone(),
            what: what.to_owned(),
            former,
            values: Vec::new(),
            content: None,
            edited: None,
        }
    }

    /// Returns the loss without an edited text that is too large for the history.
    fn bounded<'loss>(&self, losing: Loss<'loss>) -> Loss<'loss> {
        let is_small = |bytes: &&[u8]| bytes.len() as u64 <= self.largest();
        Loss { edited: losing.edited.filter(is_small), ..losing }
    }
}

/// Returns the number of an entry, or the failure that forbids the change.
fn answer_for(
    history: &History,
    path: &Path,
    kept: Result<u64, HistoryError>,
    loses: bool,
) -> Result<u64, Failure> {
    match kept {
        Ok(number) => Ok(number),
        // A prior state without content (a mode, or nothing) does not justify leaving drift on the host.
        Err(why) if !loses && !matches!(why, HistoryError::Gone(_)) => {
            history.warn(&why);
            Ok(0)
        }
        Err(why) => Err(refused(path, &why)),
    }
}

/// Returns the state without its content, marked as too large.
fn without_content(stored: &Stored) -> Stored {
    let mut stored = Stored { content: None, ..stored.clone() };
    if let PriorState::Thing(thing) = &mut stored.former
        && let PriorShape::File(_, content @ PriorContent::Bytes(_)) = &mut thing.shape
    {
        *content = PriorContent::NotRecorded(NotRecorded::Large);
    }
    stored
}

impl Drop for OfRun {
    fn drop(&mut self) {
        let run = self.run.load(Ordering::SeqCst);
        self.history.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }
}

/// Returns true if a change of this state would lose data that exists nowhere else.
fn loses(former: &PriorState) -> bool {
    match former {
        PriorState::Nothing => false,
        PriorState::Thing(PriorEntry { shape, .. }) => match shape {
            PriorShape::File(_, PriorContent::Bytes(bytes)) => !bytes.is_empty(),
            PriorShape::Link(_) => true,
            PriorShape::File(..) | PriorShape::Directory | PriorShape::Other => false,
        },
    }
}

fn refused(path: &Path, why: &HistoryError) -> Failure {
    let path = printable(&path.to_string_lossy()).into_owned();
    let what = format!("no changes made: the current object cannot be recorded\n{path}: {why}");
    let failure = Failure::new(what).hint(why.hint());
    // Nothing reports that the disk or the database can be used again.
    if matches!(why, HistoryError::Database { .. }) { failure.passing() } else { failure }
}
