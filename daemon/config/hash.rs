//! Hashes that are the same in every process and every release: multiply and fold, a word at a time.

/// A running hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stable(u64);

impl Stable {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds bytes and their number, so that `ab` + `c` differs from `a` + `bc`.
    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).number(text.len() as u64)
    }

    pub(super) const fn number(self, number: u64) -> Self {
        self.word(number)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self = self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        if rest.is_empty() { self } else { self.word(u64::from_le_bytes(last)) }
    }

    const fn word(self, word: u64) -> Self {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mixed ^ (mixed >> 29))
    }

    /// Returns the hash, with every bit depending on every other.
    pub(super) const fn finish(self) -> u64 {
        let mut hash = self.0;
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        hash ^ (hash >> 33)
    }
}

#[cfg(test)]
mod tests {
    use super::Stable;

    #[test]
    fn it_never_changes() {
        // A fixed number: a change would make every host run its commands again.
        assert_eq!(Stable::new().text("file").number(7).finish(), 1_885_302_063_232_148_479);
        assert_ne!(
            Stable::new().text("ab").text("c").finish(),
            Stable::new().text("a").text("bc").finish()
        );
    }
}
