//! Commands of an operator that change the state of the driver: pause and resume of resources, undo, protect and
//! forget.
//!
//! Invariant: each command is answered exactly once. Reading order: `daemon_pause.rs`, `resource_pause.rs`,
//! `state_commands.rs`, `undo.rs`.

pub(super) mod daemon_pause;
pub(super) mod resource_pause;
pub mod state_commands;
pub(super) mod undo;

use crate::store::PauseRecord;
use resource_pause::ResourcePauses;
use std::time::Duration;
use steadfast_engine::{Event, Pause, Tick};
use undo::ActiveUndos;

/// The operator's commands in effect.
#[derive(Debug)]
pub(super) struct OperatorCommands {
    /// Resources that are paused on their own.
    pub(super) pauses: ResourcePauses,
    /// Undos in progress.
    pub(super) undos: ActiveUndos,
    /// The reason of the last pause of the daemon.
    pub(super) pause_reason: String,
    /// The time at which the pause of the daemon ends without a resume.
    pub(super) pause_until: Tick,
}

impl OperatorCommands {
    pub(super) fn new() -> Self {
        Self {
            pauses: ResourcePauses::default(),
            undos: ActiveUndos::default(),
            pause_reason: String::new(),
            pause_until: Tick(0),
        }
    }

    /// Notes a pause of the daemon; returns the event for the engine. `is_recorded` is true if the pause was restored
    /// from the stored state.
    pub(super) fn pause(
        &mut self,
        (reason, until): (String, Tick),
        drain: bool,
        is_recorded: bool,
    ) -> Event {
        (self.pause_reason, self.pause_until) = (reason, until);
        Event::Pause(Pause { drain, until, recorded: is_recorded })
    }

    /// Returns the record to store for the pause of the daemon, which ends at this time on the wall clock.
    pub(super) fn pause_record(&self, left: Duration, wall: Duration) -> PauseRecord {
        let seconds = left.as_secs();
        PauseRecord {
            reason: self.pause_reason.clone(),
            until_unix: wall.as_secs().saturating_add(seconds),
            lasts: Some(seconds),
        }
    }
}
