//! What recorders have put aside since the daemon began, because it was refused.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one recorder has put aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// So many events.
    pub count: u64,
    /// Why the last of them were.
    pub why: String,
}

impl Aside {
    /// In words.
    #[must_use]
    pub fn says(&self) -> String {
        let Self { count, why } = self;
        let were = if *count == 1 { "event was" } else { "events were" };
        format!("{count} {were} refused and put aside: {why}")
    }
}

/// What each of them has put aside, by its name.
#[derive(Debug, Default)]
pub struct PutAside(Mutex<BTreeMap<Arc<str>, Aside>>);

impl PutAside {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Aside>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many more events were put aside by this recorder.
    pub(super) fn add(&self, recorder: &Arc<str>, count: u64, why: &str) {
        let mut all = self.lock();
        let aside = all.entry(Arc::clone(recorder)).or_default();
        aside.count += count;
        why.clone_into(&mut aside.why);
    }

    /// What this recorder has put aside, if anything.
    #[must_use]
    pub fn of(&self, recorder: &str) -> Option<Aside> {
        self.lock().get(recorder).cloned()
    }

    /// What all have put aside, by name.
    #[must_use]
    pub fn all(&self) -> BTreeMap<Arc<str>, Aside> {
        self.lock().clone()
    }
}
