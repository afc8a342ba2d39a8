//! Chance: numbers that follow from a seed and from nothing else.

/// A stream of numbers (`SplitMix64`, by Steele, Lea and Flood).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chance(u64);

impl Chance {
    /// A stream of its own for one purpose: what is drawn for it changes nothing for the others.
    pub(crate) fn of(seed: u64, purpose: &str) -> Self {
        let mut state = Self(seed);
        for byte in purpose.bytes() {
            state.0 = state.next() ^ u64::from(byte);
        }
        Self(state.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// A number below the bound; 0 where that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// The same as an index.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    /// From the first to the last.
    pub(crate) fn within(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// True once in so many times; never for 0.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        times != 0 && self.below(times) == 0
    }

    /// True so many times of a hundred.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }
}
