//! The bounds of the history, which a reload of the settings may change.

use super::{History, Limits};
use std::sync::{Arc, Mutex, PoisonError};

/// Bounds that several threads read. Clones are the same bounds.
#[derive(Clone, Debug)]
pub(super) struct SharedLimits(Arc<Mutex<Limits>>);

impl SharedLimits {
    pub(super) fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(limits)))
    }

    /// The bounds at this moment.
    pub(super) fn get(&self) -> Limits {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes them for all clones.
    pub(super) fn set(&self, limits: Limits) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }
}

impl History {
    /// Changes the bounds. The next write goes by them.
    pub fn set_limits(&self, limits: Limits) {
        self.limits.set(limits);
    }
}
