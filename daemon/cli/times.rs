//! Times as they are said on the command line.

use crate::config::span;

/// From where on events are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// This number.
    Number(u64),
    /// So many seconds ago.
    Ago(u64),
    /// This time, in milliseconds since 1970.
    Time(u64),
}

/// A number, an age, or a time of this place.
pub(super) fn since(text: &str) -> Result<Since, String> {
    if let Ok(number) = text.parse() {
        return Ok(Since::Number(number));
    }
    if let Ok(seconds) = span(text) {
        return Ok(Since::Ago(seconds));
    }
    let local = |time: jiff::civil::DateTime| {
        time.to_zoned(jiff::tz::TimeZone::system()).map(|zoned| zoned.timestamp())
    };
    let time = text.parse::<jiff::Timestamp>().or_else(|_| text.parse().and_then(local));
    let time = time.ok().and_then(|time| u64::try_from(time.as_millisecond()).ok());
    time.map(Since::Time).ok_or_else(|| {
        format!("expected a number, an age such as 2h or a time such as 2026-11-21T14:00; found `{text}`")
    })
}
