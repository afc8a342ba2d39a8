//! The reports of the watch hub.

use steadfast_engine::VertexId;

/// A report of the watch hub about a vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// All sources of the vertex are watched: every later change is reported.
    Established(VertexId),
    /// A source cannot be watched, for the given reason: only checks are sure to find a change. Other sources stay
    /// watched.
    Absent(VertexId, String),
    /// A watched object may have changed.
    Changed(VertexId),
    /// A file with an input of the vertex (a secret) has changed.
    Supplied(VertexId),
    /// Events may have been lost, or a watch was renewed: the object may have changed.
    Suspect(VertexId),
    /// The event source has ended, for the given reason: another hub must replace this one.
    Broken(String),
}

impl Signal {
    /// Returns the vertex of the signal; `None` for [`Signal::Broken`].
    pub fn vertex(&self) -> Option<VertexId> {
        match self {
            Self::Established(id)
            | Self::Absent(id, _)
            | Self::Changed(id)
            | Self::Supplied(id)
            | Self::Suspect(id) => Some(*id),
            Self::Broken(_) => None,
        }
    }
}
