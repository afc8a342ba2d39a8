//! Batches that a receiver refuses: each is offered a few times, and then put aside, so that what comes after it arrives.

use std::collections::BTreeMap;

/// Why a batch has not arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// It may arrive later: it is sent again until it does.
    Later(String),
    /// It was looked at and refused: that may be for ever.
    Refused(String),
}

impl Unsent {
    /// In words.
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

/// So often a batch is offered to one who refuses it.
const OFFERS: u32 = 5;

/// How often each batch that is under way was refused, by its first number.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    offers: BTreeMap<u64, u32>,
}

impl Refusals {
    /// It was refused once more; whether it is put aside.
    pub(super) fn is_enough(&mut self, first: u64) -> bool {
        let offers = self.offers.entry(first).or_default();
        *offers += 1;
        let is_enough = *offers >= OFFERS;
        if is_enough {
            self.forget(first);
        }
        is_enough
    }

    /// It has arrived, or is put aside.
    pub(super) fn forget(&mut self, first: u64) {
        self.offers.remove(&first);
    }
}

#[cfg(test)]
mod tests {
    use super::{OFFERS, Refusals};

    /// C-12: each batch has its own offers, and one that arrives is forgotten.
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
