//! `when_allowed`: the clock of the wall, and what it means for the windows of the graph.
//!
//! Looked at whenever the driver turns, and at the latest when the next minute begins: a clock that was set, or a host that slept, is
//! noticed before anything else is done.

use super::Driver;
use std::time::Duration;
use steadfast_engine::{Event, WindowId};
use tokio::time::Instant;

/// A moment of the week as people say it: the day (0 is Monday) and the minute of that day, in the local time of the host.
pub type LocalMinute = (u8, u16);

/// What the clock on the wall says (`TZ`, else the host's zone).
#[must_use]
pub fn local_minute() -> LocalMinute {
    let now = jiff::Zoned::now();
    let weekday = now.weekday().to_monday_zero_offset();
    let minute = u16::from(now.hour().unsigned_abs()) * 60 + u16::from(now.minute().unsigned_abs());
    (weekday.unsigned_abs(), minute)
}

/// Which windows were open when the clock was looked at last.
#[derive(Debug)]
pub(super) struct MaintenanceWindows {
    clock: fn() -> LocalMinute,
    /// The minute of the wall clock in which that was.
    seen: Option<u64>,
    /// When the next minute begins.
    due: Instant,
    open: Vec<bool>,
}

impl MaintenanceWindows {
    pub(super) fn new(clock: fn() -> LocalMinute) -> Self {
        Self { clock, seen: None, due: Instant::now(), open: Vec::new() }
    }

    /// The windows that have opened or closed since the last look. All of them are looked at anew when there are more.
    fn changes(
        &mut self,
        wall: Duration,
        all: &[(String, crate::config::Window)],
    ) -> Vec<(WindowId, bool)> {
        let milliseconds = u64::try_from(wall.as_millis()).unwrap_or_default();
        let minute = milliseconds / 60_000;
        if self.seen == Some(minute) && self.open.len() == all.len() {
            return Vec::new();
        }
        self.seen = Some(minute);
        self.due = Instant::now() + Duration::from_millis(60_010 - milliseconds % 60_000);
        self.evaluate(all)
    }

    fn evaluate(&mut self, all: &[(String, crate::config::Window)]) -> Vec<(WindowId, bool)> {
        let (weekday, minute) = (self.clock)();
        self.open.resize(all.len(), false);
        let mut changes = Vec::new();
        for ((number, was), (_, window)) in (0..).zip(&mut self.open).zip(all) {
            let open = window.is_open(weekday, minute);
            if std::mem::replace(was, open) != open {
                changes.push((WindowId(number), open));
            }
        }
        changes
    }

    /// When to look next.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.open.is_empty()).then_some(self.due)
    }
}

impl Driver {
    /// Tells the engine what has opened or closed.
    pub(super) fn look_at_clock(&mut self) {
        if self.table.windows().is_empty() {
            return;
        }
        for (window, open) in self.windows.changes(self.machinery.wall(), self.table.windows()) {
            self.turn(Event::Window { window, open });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Window;
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<LocalMinute> = const { Cell::new((0, 0)) };
    }

    fn all() -> Vec<(String, Window)> {
        ["Mon..Fri 22:00-05:00", "Sat, Sun"]
            .map(|text| (text.to_owned(), Window::parse(text).unwrap().unwrap()))
            .into()
    }

    /// F-11: a clock that jumps, forwards or backwards, opens and closes what it should.
    #[test]
    fn a_clock_that_jumps_opens_and_closes() {
        let mut windows = MaintenanceWindows::new(|| NOW.with(Cell::get));
        let (nights, weekend) = (WindowId(0), WindowId(1));
        let mut at = |weekday, minute| {
            NOW.with(|now| now.set((weekday, minute)));
            windows.evaluate(&all())
        };
        assert_eq!(at(0, 21 * 60 + 59), []);
        assert_eq!(at(0, 22 * 60), [(nights, true)]);
        assert_eq!(at(1, 12 * 60), [(nights, false)], "the host slept");
        assert_eq!(at(5, 4 * 60), [(nights, true), (weekend, true)]);
        assert_eq!(at(2, 12 * 60), [(nights, false), (weekend, false)], "the clock was set back");
        assert_eq!(at(2, 12 * 60), []);
    }

    #[test]
    fn a_new_graph_with_more_windows_is_looked_at_at_once() {
        let mut windows = MaintenanceWindows::new(|| (6, 0));
        assert!(windows.due().is_none());
        assert_eq!(windows.changes(Duration::ZERO, &all()[..1]), []);
        assert_eq!(windows.changes(Duration::ZERO, &all()), [(WindowId(1), true)]);
        let due = windows.due().unwrap();
        assert!(due <= Instant::now() + Duration::from_secs(61));
    }
}
