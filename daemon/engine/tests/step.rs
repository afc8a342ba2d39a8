//! One thing that may happen to the engine and its surroundings.

use std::time::Duration;
use steadfast_engine::{Outcome, RunVerdict, VertexId};

/// One step of a schedule. A step that makes no sense where it stands is passed over, so that lines can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The graph of that number is given; `operator` is his reload.
    Swap { graph: usize, operator: bool },
    /// A watch that was asked for is established.
    Watching(VertexId),
    /// A watch that was asked for is declared absent, or an open one is given up.
    Unwatched(VertexId),
    /// Somebody else changes it.
    Changed(VertexId),
    /// A value that it receives is another one.
    Received(VertexId),
    /// Its run in progress, which is checked, is made of something else than the last good one.
    Remade(VertexId),
    /// In a plan: what was found of it is worth nothing before the other is changed.
    Doubt { vertex: VertexId, until: VertexId },
    /// Its source lost events.
    Suspect(VertexId),
    /// A sweep comes by.
    Look(VertexId),
    /// The operator asks for a run.
    Redo(VertexId),
    /// The check in progress of a vertex ends.
    Checked(VertexId, RunVerdict),
    /// The oldest written entry becomes durable and is answered.
    Commit,
    /// The oldest written entry is the begin of a run and cannot be kept.
    Refuse,
    /// The apply in progress of a vertex, or a cancelled run at any station, ends.
    Ended(VertexId, Outcome),
    /// Time passes, with a wake-up at each moment that the engine asked for.
    Wait(Duration),
    /// Time passes while the driver is busy: the wake-up comes late.
    Lag(Duration),
    /// Time passes until the engine wants to be woken.
    Wake,
    /// A window opens or closes.
    Window { window: u32, open: bool },
    /// A pause of one vertex begins or ends.
    Park { vertex: VertexId, parked: bool },
    /// Somebody asks for a pause of that length.
    Pause { drain: bool, length: Duration },
    /// Somebody ends it.
    Resume,
    /// Somebody asks for the stop.
    Stop { grace: Duration },
    /// Everything is killed when that many of the written entries are durable, and started again.
    Crash { kept: usize },
}
