//! Breakages that restore the defects found by a review (docs/development/engine-review.md), and its planted bugs that
//! survived.

use crate::{Breakage, broken};

pub(crate) const ALL: &[Breakage] = &[
    broken(
        ("e08-an-end-says-the-new-definition", "E-8, E-9", "what never ran counts as cut off"),
        "runs/steps.rs",
        "        let record = Record { owes: owes.clone(), ..record(id, &run, (outcome, stamp)) };\n        \
         let notices",
        "        let mut record =\n            \
         Record { owes: owes.clone(), ..record(id, &run, (outcome, stamp)) };\n        \
         record.definition = self.vertex(id).map_or(0, |vertex| vertex.definition);\n        \
         let notices",
    ),
    broken(
        (
            "e08-a-deed-is-done-for-a-stuck-run",
            "E-8",
            "a deed for events is done when a stuck run of what its vertex was returns",
        ),
        "runs/steps.rs",
        "if !run.obsolete || self.vertex(id).is_some_and(Vertex::is_checkable) {",
        "if self.vertex(id).is_some() {",
    ),
    broken(
        ("a-refused-begin-is-ended", "E-8", "a begin that was never kept has an end"),
        "runs/durable_begin.rs",
        "self.cut_off(id, Station::Checking, false);",
        "self.cut_off(id, Station::Beginning, false);",
    ),
    broken(
        ("e13-a-poll-is-lost", "E-13, E-17", "who comes back while it is stuck is never polled"),
        "swaps/replacement.rs",
        "if came_back {",
        "if came_back && id.0 == u32::MAX {",
    ),
    broken(
        ("e06-a-spare-slot-is-used-once", "E-6", "at the cap a run loses its turn for good"),
        "scheduling/admission.rs",
        "        while self.next_write_off().is_some_and(|at| at <= self.now) {\n            \
         let Some((_, run, id)) = self.patience.pop_front() else { return };\n            \
         let lane = &mut self.lanes.threads;\n",
        "        while self.patience.front().is_some_and(|(at, ..)| *at <= self.now) {\n            \
         let Some((_, run, id)) = self.patience.pop_front() else { return };\n            \
         let lane = &mut self.lanes.threads;\n            \
         if lane.written_off >= self.replaceable {\n                continue;\n            }\n",
    ),
    broken(
        ("e06-a-spare-slot-waits-for-a-tick", "E-6", "a spare slot that came back is used late"),
        "scheduling/admission.rs",
        "if run.written_off {\n            // There is",
        "if run.written_off && id.0 == u32::MAX {\n            // There is",
    ),
    broken(
        ("e16-a-command-is-left-too-early", "E-16", "a stop waits one second for a command"),
        "pauses/stop.rs",
        "run.returns.is_some_and(|at| at <= self.now);",
        "run.returns.is_some_and(|at| {\n            \
         at <= self.now || run.executor == steadfast_traits::ExecutorKind::Command\n                \
         && at <= self.now.after(crate::runs::steps::RETURN + crate::runs::steps::RETURN)\n        });",
    ),
    broken(
        ("planted-a-command-is-stuck-too-early", "E-6", "a command has one second to return"),
        "scheduling/triggers.rs",
        "ExecutorKind::Command => RETURN_OF_COMMAND,",
        "ExecutorKind::Command => RETURN.min(RETURN_OF_COMMAND),",
    ),
    broken(
        ("planted-looks-before-load", "E-6", "a look takes the slot before what was loaded"),
        "scheduling/queues.rs",
        "self.queues[priority as usize].push_back((number, vertex));",
        "let at = [0, 2, 1][priority as usize];\n        \
         self.queues[at].push_back((number, vertex));",
    ),
    broken(
        ("e20-a-pause-is-listening", "E-20", "who gives way is let in by a long pause"),
        "scheduling/admission.rs",
        "self.must_listen(id);",
        "",
    ),
    broken(
        ("e15-a-shelf-keeps-what-drains", "E-15", "a drain skips a refresh behind a look"),
        "scheduling/readiness.rs",
        "Place::Shelf if run && open => {",
        "Place::Shelf if run && open && id.0 == u32::MAX => {",
    ),
    broken(
        ("e15-a-second-drain-is-a-pause", "E-15", "a drain that is asked for again ends"),
        "pauses/pause.rs",
        "Mode::Draining if pause.drain => {}",
        "Mode::Draining if pause.drain && pause.until == Tick(0) => {}",
    ),
    broken(
        ("e15-what-runs-may-run-again", "E-15", "a drain processes what came after its request"),
        "pauses/pause.rs",
        "slot.drains = slot.causes.any();",
        "slot.drains = slot.causes.any() || slot.run().is_some();",
    ),
    broken(
        ("e10-a-failure-is-told-too-early", "E-10", "a failed check is told before the last run"),
        "runs/steps.rs",
        "self.notify_in_order(id, Notice::CheckFailed(id, run));\n        \
         let later = self.fail(id);\n        self.notify_in_order(id, later);",
        "self.notify(Notice::CheckFailed(id, run));\n        \
         let later = self.fail(id);\n        self.notify(later);",
    ),
    broken(
        ("e10-a-look-recovers-nobody", "E-10", "a look that finds who had failed right is silent"),
        "runs/steps.rs",
        "if std::mem::take(&mut vertex.failing) {\n            vertex.doublings = 0;",
        "if vertex.failing && id.0 == u32::MAX {\n            vertex.doublings = 0;",
    ),
    broken(
        ("e03-a-resume-back-pokes-nobody", "E-3, R-2", "what failed above stays so at the resume"),
        "pauses/pause.rs",
        "if self.counts.failed > 0 {\n            let since",
        "if self.counts.failed == u32::MAX {\n            let since",
    ),
    broken(
        (
            "e11-a-look-above-hides-it",
            "E-11",
            "who would change is overlooked while it is looked at",
        ),
        "runs/dry_run.rs",
        "self.vertex(*parent).map(Vertex::held_by)",
        "self.vertex(*parent).map(|p| p.held_by().filter(|_| p.run().is_none()))",
    ),
    broken(
        ("e11-unknown-outlives-the-other", "E-11", "unknown until one that is right"),
        "runs/dry_run.rs",
        "if std::mem::take(&mut vertex.awaited) {",
        "if std::mem::take(&mut vertex.awaited) && id.0 == u32::MAX {",
    ),
    broken(
        ("e11-unknown-outlives-its-removal", "E-11, E-17", "unknown until one that has left"),
        "runs/dry_run.rs",
        "if is_gone || self.would_change_above(id).is_none() {",
        "if is_gone && id.0 == u32::MAX {",
    ),
    broken(
        (
            "e11-supposed-is-no-attempt",
            "E-11, E-10",
            "who failed in noop is not asked for a refresh",
        ),
        "runs/dry_run.rs",
        "self.attempt(child);",
        "",
    ),
    broken(
        ("e11-the-end-of-noop-pays-nothing", "E-11, E-9", "who failed in noop goes on owing"),
        "swaps/replacement.rs",
        "self.attempt(id);\n            self.mark(id, Causes::LOAD);",
        "self.mark(id, Causes::LOAD);",
    ),
    broken(
        ("e20-a-window-holds-noop", "E-20, E-11", "who is put into noop stays held by its window"),
        "swaps/replacement.rs",
        "(before.window != new.meta.window || new.meta.noop)",
        "before.window != new.meta.window",
    ),
    broken(
        ("e09-ask-holds-no-refresh", "E-9", "a refresh starts what waits for the operator"),
        "state/vertex.rs",
        "self.phase == Phase::Held(HeldReason::Operator) && !self.causes.has(Causes::OPERATOR)",
        "self.phase == Phase::Held(HeldReason::Operator) && !self.causes.any()",
    ),
    broken(
        ("e03-a-swap-back-pokes-by-old-edges", "E-3, E-10", "who is above no more gets an attempt"),
        "swaps/replacement.rs",
        "self.rewires = true;",
        "",
    ),
    broken(
        ("e03-a-swap-back-pokes-for-loads", "E-3", "other marks of a swap back-poke nobody"),
        "swaps/replacement.rs",
        "let newly = |v: &Vertex| v.causes.any() && v.dirty_since > before;",
        "let newly =\n                \
         |v: &Vertex| v.causes.has(Causes::LOAD) && v.dirty_since > before;",
    ),
    broken(
        ("e17-a-second-grace", "E-17", "a newer graph waits once more for what was given up"),
        "swaps/replacement.rs",
        "p.cancel_at.unwrap_or(self.now)",
        "p.cancel_at.unwrap_or(self.now.after(GRACE))",
    ),
    broken(
        ("e12-settled-is-not-right", "E-12, E-17", "a deed that a swap made was never right"),
        "swaps/replacement.rs",
        "(vertex.right, vertex.done, vertex.failing) = (SETTLED, true, false);",
        "vertex.failing = false;",
    ),
    broken(
        (
            "e01-a-new-definition-keeps-its-dirt",
            "E-1, E-17",
            "an ancestor that the swap brought blocks it no more",
        ),
        "swaps/replacement.rs",
        "self.renew_dirt(id);\n",
        "",
    ),
    broken(
        ("planted-retryreset-is-ignored", "E-10", "each success refills the budget"),
        "runs/steps.rs",
        "        vertex.doublings = 0;\n        if vertex.meta.retryreset {",
        "        vertex.doublings = 0;\n        if vertex.meta.retryreset || vertex.retries > 0 {",
    ),
    broken(
        ("planted-converged-while-a-swap-waits", "E-18", "converged is told while a swap waits"),
        "convergence.rs",
        "            && self.pending.is_none()\n            && self.mode == Mode::Running",
        "            && self.mode == Mode::Running",
    ),
    broken(
        ("planted-any-metaparam-ends-a-contention", "E-20", "another delay ends a contention"),
        "swaps/replacement.rs",
        "before.on_conflict != new.meta.on_conflict || new.meta.noop;",
        "before != &*new.meta;",
    ),
    broken(
        ("planted-more-time-for-a-newer-graph", "E-17", "each newer graph waits anew"),
        "swaps/replacement.rs",
        "pending.cancel_at = pending.cancel_at.min(Some(until));",
        "pending.cancel_at = pending.cancel_at.max(Some(until));",
    ),
    broken(
        ("planted-a-drained-run-drains-on", "E-15", "an event in a drained run is processed"),
        "scheduling/admission.rs",
        "        vertex.drains = false;\n",
        "",
    ),
];
