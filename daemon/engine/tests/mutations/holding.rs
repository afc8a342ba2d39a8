//! Breakages of delays (contention, the repair limit, windows), of `realize`, and of received values, caught by the
//! model.

use super::{Breakage, broken};

pub(super) const ALL: &[Breakage] = &[
    broken(
        ("e20-four-are-a-contention", "E-20", "a contention is called one too early"),
        "contention/record.rs",
        "let enough = self.rounds.len() >= Meta::REVERSALS;",
        "let enough = self.rounds.len() + 1 >= Meta::REVERSALS;",
    ),
    broken(
        ("e20-the-wait-grows-too-fast", "E-20", "each wait is four times the one before"),
        "contention/repair_delay.rs",
        "contention.doublings = contention.doublings.saturating_add(1);",
        "contention.doublings = contention.doublings.saturating_add(2);",
    ),
    broken(
        ("e20-calm-too-soon", "E-20", "a contention is over when its wait is"),
        "contention/repair_delay.rs",
        "self.end_contention_after(id, wait.max(Meta::REVERSAL_WINDOW));",
        "self.end_contention_after(id, wait);",
    ),
    broken(
        (
            "e20-calm-without-listening",
            "E-20",
            "who gives way has not heard whether anybody still touches it",
        ),
        "contention/repair_delay.rs",
        "if contention.muted {\n            contention.not_before",
        "if false {\n            contention.not_before",
    ),
    broken(
        ("e20-the-contended-block", "E-20", "who is put off in a contention blocks those below"),
        "scheduling/pokes.rs",
        "let merely_limited = put_off && !self.failing;",
        "let merely_limited = put_off && !self.failing && !self.contended;",
    ),
    broken(
        ("e20-the-repair-limit-comes-late", "E-20", "one repair more than the bound"),
        "contention/global_limit.rs",
        "if self.repair_limiter.limit.is_none_or(|limit| repairs <= limit)",
        "if self.repair_limiter.limit.is_none_or(|limit| repairs <= limit + 1)",
    ),
    broken(
        ("e20-the-repair-limit-counts-all", "E-20", "what is repaired for the first time counts"),
        "contention/global_limit.rs",
        "self.repair_limiter.repeated += u32::from(again);\n        let repairs",
        "self.repair_limiter.repeated += 1;\n        let repairs",
    ),
    broken(
        (
            "e20-the-repair-limit-lets-pass",
            "E-20",
            "what is found under the repair limit is repaired",
        ),
        "runs/steps.rs",
        "if self.suspended_until(id).is_some() && self.is_repair(id)",
        "if false && self.is_repair(id)",
    ),
    broken(
        ("e20-a-window-stays-open", "E-20", "that a window closes is not heeded"),
        "pauses/windows.rs",
        "self.open.remove(&window);",
        "self.open.contains(&window);",
    ),
    broken(
        (
            "e20-a-window-is-for-repairs",
            "E-20",
            "what was never right is changed outside of its window",
        ),
        "runs/steps.rs",
        "if !self.is_allowed(id) {",
        "if !self.is_allowed(id) && self.is_repair(id) {",
    ),
    broken(
        ("e20-a-window-lets-one-in-less", "E-20", "one that waits for its window goes on waiting"),
        "pauses/windows.rs",
        "for id in self.all(waits) {",
        "for id in self.all(waits).into_iter().skip(1).collect::<Vec<_>>() {",
    ),
    broken(
        (
            "e17-realize-waits-alone",
            "E-17",
            "what the one waits for that must be right stays frozen",
        ),
        "swaps/waiting_graph.rs",
        "next.extend(self.topology.parents(id));\n            }\n        }\n        for id in all",
        "next.extend(self.topology.parents(id).get(..0).unwrap_or_default());\n            }\n        }\n        for id in all",
    ),
    broken(
        ("e17-realize-gives-up", "E-17", "what has failed once goes without its retries"),
        "swaps/waiting_graph.rs",
        "v.meta.realize && !v.meta.noop && !v.done && can",
        "v.meta.realize && !v.meta.noop && !v.done && !v.failing && can",
    ),
    broken(
        (
            "e04-a-value-is-an-echo",
            "E-4, R-12",
            "a value that comes during a run is taken for its own doing",
        ),
        "scheduling/triggers.rs",
        "pub(crate) fn received(&mut self, id: VertexId) {\n        let Some(vertex) = self.vertex_mut(id) else { return };",
        "pub(crate) fn received(&mut self, id: VertexId) {\n        let Some(vertex) = self.vertex_mut(id).filter(|vertex| vertex.run().is_none()) else { return };",
    ),
];
