//! An independent computation of the state's checksums, for rows that a test writes without the store.

/// An FNV-1a sum over numbers and texts, as the tables store it.
pub(crate) struct Sum(pub(crate) u64);

impl Sum {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self
    }

    pub(crate) fn number(self, number: Option<u64>) -> Self {
        let there = [u8::from(number.is_some())];
        self.bytes(&there).bytes(&number.unwrap_or_default().to_le_bytes())
    }

    pub(crate) fn text(self, text: Option<&str>) -> Self {
        let length = text.map(|text| u64::try_from(text.len()).expect("short"));
        self.number(length).bytes(text.unwrap_or_default().as_bytes())
    }
}
