//! Breakages of order, events, slots and cost: E-1 to E-8.

use crate::{Breakage, broken};

pub(crate) const ALL: &[Breakage] = &[
    broken(
        ("e01-ancestors-do-not-block", "E-1", "a dirty vertex starts whatever its ancestors do"),
        "scheduling/readiness.rs",
        "let run = may && vertex.wants_run() && vertex.gate.least > vertex.dirty_since;",
        "let run = may && vertex.wants_run();",
    ),
    broken(
        ("e01-only-parents-block", "E-1, R-2", "a clean parent hides the dirty one above it"),
        "scheduling/pokes.rs",
        "self.own_clearance().min(self.gate.least)",
        "self.own_clearance()",
    ),
    broken(
        ("e01-starts-before-its-watch", "E-1, R-9", "the first run does not wait for the watch"),
        "scheduling/readiness.rs",
        "let may = !vertex.frozen && vertex.watch != Watch::Asked;",
        "let may = !vertex.frozen;",
    ),
    broken(
        ("e01-a-run-clears-who-came-later", "E-1", "right since the end of the run, not its start"),
        "runs/steps.rs",
        "vertex.right = run.stamp;\n        vertex.doublings = 0;",
        "vertex.right = stamp;\n        vertex.doublings = 0;",
    ),
    broken(
        ("e02-the-poke-is-lost", "E-2, W-1", "a child is not told that nothing blocks it any more"),
        "scheduling/pokes.rs",
        "vertex.gate.least = least;\n            self.touch(id);",
        "vertex.gate.least = least;",
    ),
    broken(
        ("e02-the-poke-ends-at-the-first", "E-2", "a clean child does not pass the poke on"),
        "scheduling/readiness.rs",
        "self.pass_poke(id, before, clearance);",
        "if class.0 != class.1 {\n                self.pass_poke(id, before, clearance);\n            }",
    ),
    broken(
        ("e03-no-back-poke", "E-3", "an ancestor that failed for good gets no attempt"),
        "scheduling/pokes.rs",
        "next.push(*parent);\n                    self.revive(*parent);",
        "next.push(*parent);",
    ),
    broken(
        ("e03-back-poke-of-parents-only", "E-3", "who failed above a parent gets no attempt"),
        "scheduling/pokes.rs",
        "next.push(*parent);\n                    self.revive(*parent);",
        "self.revive(*parent);",
    ),
    broken(
        ("e03-back-poke-in-a-pause", "E-3, R-1", "a back-poke is not dropped while it rests"),
        "scheduling/pokes.rs",
        "if self.mode != Mode::Running || self.counts.failed == 0 || self.rewires {",
        "if self.counts.failed == 0 || self.rewires {",
    ),
    broken(
        ("e04-cleared-when-the-run-ends", "E-4, R-8", "an event during a good run is swallowed"),
        "runs/steps.rs",
        "vertex.right = run.stamp;\n        vertex.doublings = 0;",
        "vertex.right = run.stamp;\n        vertex.causes = Causes::default();\n        \
         vertex.doublings = 0;",
    ),
    broken(
        ("e04-cleared-by-a-failure", "E-4", "an event during the last failing run is forgotten"),
        "runs/retries.rs",
        "let notice = if budget || look || vertex.causes.any() {",
        "let notice = if budget || look {",
    ),
    broken(
        ("e04-a-look-is-forgotten", "E-4, R-10", "a look asked for during a run never comes"),
        "scheduling/triggers.rs",
        "vertex.look = true;\n                self.touch(id);",
        "vertex.look = vertex.run().is_none();\n                self.touch(id);",
    ),
    broken(
        ("e04-events-wait-for-the-look", "E-4", "an event during a look marks nothing"),
        "scheduling/triggers.rs",
        "            self.attempt(id);\n        }\n        self.mark(id, Causes::EVENT);",
        "            self.attempt(id);\n        }\n        \
         if self.vertex(id).is_some_and(|v| v.run().is_none_or(|run| run.kind == RunKind::Process)) \
         {\n            self.mark(id, Causes::EVENT);\n        }",
    ),
    broken(
        ("e05-dirty-outlives-the-start", "E-5", "a start clears nothing: it runs once more"),
        "scheduling/admission.rs",
        "causes = vertex.causes.take();",
        "causes = vertex.causes;",
    ),
    broken(
        ("e06-twice-at-once", "E-6, R-16", "a run called stuck is let go and started once more"),
        "scheduling/triggers.rs",
        "self.diverge(id);\n        self.notify(Notice::Stuck(id, run));",
        "self.diverge(id);\n        drop(self.release(id));\n        \
         self.mark(id, Causes::AGAIN);\n        self.notify(Notice::Stuck(id, run));",
    ),
    broken(
        ("e06-one-slot-too-many", "E-6", "one start more than there are slots"),
        "scheduling/queues.rs",
        "if self.used >= self.total {",
        "if self.used > self.total {",
    ),
    broken(
        ("e06-a-slot-is-not-given-back", "E-6, R-15", "who was cancelled keeps its slot"),
        "scheduling/admission.rs",
        "        } else {\n            lane.used -= 1;\n        }",
        "        } else if run.cancelled.is_none() {\n            lane.used -= 1;\n        }",
    ),
    broken(
        ("e06-written-off-without-a-cap", "E-6", "any number of threads is replaced"),
        "scheduling/admission.rs",
        "let is_spare = self.lanes.threads.written_off < self.replaceable;",
        "let is_spare = true;",
    ),
    broken(
        ("e06-never-written-off", "E-6, R-15", "a thread that hangs is never replaced"),
        "scheduling/admission.rs",
        "let is_spare = self.lanes.threads.written_off < self.replaceable;",
        "let is_spare = false;",
    ),
    broken(
        ("e06-load-before-drift", "E-6", "what was loaded goes before what has drifted"),
        "scheduling/admission.rs",
        "{ Priority::Load } else { Priority::Drift }",
        "{ Priority::Drift } else { Priority::Load }",
    ),
    broken(
        ("e06-the-last-come-first", "E-6", "the newest entry of a queue is taken"),
        "scheduling/queues.rs",
        "self.queues.iter_mut().find_map(VecDeque::pop_front)",
        "self.queues.iter_mut().rev().find_map(VecDeque::pop_front)",
    ),
    broken(
        ("e07-not-looked-at-again", "E-7", "who waits in a queue starts although it is blocked"),
        "scheduling/readiness.rs",
        "Place::Limit(_) | Place::Semaphores | Place::Slot(_) if run && open => {}",
        "Place::Limit(_) | Place::Semaphores | Place::Slot(_) if open => {}",
    ),
    broken(
        ("e08-clean-children-run", "E-8, W-2", "a change runs clean children, too"),
        "runs/retries.rs",
        "            if vertex.failing {\n                vertex.retries = 0;",
        "            self.mark(child.id, Causes::AGAIN);\n            \
         let Some(vertex) = self.vertex_mut(child.id) else { continue };\n            \
         if vertex.failing {\n                vertex.retries = 0;",
    ),
    broken(
        ("e08-the-crowd-is-miscounted", "E-8, W-7", "a gate of many parents never opens"),
        "scheduling/pokes.rs",
        "if *n == 0 {\n            crowd.remove(&before);",
        "if *n == u32::MAX {\n            crowd.remove(&before);",
    ),
    broken(
        ("e08-blocking-is-miscounted", "E-8", "a gate opens although one still blocks"),
        "scheduling/pokes.rs",
        "let least = if after <= gate.least {",
        "let least = if after <= gate.least || after == Stamp::CLEAR {",
    ),
];
