//! Random numbers that depend on a seed and on nothing else.

/// A stream of random numbers (`SplitMix64`, by Steele, Lea and Flood).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chance(u64);

impl Chance {
    /// Creates the stream of one purpose. Draws from one stream do not change the numbers of another.
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

    /// Draws a number below the bound; returns 0 if the bound is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// Draws an index below a length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    /// Draws a number from `first` to `last`, both included.
    pub(crate) fn within(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// Returns true once in `times` calls on average; never for 0.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        times != 0 && self.below(times) == 0
    }

    /// Returns true with this probability, in percent.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }
}
