//! Parked vertices: a pause of single ones (E-15). Such a one is not started, neither to be looked at nor to be processed; events
//! make it dirty as ever, and then it blocks those below it. A run that is in progress ends as it would.
//!
//! When it ends is not known here: as with windows, the engine is told.

use crate::engine::Engine;
use crate::ids::{Stamp, VertexId};

impl Engine {
    /// Of a vertex that is in no graph yet it holds from its beginning.
    pub(crate) fn set_paused(&mut self, id: VertexId, parked: bool) {
        let changed = if parked { self.parked.insert(id) } else { self.parked.remove(&id) };
        if changed {
            self.touch(id);
            self.answer_askers(id, Stamp::CLEAR);
        }
    }
}
