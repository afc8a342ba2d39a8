//! The steps of a schedule.

use std::time::Duration;
use steadfast_engine::{Outcome, RunVerdict, VertexId};

/// One step of a schedule. A step that makes no sense at its place is skipped, so that lines can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The graph with this number is delivered; `operator` marks an operator's reload.
    Swap { graph: usize, operator: bool },
    /// A requested watch is established.
    Watching(VertexId),
    /// A requested watch is declared absent, or an open one is given up.
    Unwatched(VertexId),
    /// Somebody else changes the vertex.
    Changed(VertexId),
    /// The vertex receives another value.
    Received(VertexId),
    /// The check in progress of the vertex has other inputs than the last good run.
    Remade(VertexId),
    /// In a plan: the finding of the vertex is uncertain until the other one is changed.
    Doubt { vertex: VertexId, until: VertexId },
    /// The source of the vertex lost events.
    Suspect(VertexId),
    /// A sweep requests a look.
    Look(VertexId),
    /// The operator requests a run.
    RetryNow(VertexId),
    /// The check in progress of a vertex ends.
    Checked(VertexId, RunVerdict),
    /// The oldest written entry becomes durable, and its reply is delivered.
    Commit,
    /// The oldest written entry is the begin of a run and cannot be stored.
    Refuse,
    /// The apply in progress of a vertex, or a cancelled run at any station, ends.
    Ended(VertexId, Outcome),
    /// Time passes, with a wake-up at each requested moment.
    Wait(Duration),
    /// Time passes while the driver is busy: the wake-up comes late.
    Lag(Duration),
    /// Time passes until the requested wake-up.
    Wake,
    /// A window opens or closes.
    Window { window: u32, open: bool },
    /// The pause of one vertex begins or ends.
    PauseVertex { vertex: VertexId, paused: bool },
    /// Somebody requests a pause of this length.
    Pause { drain: bool, length: Duration },
    /// Somebody ends the pause.
    Resume,
    /// Somebody requests the stop.
    Stop { grace: Duration },
    /// The daemon is killed when this number of written entries are durable, and restarted.
    Crash { kept: usize },
}
