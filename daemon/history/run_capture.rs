//! Who keeps for one run what it is about to change.

use super::database::{Kept, milliseconds};
use super::entry::Stored;
use super::{History, HistoryError, UNDO};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use steadfast_resources::{
    Failure, Loss, NotRecorded, PriorContent, PriorEntry, PriorShape, PriorState,
    PriorStateRecorder, printable,
};

/// Keeps for one run.
#[derive(Debug)]
pub(super) struct OfRun {
    pub(super) history: Arc<History>,
    pub(super) resource: String,
    pub(super) cause: String,
    /// The number of its first entry; 0 before that.
    pub(super) run: AtomicU64,
}

impl PriorStateRecorder for OfRun {
    fn largest(&self) -> u64 {
        // Nothing takes all the room there is.
        let limits = self.history.limits.get();
        limits.file.min(limits.total / 4)
    }

    fn keep(&self, path: &Path, former: PriorState, losing: Loss<'_>) -> Result<u64, Failure> {
        // Who completes an undo that was cut off makes nothing twice: what is made by its first half is known from that alone.
        let wait = former != PriorState::Nothing || self.cause == UNDO;
        let loses = loses(&former);
        let stored = Stored {
            number: 0,
            run: 0,
            resource: self.resource.clone(),
            path: path.to_owned(),
            at: milliseconds((self.history.clock)()),
            cause: self.cause.clone(),
            what: losing.what.to_owned(),
            former,
            content: None,
        };
        let without_content = losing.purged.then(|| without_content(&stored));
        let kept = self.history.hand_in(Kept::new(stored, losing), &self.run, wait);
        match (kept, without_content) {
            // A purge is not delayed by whoever fills the tree: the entry says that the content is gone.
            (Err(why @ HistoryError::Beyond(_)), Some(stored)) => {
                self.history.warn(&why);
                let kept = self.history.hand_in(Kept::new(stored, losing), &self.run, wait);
                Ok(kept.unwrap_or_default())
            }
            (kept, _) => self.answer(path, kept, loses),
        }
    }

    fn settle(&self, number: u64, made: bool) {
        if number > 0 {
            self.history.settle(number, made);
        }
    }
}

impl OfRun {
    fn answer(
        &self,
        path: &Path,
        kept: Result<u64, HistoryError>,
        loses: bool,
    ) -> Result<u64, Failure> {
        match kept {
            Ok(number) => Ok(number),
            // What is only a mode, or nothing, is no reason to leave a host as it should not be.
            Err(why) if !loses => {
                self.history.warn(&why);
                Ok(0)
            }
            Err(why) => Err(refused(path, &why)),
        }
    }
}

/// The same state, with the content left out for want of room.
fn without_content(stored: &Stored) -> Stored {
    let mut stored = Stored { content: None, ..stored.clone() };
    if let PriorState::Thing(thing) = &mut stored.former
        && let PriorShape::File(_, content @ PriorContent::Bytes(_)) = &mut thing.shape
    {
        *content = PriorContent::Unkept(NotRecorded::Large);
    }
    stored
}

impl Drop for OfRun {
    fn drop(&mut self) {
        let run = self.run.load(Ordering::SeqCst);
        self.history.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }
}

/// Whether something would be gone that is nowhere else.
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
    Failure::new(what).hint(why.hint())
}
