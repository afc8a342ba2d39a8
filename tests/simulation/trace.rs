//! The trace of a run: a hash over all events, and the lines themselves on request.

use std::fmt::{Arguments, Write as _};

/// The events of a run, in order.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    lines: u64,
    buffer: String,
    /// The lines, if requested.
    pub(crate) kept: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(keep: bool) -> Self {
        let kept = keep.then(Vec::new);
        Self { hash: 0xcbf2_9ce4_8422_2325, lines: 0, buffer: String::new(), kept }
    }

    pub(crate) fn line(&mut self, at: u64, line: Arguments<'_>) {
        self.buffer.clear();
        write!(self.buffer, "{at:>8} {line}").expect("a text takes all");
        for byte in self.buffer.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.lines += 1;
        if let Some(kept) = &mut self.kept {
            kept.push(self.buffer.clone());
        }
    }

    /// Returns the hash and the number of lines.
    pub(crate) fn sum(&self) -> (u64, u64) {
        (self.hash, self.lines)
    }
}
