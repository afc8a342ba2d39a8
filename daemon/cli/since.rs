//! Points in time on the command line.

use crate::config::span;

/// The beginning of a selection of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// The number of an event.
    Number(u64),
    /// An age in seconds.
    Ago(u64),
    /// A time, in milliseconds since 1970.
    Time(u64),
}

/// Parses an event number, an age, or a local time.
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
    let time = time.or_else(|_| last(text));
    let time = time.ok().and_then(|time| u64::try_from(time.as_millisecond()).ok());
    time.map(Since::Time).ok_or_else(|| {
        format!("expected a number, an age such as 2h or a time such as 14:00 or 2026-11-21T14:00; found `{text}`")
    })
}

/// Returns the last time when the clock showed this time of day.
fn last(clock: &str) -> Result<jiff::Timestamp, jiff::Error> {
    let time: jiff::civil::Time = clock.parse()?;
    let now = jiff::Zoned::now();
    let today = now.with().time(time).build()?;
    let last = if today > now { today.yesterday()? } else { today };
    Ok(last.timestamp())
}

#[cfg(test)]
mod tests {
    use super::{Since, since};

    #[test]
    fn a_time_of_the_day_is_the_last_one() {
        let day = 86_400_000;
        for clock in ["00:00", "14:05", "23:59:59"] {
            let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap();
            let Ok(Since::Time(time)) = since(clock) else { panic!("{clock} is a time") };
            // A day is an hour longer or shorter at a change of the clocks.
            assert!(time <= now && now - time <= day + 3_700_000, "{clock}: {time} at {now}");
        }
        assert_eq!(since("14"), Ok(Since::Number(14)));
        for wrong in ["24:01", "14:", "now", "-5m"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
