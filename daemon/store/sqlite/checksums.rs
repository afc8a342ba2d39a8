//! The checksums of rows, which detect damage. Rows of older schemas have the same sums, since absent columns are not
//! included.

use super::ownership;
use crate::store::replay::{GlobalRecord, Record};
use crate::store::{OpaqueText, Verb};

/// Returns the operation of an interrupted run; none without an interruption.
pub(super) fn cut(record: &Record) -> Option<Verb> {
    record.cut.filter(|_| record.interrupted.is_some())
}

/// Returns the stamp of the refreshes that an interrupted run did; none without an interruption.
pub(super) fn cut_pays(record: &Record) -> Option<u64> {
    record.cut_pays.filter(|_| record.interrupted.is_some())
}

/// Returns the checksum of a row.
pub(super) fn sum_of(identity: &str, record: &Record) -> u64 {
    let mut sum = Sum::default();
    sum.text(Some(identity));
    sum.number(record.done);
    sum.number(record.owed.as_ref().map(|(stamp, _)| *stamp));
    sum.text(record.owed.as_ref().map(|(_, cause)| cause.as_str()));
    sum.number(record.interrupted);
    sum.number(record.flight.as_ref().map(|flight| flight.stamp));
    sum.number(record.flight.as_ref().map(|flight| flight.definition));
    for owes in record.flight.iter().flat_map(|flight| &flight.owes) {
        sum.text(Some(owes));
    }
    // Rows of the first schema have neither value, and the same sum.
    if record.sent.is_some() || record.taken.is_some() {
        sum.text(record.sent.as_ref().map(|OpaqueText(values)| values.as_ref()));
        sum.text(record.taken.as_deref());
    }
    if let Some(pause) = &record.pause {
        sum.text(Some("parked"));
        sum.text(Some(&pause.reason));
        sum.number(Some(pause.until_unix));
        if pause.lasts.is_some() {
            sum.number(pause.lasts);
        }
    }
    // Rows of schemas before the seventh have neither value.
    if let Some(verb) = record.flight.as_ref().and_then(|flight| flight.verb) {
        sum.text(Some(verb.word()));
        sum.number(record.flight.as_ref().map(|flight| flight.epoch));
    }
    if let Some(cut) = cut(record) {
        sum.text(Some("cut"));
        sum.text(Some(cut.word()));
    }
    // Rows of schemas before the ninth have neither value.
    if let Some(pays) = record.flight.as_ref().and_then(|flight| flight.pays) {
        sum.text(Some("pays"));
        sum.number(Some(pays));
    }
    if let Some(pays) = cut_pays(record) {
        sum.text(Some("cut_pays"));
        sum.number(Some(pays));
    }
    if let Some(owned) = &record.owned {
        sum.text(Some("owned"));
        sum.number(Some(ownership::marks(owned).cast_unsigned()));
        sum.text(Some(&owned.graph));
        sum.number(Some(owned.thing));
        sum.text(owned.removal.as_deref());
        owned.after.iter().for_each(|name| sum.text(Some(name)));
    }
    sum.0
}

/// Returns the checksum of a manifest.
pub(super) fn sum_of_texts(texts: &[Option<&str>]) -> u64 {
    let mut sum = Sum::default();
    for text in texts {
        sum.text(*text);
    }
    sum.0
}

/// Returns the checksum of a single number.
pub(super) fn sum_of_number(number: u64) -> u64 {
    let mut sum = Sum::default();
    sum.number(Some(number));
    sum.0
}

/// Returns the checksum of the global row.
pub(super) fn sum_of_whole(whole: &GlobalRecord, (rows, digest): (u64, u64)) -> u64 {
    let mut sum = Sum::default();
    sum.number(Some(whole.stamp));
    sum.text(whole.pause.as_ref().map(|pause| pause.reason.as_str()));
    sum.number(whole.pause.as_ref().map(|pause| pause.until_unix));
    sum.number(Some(rows));
    sum.number(Some(digest));
    if let Some(lasts) = whole.pause.as_ref().and_then(|pause| pause.lasts) {
        sum.number(Some(lasts));
    }
    sum.0
}

/// FNV-1a over 64 bits: every step is a bijection, so a single changed byte is always detected. The sum guards against
/// damage, not against somebody who can write the file.
struct Sum(u64);

impl Default for Sum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn number(&mut self, number: Option<u64>) {
        self.bytes(&[u8::from(number.is_some())]);
        self.bytes(&number.unwrap_or_default().to_le_bytes());
    }

    fn text(&mut self, text: Option<&str>) {
        self.number(text.map(|text| text.len() as u64));
        self.bytes(text.unwrap_or_default().as_bytes());
    }
}
