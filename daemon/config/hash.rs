//! Hashes that are the same in every process and every release: FNV-1a with a finish.

/// A running hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stable(u64);

impl Stable {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds bytes, with their number, so that `ab` + `c` differs from `a` + `bc`.
    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).number(text.len() as u64)
    }

    pub(super) fn number(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self
    }

    /// The hash, with every bit depending on every other.
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
        // Written down once: another number here would make every host run its commands again.
        assert_eq!(Stable::new().text("file").number(7).finish(), 1_860_948_573_450_666_982);
        assert_ne!(
            Stable::new().text("ab").text("c").finish(),
            Stable::new().text("a").text("bc").finish()
        );
    }
}
