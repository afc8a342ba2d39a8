//! Values that a kind reads from the host for others, after a check or an apply.

use crate::values::sent_values::Sent;
use std::sync::{Mutex, PoisonError};

/// The slot for the values of one run that [`crate::Resource::read_sent`] has read.
#[derive(Debug, Default)]
pub struct SentSlot(Mutex<Sent>);

impl SentSlot {
    /// Stores the values; later ones replace earlier ones.
    pub fn fill(&self, sent: Sent) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sent;
    }

    /// Returns the stored values.
    #[must_use]
    pub fn values(&self) -> Sent {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
