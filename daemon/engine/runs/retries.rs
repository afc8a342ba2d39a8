//! Failures and retries (E-10): a failed run is tried again after a back-off, until its budget is used.

use crate::engine::Engine;
use crate::interface::action::Notice;
use crate::interface::ids::VertexId;
use crate::state::deadlines::Timer;
use crate::state::vertex::{Causes, Phase, Vertex};
use std::sync::Arc;
use std::time::Duration;

impl Engine {
    /// Schedules a retry after a failure, or ends the retries (E-10). Returns the notice of that.
    pub(crate) fn fail(&mut self, id: VertexId) -> Notice {
        let (now, stamp, one_shot) = (self.now, self.tick_stamp(), self.one_shot);
        let Some(vertex) = self.vertex_mut(id) else { return Notice::Failed(id) };
        let until = now.after(back_off(vertex));
        vertex.excused = 0;
        vertex.failing = true;
        vertex.doublings = vertex.doublings.saturating_add(1);
        // Retries are for applies: a plan whose check cannot decide reports that at once.
        let only_asks = one_shot && vertex.meta.noop;
        let budget = !only_asks && vertex.meta.retry.is_none_or(|limit| vertex.retries < limit);
        if budget {
            vertex.retries = vertex.retries.saturating_add(1);
        }
        // An event or a look during the failed run gives no new budget, and yet a check must follow (E-4): after the
        // delay.
        let look = std::mem::take(&mut vertex.look);
        let notice = if budget || look || vertex.causes.any() {
            let newly = !vertex.causes.any();
            if newly {
                vertex.dirty_since = stamp;
            }
            vertex.causes.add(Causes::AGAIN);
            vertex.phase = Phase::Delayed(until);
            self.timers.set(until, id, Timer::Retry);
            if newly {
                self.back_poke(id);
            }
            Notice::Retrying(id, until)
        } else {
            vertex.phase = Phase::Failed { until };
            Notice::Failed(id)
        };
        self.touch(id);
        notice
    }

    /// Gives failing children a new budget of retries and an attempt, after a change of their parent (E-10).
    pub(crate) fn encourage_children(&mut self, id: VertexId) {
        let topology = Arc::clone(&self.topology);
        for child in topology.children(id) {
            let Some(vertex) = self.vertex_mut(child.id) else { continue };
            if vertex.failing {
                vertex.retries = 0;
                self.attempt(child.id);
            }
        }
    }
}

/// Returns the wait before the next retry: doubles from `delay` to `delay_max`, at least 100 ms.
fn back_off(vertex: &Vertex) -> Duration {
    let first = vertex.meta.delay.max(crate::Meta::SHORTEST_DELAY);
    let longest = vertex.meta.delay_max.max(first);
    first
        .saturating_mul(1_u32.checked_shl(vertex.doublings.into()).unwrap_or(u32::MAX))
        .min(longest)
}
