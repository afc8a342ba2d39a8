//! Rejected batches: a batch is offered several times and then dead-lettered, so that later batches arrive.

use std::collections::BTreeMap;

/// The reason why a batch has not arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// A temporary failure: the batch is sent again.
    Later(String),
    /// The server has rejected the batch, possibly for good.
    Refused(String),
}

impl Unsent {
    /// Returns the reason in words.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Later(why) | Self::Refused(why) => why,
        }
    }
}

impl From<String> for Unsent {
    fn from(why: String) -> Self {
        Self::Later(why)
    }
}

/// The number of times that a rejected batch is offered.
const OFFERS: u32 = 5;

/// The number of rejections of each open batch, by its first number.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    offers: BTreeMap<u64, u32>,
}

impl Refusals {
    /// Counts a rejection; returns true if the batch must be dead-lettered.
    pub(super) fn is_enough(&mut self, first: u64) -> bool {
        let offers = self.offers.entry(first).or_default();
        *offers += 1;
        let is_enough = *offers >= OFFERS;
        if is_enough {
            self.forget(first);
        }
        is_enough
    }

    /// Forgets a batch that has arrived or was dead-lettered.
    pub(super) fn forget(&mut self, first: u64) {
        self.offers.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use super::{OFFERS, Refusals};

    /// C-12: each batch has its own count, and a batch that arrives is forgotten.
    #[test]
    fn c12_the_fifth_refusal_is_enough() {
        let mut refusals = Refusals::default();
        for _ in 1..OFFERS {
            assert!(!refusals.is_enough(1) && !refusals.is_enough(51));
        }
        refusals.forget(51);
        assert!(refusals.is_enough(1));
        assert!(!refusals.is_enough(51));
        assert!(refusals.offers.keys().eq([&51]));
    }
}
