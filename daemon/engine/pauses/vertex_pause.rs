//! Pauses of single vertices (E-15). A paused vertex is not started, neither for a look nor to be processed. Events
//! still mark the vertex dirty, and then it blocks its descendants. A run in progress ends as usual.
//!
//! The engine does not know the end of a pause: as with windows, the driver sends an event.

use crate::engine::Engine;
use crate::interface::ids::{Stamp, VertexId};

impl Engine {
    /// Starts or ends the pause of a vertex. The pause of a vertex that is in no graph yet holds from the load on.
    pub(crate) fn pause_vertex(&mut self, id: VertexId, paused: bool) {
        let changed =
            if paused { self.paused_vertices.insert(id) } else { self.paused_vertices.remove(&id) };
        if changed {
            self.touch(id);
            self.answer_askers(id, Stamp::CLEAR);
        }
    }
}
