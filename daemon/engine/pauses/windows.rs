//! Maintenance windows (`when_allowed`): outside of its window a vertex is checked and not changed; when the window
//! opens, held changes are made at once.
//!
//! The engine knows no calendar: events report that a window opens or closes. A window that was never reported is
//! closed.

use crate::engine::Engine;
use crate::interface::action::HeldReason;
use crate::interface::ids::{VertexId, WindowId};
use crate::state::vertex::{Causes, Phase, RunKind, Vertex};

impl Engine {
    pub(crate) fn window(&mut self, window: WindowId, open: bool) {
        if !open {
            self.open.remove(&window);
        } else if self.open.insert(window) {
            let waits = |vertex: &Vertex| vertex.held_by() == Some(HeldReason::Window(window));
            for id in self.all(waits) {
                self.let_in(id);
            }
        }
    }

    /// Returns true if the vertex may be changed now.
    #[must_use]
    pub fn is_allowed(&self, id: VertexId) -> bool {
        let window = self.vertex(id).and_then(|vertex| vertex.meta.window);
        window.is_none_or(|window| self.open.contains(&window))
    }

    /// Processes a vertex that was held for its window.
    pub(crate) fn let_in(&mut self, id: VertexId) {
        let Some(vertex) = self.vertex_mut(id) else { return };
        match vertex.run_mut() {
            Some(look) => look.kind = RunKind::Look(None),
            None => vertex.phase = Phase::Resting,
        }
        self.mark(id, Causes::AGAIN);
    }

    /// Returns the vertices for which `is` returns true.
    pub(crate) fn all(&self, is: impl Fn(&Vertex) -> bool) -> Vec<VertexId> {
        let slots = self.vertices.iter().zip(0..);
        slots
            .filter(|(slot, _)| slot.as_ref().is_some_and(&is))
            .map(|(_, id)| VertexId(id))
            .collect()
    }
}
