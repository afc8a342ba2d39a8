//! The limits of the history, which a reload of the settings may change.

use super::{History, Limits};
use std::sync::{Arc, Mutex, PoisonError};

/// Limits that several threads read. Clones share the limits.
#[derive(Clone, Debug)]
pub(super) struct SharedLimits(Arc<Mutex<Limits>>);

impl SharedLimits {
    pub(super) fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(limits)))
    }

    /// Returns the present limits.
    pub(super) fn get(&self) -> Limits {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the limits for all clones.
    pub(super) fn set(&self, limits: Limits) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }
}

impl History {
    /// Changes the limits, from the next write on.
    pub fn set_limits(&self, limits: Limits) {
        self.limits.set(limits);
    }
}
