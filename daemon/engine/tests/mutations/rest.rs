//! Breakages of limits, polls, semaphores, pauses, stops, swaps and convergence: E-12 to E-18.

use crate::{Breakage, broken};

pub(crate) const ALL: &[Breakage] = &[
    broken(
        ("e12-no-token-is-taken", "E-12", "a start takes nothing from the bucket"),
        "scheduling/admission.rs",
        "vertex.pace = rate_limit::take(pace, vertex.pace, now).unwrap_or(vertex.pace);",
        "vertex.pace = rate_limit::take(pace, vertex.pace, now).map_or(vertex.pace, |_| vertex.pace);",
    ),
    broken(
        ("e12-limited-blocks", "E-12, W-9", "who waits for its limiter holds up its descendants"),
        "scheduling/pokes.rs",
        "let limited = merely_limited && self.right > Stamp::NEVER;",
        "let limited = merely_limited && self.right > Stamp::CLEAR;",
    ),
    broken(
        ("e12-failing-and-limited-passes", "E-12", "who fails and is limited blocks nobody"),
        "scheduling/pokes.rs",
        "let merely_limited = put_off && !self.failing;",
        "let merely_limited = put_off;",
    ),
    broken(
        ("e12-the-limit-is-for-ever", "E-12", "nobody goes on when the bucket has a token again"),
        "scheduling/triggers.rs",
        "vertex.place = Place::Nowhere;\n            self.touch(id);",
        "vertex.place = Place::Nowhere;",
    ),
    broken(
        ("e15-paused-is-started", "E-15", "a pause of one vertex holds nothing back"),
        "scheduling/readiness.rs",
        "let may = may && !self.paused_vertices.contains(&id);",
        "let may = may || self.paused_vertices.contains(&id);",
    ),
    broken(
        ("e15-paused-for-ever", "E-15", "nobody goes on when the pause of one vertex is over"),
        "pauses/vertex_pause.rs",
        "if changed {",
        "if changed && paused {",
    ),
    broken(
        ("e15-paused-though-it-left", "E-15, E-17", "who comes back is paused as it was"),
        "swaps/replacement.rs",
        "self.paused_vertices.remove(&id);",
        "self.paused_vertices.insert(id);",
    ),
    broken(
        ("e13-one-tick", "E-13", "a poll ticks once"),
        "scheduling/triggers.rs",
        "vertex.poll_at = None;\n            self.set_poll(id);",
        "vertex.poll_at = None;",
    ),
    broken(
        ("e13-polled-and-watched", "E-13", "a polled vertex is watched as well"),
        "state/vertex.rs",
        "self.meta.poll == Poll::Never",
        "self.meta.poll != Poll::Once",
    ),
    broken(
        ("e13-a-new-watch-is-trusted", "E-13, R-9", "watched instead of polled, it is not checked"),
        "swaps/replacement.rs",
        "if new.meta.poll == Poll::Never && !self.one_shot {",
        "if new.meta.poll == Poll::Never && self.one_shot {",
    ),
    broken(
        ("e14-any-ticket-goes", "E-14", "a higher ticket takes the room of a lower one"),
        "scheduling/queues.rs",
        "self.queue.len() <= room || self.queue.keys().take(room).any(|waiting| *waiting == ticket)",
        "room > 0 && self.queue.contains_key(&ticket)",
    ),
    broken(
        ("e14-one-holder-too-many", "E-14", "the count is one too large"),
        "scheduling/queues.rs",
        "self.count.saturating_sub(self.holders).saturating_sub(self.admitted) as usize",
        "(self.count + 1).saturating_sub(self.holders).saturating_sub(self.admitted) as usize",
    ),
    broken(
        ("e14-who-waits-holds", "E-14, R-3", "who leaves the queue keeps its place in it"),
        "scheduling/queues.rs",
        "if semaphore.queue.remove(&ticket).is_none() {",
        "if semaphore.queue.remove(&ticket).is_none() && ticket == 0 {",
    ),
    broken(
        ("e14-not-given-back", "E-14", "V is forgotten where the run was cancelled"),
        "scheduling/admission.rs",
        "if run.kind == RunKind::Process && !meta.semaphores.is_empty() {",
        "if run.kind == RunKind::Process && run.cancelled.is_none() && !meta.semaphores.is_empty() {",
    ),
    broken(
        ("e14-nobody-is-called", "E-14", "V wakes none of those that wait"),
        "scheduling/admission.rs",
        "self.semaphores.release(&meta.semaphores);\n            \
         self.admit_waiting(&meta.semaphores);",
        "self.semaphores.release(&meta.semaphores);",
    ),
    broken(
        ("e14-leaving-calls-nobody", "E-14", "who leaves the queue lets nobody move up"),
        "scheduling/admission.rs",
        "self.semaphores.withdraw(&meta.semaphores, ticket);\n                    \
         self.admit_waiting(&meta.semaphores);",
        "self.semaphores.withdraw(&meta.semaphores, ticket);",
    ),
    broken(
        ("e14-a-shrunk-count-is-ignored", "E-14", "admitted before a swap, started after it"),
        "scheduling/queues.rs",
        "ids.iter().all(|id| self.0.get(id.0 as usize).is_none_or(|s| s.holders < s.count));",
        "ids.iter().all(|id| self.0.get(id.0 as usize).is_none_or(|s| s.holders <= s.count));",
    ),
    broken(
        ("e14-a-grown-count-is-not-told", "E-14", "a swap that makes room lets nobody in"),
        "swaps/replacement.rs",
        "self.admit_waiting(&semaphores);\n        if self.counts.failed > 0 {",
        "if self.counts.failed > 0 {",
    ),
    broken(
        ("e14-a-run-keeps-its-old-ones", "E-14", "a swap gives a run in progress no semaphores"),
        "swaps/replacement.rs",
        "self.semaphores.take_over(&new.meta.semaphores);",
        "self.semaphores.take_over(&[]);",
    ),
    broken(
        ("e15-starts-in-a-pause", "E-15, R-1", "what is dirty starts in a pause"),
        "scheduling/readiness.rs",
        "Mode::Pausing | Mode::Paused | Mode::Stopping | Mode::Stopped => false,",
        "Mode::Stopping | Mode::Stopped => false,\n            \
         Mode::Pausing | Mode::Paused => true,",
    ),
    broken(
        ("e15-paused-while-it-runs", "E-15, R-1", "paused is told while a run is in progress"),
        "pauses/pause.rs",
        "if self.mode == Mode::Pausing && is_quiet && self.pause.unsaved == 0 {",
        "if self.mode == Mode::Pausing && self.pause.unsaved == 0 {",
    ),
    broken(
        ("e15-paused-before-it-is-saved", "E-15", "a crash would forget a pause that was told"),
        "pauses/pause.rs",
        "if self.mode == Mode::Pausing && is_quiet && self.pause.unsaved == 0 {",
        "if self.mode == Mode::Pausing && is_quiet {",
    ),
    broken(
        ("e15-resume-reaches-the-first-only", "E-15, R-2", "the rest of the shelf is forgotten"),
        "pauses/pause.rs",
        "for id in std::mem::take(&mut self.shelf) {",
        "for id in std::mem::take(&mut self.shelf).into_iter().take(1) {",
    ),
    broken(
        ("e15-a-pause-without-an-end", "E-15", "a pause does not end by itself"),
        "pauses/pause.rs",
        "if self.pause.until <= self.now {\n            self.resume();",
        "if self.pause.until <= Tick(0) {\n            self.resume();",
    ),
    broken(
        ("e15-a-drain-takes-all", "E-15", "a drain runs what became dirty after the request"),
        "scheduling/readiness.rs",
        "Mode::Draining => vertex.drains && !look,",
        "Mode::Draining => !look,",
    ),
    broken(
        ("e15-a-drain-takes-nothing", "E-15", "a drain lets nothing end that was dirty"),
        "pauses/pause.rs",
        "slot.drains = slot.causes.any();",
        "slot.drains = slot.run().is_some() && slot.causes.any() && slot.look;",
    ),
    broken(
        (
            "e15-a-failed-one-holds-up-the-pause",
            "E-15, R-4",
            "paused waits for who failed for good",
        ),
        "convergence.rs",
        "let quiet = self.in_flight.is_empty() && self.closing.is_empty();",
        "let quiet =\n            \
         self.in_flight.is_empty() && self.closing.is_empty() && self.counts.failed == 0;",
    ),
    broken(
        ("e16-cancels-what-may-not-be", "E-16", "a package transaction is cut off"),
        "scheduling/triggers.rs",
        "if !run.cancellable {\n            return;",
        "if run.id.0 == 0 {\n            return;",
    ),
    broken(
        (
            "e08-a-deed-is-looked-at",
            "E-8",
            "a look at what a vertex was is taken of the deed it is",
        ),
        "swaps/replacement.rs",
        "vertex.look &= vertex.is_checkable();",
        "",
    ),
    broken(
        (
            "e08-a-deed-is-done-for-a-load",
            "E-8",
            "a deed is done for the load of what its vertex was",
        ),
        "swaps/replacement.rs",
        "if settled && was != new.traits.repeat {",
        "if settled && was != new.traits.repeat && id.0 == u32::MAX {",
    ),
    broken(
        (
            "e16-as-the-new-kind-allows",
            "E-16, E-6",
            "a stuck transaction is cut off when its vertex is of another kind",
        ),
        "swaps/replacement.rs",
        "let came_back = std::mem::take(&mut vertex.leaving);\n        if let Some(run) = vertex.run_mut() {",
        "let came_back = std::mem::take(&mut vertex.leaving);\n        if let Some(run) = vertex.run_mut() {\n            \
         run.cancellable = new.traits.cancellable;",
    ),
    broken(
        ("e16-the-grace-is-for-ever", "E-16, R-15", "a stop cancels nobody"),
        "pauses/stop.rs",
        "for id in self.running() {\n                self.cancel(id, Cancelled::Withdrawn);",
        "for id in self.running().into_iter().skip(1) {\n                \
         self.cancel(id, Cancelled::Withdrawn);",
    ),
    broken(
        ("e16-watches-close-from-below", "E-16", "watches close in the reverse order"),
        "pauses/stop.rs",
        "for id in topology.order() {\n            if let Some(vertex)",
        "for id in topology.order().iter().rev() {\n            if let Some(vertex)",
    ),
    broken(
        ("e16-starts-after-the-stop", "E-16", "what is dirty starts while it stops"),
        "scheduling/readiness.rs",
        "Mode::Pausing | Mode::Paused | Mode::Stopping | Mode::Stopped => false,",
        "Mode::Pausing | Mode::Paused | Mode::Stopped => false,\n            \
         Mode::Stopping => true,",
    ),
    broken(
        ("e17-a-swap-waits-for-nobody", "E-17, R-11", "a vertex is replaced while it runs"),
        "swaps/waiting_graph.rs",
        "let runs = |id: VertexId| self.vertex(id).and_then(Vertex::run).is_some_and(|r| !r.stuck);",
        "let runs = |id: VertexId| self.vertex(id).and_then(Vertex::run).is_some_and(|r| r.id.0 == 0);",
    ),
    broken(
        ("e17-what-is-replaced-starts", "E-17, R-11", "who will be replaced starts meanwhile"),
        "swaps/waiting_graph.rs",
        "let frozen = !needed.contains(&id);",
        "let frozen = false;",
    ),
    broken(
        ("e17-a-newer-graph-leaves-it-frozen", "E-17", "what the older graph froze stays frozen"),
        "swaps/waiting_graph.rs",
        "vertex.frozen = false;\n                self.touch(id);",
        "self.touch(id);",
    ),
    broken(
        ("e17-the-new-edges-are-not-looked-at", "E-17", "gates stand as under the old edges"),
        "scheduling/pokes.rs",
        "*due |= before.parents(*id) != topology.parents(*id);",
        "*due |= before.parents(*id).len() > topology.parents(*id).len() + 1;",
    ),
    broken(
        ("e17-what-follows-is-not-looked-at", "E-17", "below what a swap touches, gates stand"),
        "scheduling/pokes.rs",
        "if due[at] && self.rebuild_gate(order[at]) {",
        "if due[at] && self.rebuild_gate(order[at]) && topology.order().is_empty() {",
    ),
    broken(
        ("e17-right-survives-a-new-definition", "E-17", "what it was is taken for what it is"),
        "swaps/replacement.rs",
        "vertex.right = Stamp::NEVER;\n        vertex.retries = 0;",
        "vertex.retries = 0;",
    ),
    broken(
        ("e17-the-watch-is-kept", "E-17", "a changed vertex keeps the watch of its old definition"),
        "swaps/replacement.rs",
        "        self.rewatch(id);\n        if !settled {",
        "        if !settled {",
    ),
    broken(
        ("e17-a-swap-never-cancels", "E-17, R-17", "the grace of a waiting swap is for ever"),
        "swaps/waiting_graph.rs",
        "self.cancel(id, Cancelled::Withdrawn);",
        "self.touch(id);",
    ),
    broken(
        ("e18-converged-before-durable", "E-18", "converged is told before all is durable"),
        "convergence.rs",
        "self.disturbing == 0\n            && self.closing.is_empty()",
        "self.disturbing == 0",
    ),
    broken(
        ("e18-failed-is-converged", "E-18, R-13", "a failed vertex does not stand against it"),
        "state/vertex.rs",
        "Phase::Delayed(_) | Phase::Failed { .. } | Phase::Asking(_) | Phase::Held(_) => {\n                    \
         true\n                }\n            }",
        "Phase::Delayed(_) | Phase::Asking(_) | Phase::Held(_) => true,\n                \
         Phase::Failed { .. } => false,\n            }",
    ),
    broken(
        ("e18-held-is-converged", "E-18, E-11", "a vertex that would change does not, either"),
        "state/vertex.rs",
        "Phase::Delayed(_) | Phase::Failed { .. } | Phase::Asking(_) | Phase::Held(_) => {\n                    \
         true\n                }\n            }",
        "Phase::Delayed(_) | Phase::Failed { .. } | Phase::Asking(_) => true,\n                \
         Phase::Held(_) => false,\n            }",
    ),
    broken(
        ("e18-a-look-ends-it", "E-18", "a look in progress is a divergence"),
        "state/vertex.rs",
        "RunKind::Look(holding) => run.stuck || holding.is_some(),",
        "RunKind::Look(_) => true,",
    ),
    broken(
        ("e18-told-before-the-first-run", "E-18, R-13", "what was just loaded is called converged"),
        "state/vertex.rs",
        "let dirty = self.causes.any() && !self.causes.only(Causes::POLL);",
        "let dirty =\n            self.causes.any() && !self.causes.only(Causes::POLL) && \
         !self.causes.only(Causes::LOAD);",
    ),
    broken(
        ("e18-told-once", "E-18", "converged is not told again after a divergence"),
        "runs/steps.rs",
        "if std::mem::take(&mut self.said_converged) {",
        "if self.said_converged {",
    ),
];
