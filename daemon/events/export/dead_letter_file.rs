//! The batches that recorders have put aside since the start, and the recorders that fail to deliver.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What one recorder has put aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterFile {
    /// So many events.
    pub count: u64,
    /// Why the last of them were.
    pub why: String,
}

impl DeadLetterFile {
    /// In words.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { count, why } = self;
        let were = if *count == 1 { "event was" } else { "events were" };
        format!("{count} {were} rejected and dead-lettered: {why}")
    }
}

/// A recorder whose last delivery failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The time since the first failure in a row.
    pub lasts: Duration,
    /// The reason of the last one.
    pub why: String,
}

impl Failing {
    /// In words.
    #[must_use]
    pub fn message(&self) -> String {
        format!("delivered nothing for {} s, retrying: {}", self.lasts.as_secs(), self.why)
    }
}

/// What each of them has put aside, by its name.
#[derive(Debug, Default)]
pub struct DeadLetter {
    aside: Mutex<BTreeMap<Arc<str>, DeadLetterFile>>,
    /// The recorders whose last delivery failed: since when, and why.
    failing: Mutex<BTreeMap<Arc<str>, (Instant, String)>>,
}

impl DeadLetter {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, DeadLetterFile>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_failing(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, (Instant, String)>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A delivery of this recorder failed.
    pub(in crate::events) fn fails(&self, recorder: &Arc<str>, why: &str) {
        let mut failing = self.lock_failing();
        let first = || (Instant::now(), String::new());
        let (_, last) = failing.entry(Arc::clone(recorder)).or_insert_with(first);
        why.clone_into(last);
    }

    /// A delivery of this recorder arrived, or the recorder has ended.
    pub fn succeeds(&self, recorder: &str) {
        self.lock_failing().remove(recorder);
    }

    /// The recorders whose last delivery failed, by name.
    #[must_use]
    pub fn failing(&self) -> BTreeMap<Arc<str>, Failing> {
        let failing = self.lock_failing();
        let each = failing.iter().map(|(recorder, (since, why))| {
            (Arc::clone(recorder), Failing { lasts: since.elapsed(), why: why.clone() })
        });
        each.collect()
    }

    /// So many more events were put aside by this recorder.
    pub(in crate::events) fn add(&self, recorder: &Arc<str>, count: u64, why: &str) {
        let mut all = self.lock();
        let aside = all.entry(Arc::clone(recorder)).or_default();
        aside.count += count;
        why.clone_into(&mut aside.why);
    }

    /// What this recorder has put aside, if anything.
    #[must_use]
    pub fn of(&self, recorder: &str) -> Option<DeadLetterFile> {
        self.lock().get(recorder).cloned()
    }

    /// What all have put aside, by name.
    #[must_use]
    pub fn all(&self) -> BTreeMap<Arc<str>, DeadLetterFile> {
        self.lock().clone()
    }
}
