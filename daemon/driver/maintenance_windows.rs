//! Maintenance windows (`when_allowed`): opens and closes the windows of the graph by the wall clock.
//!
//! The clock is read in each turn of the driver, and at the latest at the next full minute, so that a clock change or a
//! suspend of the host is noticed before any other work.

use super::Driver;
use std::time::Duration;
use steadfast_engine::{Event, WindowId};
use tokio::time::Instant;

/// A minute of the week in local time: the day (0 is Monday), and the minute of that day.
pub type LocalMinute = (u8, u16);

/// Returns the present minute of the wall clock in the time zone of `TZ`, or else of the host.
#[must_use]
pub fn local_minute() -> LocalMinute {
    let now = jiff::Zoned::now();
    let weekday = now.weekday().to_monday_zero_offset();
    let minute = u16::from(now.hour().unsigned_abs()) * 60 + u16::from(now.minute().unsigned_abs());
    (weekday.unsigned_abs(), minute)
}

/// The state of all windows at the last reading of the clock.
#[derive(Debug)]
pub(super) struct MaintenanceWindows {
    clock: fn() -> LocalMinute,
    /// The minute of the last reading, since 1970.
    seen: Option<u64>,
    /// The start of the next minute.
    due: Instant,
    open: Vec<bool>,
}

impl MaintenanceWindows {
    pub(super) fn new(clock: fn() -> LocalMinute) -> Self {
        Self { clock, seen: None, due: Instant::now(), open: Vec::new() }
    }

    /// Returns the windows that have opened or closed since the last reading; new windows force a reading.
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
            // A window with a gate opens by its permits too: `world_permits` reports it.
            if std::mem::replace(was, open) != open && window.gate().is_none() {
                changes.push((WindowId(number), open));
            }
        }
        changes
    }

    /// Returns true if the times of a window allow changes now.
    pub(super) fn is_open(&self, window: WindowId) -> bool {
        self.open.get(window.0 as usize).copied().unwrap_or_default()
    }

    /// Returns the time of the next reading; `None` without windows.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.open.is_empty()).then_some(self.due)
    }
}

impl Driver {
    /// Reports opened and closed windows to the engine.
    pub(super) fn look_at_clock(&mut self) {
        if self.graph.windows().is_empty() {
            return;
        }
        for (window, open) in
            self.permission.windows.changes(self.runtime.wall(), self.graph.windows())
        {
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

    /// F-11: a clock that jumps forwards or backwards opens and closes the right windows.
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
