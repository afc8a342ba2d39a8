//! Maintenance windows (`when_allowed`): a small calendar of the week, in the local time of the host.
//!
//! A window is `always`, or spans separated by commas: days (`Sat`, `Mon..Fri`, `Fri..Mon`), times (`22:00-05:00`), or
//! both. Days alone are whole days; times alone hold on every day. A span over midnight belongs to the day on which it
//! begins.

use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::host::world::PermitRequest;

/// A set of times in the week at which changes are allowed, and the permits of the world that changes need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    spans: Vec<Span>,
    gate: Option<Arc<Gate>>,
}

/// The permits of the world that a resource needs for its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The permits.
    pub permits: Vec<PermitRequest>,
    /// For a rolling change: the time for which all members must have been converged before the slot is free. None for
    /// semaphores, which are free when the run ends.
    pub settle: Option<Duration>,
    /// For a rolling change: the probe that must answer `true` before the slot is free.
    pub healthy: Option<String>,
    /// For a rolling change: true if a failed member keeps the slot.
    pub stops_on_failure: bool,
}

/// A range of times on some days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    /// The days, with Monday as the lowest bit.
    days: u8,
    /// The first minute of the day. `to` is exclusive, and is on the next day unless it is later than `from`.
    from: u16,
    to: u16,
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const EVERY_DAY: u8 = 0b111_1111;
const DAY: u16 = 24 * 60;

impl Window {
    /// Parses a window; `None` means always.
    ///
    /// # Errors
    /// A message that says what was expected and what was found.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        if text.trim() == "always" {
            return Ok(None);
        }
        let spans = text.split(',').map(|span| Span::parse(span.trim()));
        Ok(Some(Self { spans: spans.collect::<Result<_, _>>()?, gate: None }))
    }

    /// Returns a window with a gate: these times, or all times, and the permits.
    #[must_use]
    pub fn with_gate(times: Option<Self>, gate: Gate) -> Self {
        let always = || vec![Span { days: EVERY_DAY, from: 0, to: DAY }];
        let spans = times.map_or_else(always, |times| times.spans);
        Self { spans, gate: Some(Arc::new(gate)) }
    }

    /// Returns the permits of the world that changes need besides the times.
    #[must_use]
    pub fn gate(&self) -> Option<&Arc<Gate>> {
        self.gate.as_ref()
    }

    /// Returns true if the window is open on a day (0 is Monday) at a minute of the day.
    #[must_use]
    pub fn is_open(&self, weekday: u8, minute: u16) -> bool {
        self.spans.iter().any(|span| span.is_open(weekday % 7, minute))
    }
}

impl Span {
    fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (days, times) = match words.as_slice() {
            [one] if one.contains(':') => (EVERY_DAY, Some(*one)),
            [one] => (days(one)?, None),
            [one, two] => (days(one)?, Some(*two)),
            [] | [_, _, _, ..] => return Err(format!("days and times, found `{text}`")),
        };
        let Some(times) = times else { return Ok(Self { days, from: 0, to: DAY }) };
        let (from, to) =
            times.split_once('-').ok_or_else(|| format!("a time range, found `{times}`"))?;
        let (from, to) = (minute(from)?, minute(to)?);
        if from == to || from == DAY {
            return Err(format!("two different times, found `{times}`"));
        }
        Ok(Self { days, from, to })
    }

    fn is_open(self, weekday: u8, minute: u16) -> bool {
        let begins = |day: u8| self.days & (1 << day) != 0;
        let yesterday = (weekday + 6) % 7;
        if self.from < self.to {
            begins(weekday) && (self.from..self.to).contains(&minute)
        } else {
            begins(weekday) && minute >= self.from || begins(yesterday) && minute < self.to
        }
    }
}

/// Parses `Mon`, or `Mon..Fri`, which may cross the end of the week.
fn days(text: &str) -> Result<u8, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (first, last) = (day(first)?, day(last)?);
    let count = (last + 7 - first) % 7 + 1;
    Ok((0..count).fold(0, |days, more| days | 1 << ((first + more) % 7)))
}

fn day(text: &str) -> Result<u8, String> {
    let known = DAYS.iter().position(|day| text.eq_ignore_ascii_case(day));
    let known = known.and_then(|day| u8::try_from(day).ok());
    known.ok_or_else(|| format!("a day from Mon to Sun, found `{text}`"))
}

/// Parses a time from `0:00` to `24:00` to minutes since midnight.
fn minute(text: &str) -> Result<u16, String> {
    let wrong = || format!("a time from 00:00 to 24:00, found `{text}`");
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (hours, minutes) = text.split_once(':').ok_or_else(wrong)?;
    if !digits(hours) || !digits(minutes) || minutes.len() != 2 || hours.len() > 2 {
        return Err(wrong());
    }
    let (hours, minutes): (u16, u16) =
        hours.parse().ok().zip(minutes.parse().ok()).ok_or_else(wrong)?;
    let minute = hours * 60 + minutes;
    if minutes > 59 || minute > DAY { Err(wrong()) } else { Ok(minute) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MON: u8 = 0;
    const FRI: u8 = 4;
    const SAT: u8 = 5;
    const SUN: u8 = 6;

    fn open(text: &str, weekday: u8, time: &str) -> bool {
        let window = Window::parse(text).unwrap().unwrap();
        window.is_open(weekday, minute(time).unwrap())
    }

    #[test]
    fn a_span_over_midnight_belongs_to_the_day_it_begins_on() {
        let nights = "Mon..Fri 22:00-05:00";
        assert!(open(nights, MON, "22:00") && open(nights, MON, "23:59"));
        assert!(
            !open(nights, MON, "21:59") && !open(nights, MON, "04:59"),
            "that is Sunday's night"
        );
        assert!(open(nights, SAT, "04:59") && !open(nights, SAT, "05:00"));
        assert!(!open(nights, SUN, "23:00"));
    }

    #[test]
    fn days_alone_are_whole_and_times_alone_are_of_every_day() {
        assert!(
            open("Sat", SAT, "00:00") && open("sat", SAT, "23:59") && !open("Sat", SUN, "00:00")
        );
        assert!(open("1:30-2:00", FRI, "01:59") && !open("1:30-2:00", FRI, "02:00"));
        assert!(open("Fri..Mon", SUN, "12:00") && open("Fri..Mon", MON, "12:00"));
        assert!(!open("Fri..Mon", 1, "12:00"));
        assert!(open("Sun 12:00-24:00, Mon 0:00-1:00", SUN, "23:59"));
        assert!(open("Sun 12:00-24:00, Mon 0:00-1:00", MON, "00:59"));
        assert!(open("Sun 22:00-05:00", MON, "04:00"), "over the end of the week");
        assert_eq!(Window::parse(" always "), Ok(None));
    }

    #[test]
    fn malformed_windows_are_rejected() {
        for text in [
            "",
            ",",
            "night",
            "Mon-Fri",
            "Mon..",
            "22:00",
            "22:00-22:00",
            "24:00-5:00",
            "25:00-5:00",
            "22:60-5:00",
            "22:0-5:00",
            "Mon 22:00-05:00 UTC",
            "Mon Tue",
            "-1:00-5:00",
            "+1:00-5:00",
            "Mon..Fri 22.00-05.00",
            "always, Mon",
            "22:00..05:00",
        ] {
            assert!(Window::parse(text).is_err(), "{text:?}");
        }
    }
}
