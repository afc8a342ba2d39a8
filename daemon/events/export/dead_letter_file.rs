//! The dead-lettered batches of all recorders since the start, and the recorders that fail to deliver.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The dead-lettered events of one recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterFile {
    /// The number of events.
    pub count: u64,
    /// The reason of the last rejection.
    pub why: String,
}

impl DeadLetterFile {
    /// Describes the events in words.
    #[must_use]
    pub fn message(&self) -> String {
        let Self { count, why } = self;
        let were = if *count == 1 { "event was" } else { "events were" };
        format!("{count} {were} rejected and dead-lettered: {why}")
    }
}

/// A recorder that fails to deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The time since the first of the consecutive failures.
    pub lasts: Duration,
    /// The reason of the last failure.
    pub why: String,
}

impl Failing {
    /// Describes the failure in words.
    #[must_use]
    pub fn message(&self) -> String {
        format!("delivered nothing for {} s, retrying: {}", self.lasts.as_secs(), self.why)
    }
}

/// The dead-lettered events and the failures of all recorders, by name.
#[derive(Debug, Default)]
pub struct DeadLetter {
    aside: Mutex<BTreeMap<Arc<str>, DeadLetterFile>>,
    /// The failing recorders: the time of the first failure, and the last reason.
    failing: Mutex<BTreeMap<Arc<str>, (Instant, String)>>,
}

impl DeadLetter {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, DeadLetterFile>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_failing(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, (Instant, String)>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a failed delivery of a recorder.
    pub(in crate::events) fn fails(&self, recorder: &Arc<str>, why: &str) {
        let mut failing = self.lock_failing();
        let first = || (Instant::now(), String::new());
        let (_, last) = failing.entry(Arc::clone(recorder)).or_insert_with(first);
        why.clone_into(last);
    }

    /// Records a successful delivery of a recorder, or its end.
    pub fn succeeds(&self, recorder: &str) {
        self.lock_failing().remove(recorder);
    }

    /// Returns the failing recorders by name.
    #[must_use]
    pub fn failing(&self) -> BTreeMap<Arc<str>, Failing> {
        let failing = self.lock_failing();
        let each = failing.iter().map(|(recorder, (since, why))| {
            (Arc::clone(recorder), Failing { lasts: since.elapsed(), why: why.clone() })
        });
        each.collect()
    }

    /// Adds dead-lettered events of a recorder.
    pub(in crate::events) fn add(&self, recorder: &Arc<str>, count: u64, why: &str) {
        let mut all = self.lock();
        let aside = all.entry(Arc::clone(recorder)).or_default();
        aside.count += count;
        why.clone_into(&mut aside.why);
    }

    /// Returns the dead-lettered events of a recorder, if there are any.
    #[must_use]
    pub fn of(&self, recorder: &str) -> Option<DeadLetterFile> {
        self.lock().get(recorder).cloned()
    }

    /// Returns the dead-lettered events of all recorders, by name.
    #[must_use]
    pub fn all(&self) -> BTreeMap<Arc<str>, DeadLetterFile> {
        self.lock().clone()
    }
}
