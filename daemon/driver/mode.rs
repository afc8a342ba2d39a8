//! The mode of a driver: a start without a graph, normal operation, read-only operation, or the end after a defect.
//!
//! The engine owns pauses and stops (`steadfast_engine::Mode`); they occur in every mode of the driver.

use super::DriverEvent;
use crate::store::StoredState;
use std::sync::Arc;

/// The mode of a driver, with the data that only this mode has.
pub(super) enum DriverMode {
    /// No graph was accepted since the start. The engine receives the stored state with the first graph.
    Starting {
        /// The stored state, as read at the start.
        stored: Box<StoredState>,
        /// The reason for the read-only mode that follows, if it does.
        read_only: Option<Arc<str>>,
    },
    /// A graph was accepted.
    Running,
    /// A graph was accepted, and no run gets a permit, whatever the graph declares.
    ReadOnly {
        /// The reason.
        why: Arc<str>,
    },
    /// The event source has ended. The driver stops, and another driver replaces it.
    Broken {
        /// The reason.
        why: String,
        /// Events that arrived afterwards; the next driver gets them.
        leftover: Vec<DriverEvent>,
        /// The mode before.
        before: Box<Self>,
    },
}

impl DriverMode {
    /// Creates the mode of a new driver.
    pub(super) fn new(stored: StoredState, read_only: Option<Arc<str>>) -> Self {
        Self::Starting { stored: Box::new(stored), read_only }
    }

    /// Ends the start, and returns the stored state; `None` if the start is over already.
    pub(super) fn end_start(&mut self) -> Option<StoredState> {
        match self {
            Self::Broken { before, .. } => before.end_start(),
            Self::Running | Self::ReadOnly { .. } => None,
            Self::Starting { read_only, .. } => {
                let next = read_only.take().map_or(Self::Running, |why| Self::ReadOnly { why });
                match std::mem::replace(self, next) {
                    Self::Starting { stored, .. } => Some(*stored),
                    _ => None,
                }
            }
        }
    }

    /// Returns true if no graph was accepted since the start.
    pub(super) fn is_starting(&self) -> bool {
        self.stored().is_some()
    }

    /// Returns the stored state until a graph is accepted.
    pub(super) fn stored(&self) -> Option<&StoredState> {
        match self {
            Self::Starting { stored, .. } => Some(stored),
            Self::Broken { before, .. } => before.stored(),
            Self::Running | Self::ReadOnly { .. } => None,
        }
    }

    /// Returns the stored state until a graph is accepted, for changes by state commands.
    pub(super) fn stored_mut(&mut self) -> Option<&mut StoredState> {
        match self {
            Self::Starting { stored, .. } => Some(stored),
            Self::Broken { before, .. } => before.stored_mut(),
            Self::Running | Self::ReadOnly { .. } => None,
        }
    }

    /// Returns the reason for which no run gets a permit; `None` if the driver is not read-only.
    pub(super) fn read_only(&self) -> Option<&Arc<str>> {
        match self {
            Self::Starting { read_only, .. } => read_only.as_ref(),
            Self::ReadOnly { why } => Some(why),
            Self::Broken { before, .. } => before.read_only(),
            Self::Running => None,
        }
    }

    /// Notes that the event source has ended; the first reason stays.
    pub(super) fn break_off(&mut self, why: String) {
        if !self.is_broken() {
            let before = Box::new(std::mem::replace(self, Self::Running));
            *self = Self::Broken { why, leftover: Vec::new(), before };
        }
    }

    /// Returns true if the event source has ended.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self, Self::Broken { .. })
    }

    /// Stores an event for the next driver. Returns the event if this driver must process it.
    pub(super) fn leave_to_next(&mut self, event: DriverEvent) -> Option<DriverEvent> {
        let Self::Broken { leftover, .. } = self else { return Some(event) };
        leftover.push(event);
        None
    }

    /// Returns the reason for the end, and the events for the next driver, if the event source has ended.
    pub(super) fn end(self) -> (Option<String>, Vec<DriverEvent>) {
        match self {
            Self::Broken { why, leftover, .. } => (Some(why), leftover),
            Self::Starting { .. } | Self::Running | Self::ReadOnly { .. } => (None, Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starting(read_only: Option<&str>) -> DriverMode {
        DriverMode::new(
            StoredState { stamp: 7, ..StoredState::default() },
            read_only.map(Into::into),
        )
    }

    #[test]
    fn a_start_ends_once_and_read_only_stays() {
        let mut mode = starting(Some("disk full"));
        assert!(mode.is_starting() && mode.read_only().is_some());
        assert_eq!(mode.end_start().map(|stored| stored.stamp), Some(7));
        assert!(matches!(&mode, DriverMode::ReadOnly { why } if &**why == "disk full"));
        assert!(mode.end_start().is_none() && !mode.is_starting());
        let mut mode = starting(None);
        assert!(mode.end_start().is_some());
        assert!(matches!(mode, DriverMode::Running));
    }

    #[test]
    fn a_broken_driver_leaves_later_events_to_the_next() {
        let mut mode = starting(Some("disk full"));
        assert!(mode.leave_to_next(DriverEvent::Resume).is_some(), "nothing is broken yet");
        mode.break_off("the hub ended".to_owned());
        mode.break_off("another reason".to_owned());
        assert!(mode.is_starting() && mode.read_only().is_some(), "the mode before is known");
        assert!(mode.leave_to_next(DriverEvent::Resume).is_none());
        let (why, leftover) = mode.end();
        assert_eq!((why.as_deref(), leftover.len()), (Some("the hub ended"), 1));
    }
}
