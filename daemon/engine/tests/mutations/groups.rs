//! Breakages of groups (E-19), and of a wake-up that a poll tick would hide.

use super::{Breakage, broken};

pub(super) const ALL: &[Breakage] = &[
    broken(
        (
            "e19-across-a-dependency",
            "E-19",
            "a path between two of a class does not keep them apart",
        ),
        "grouping.rs",
        "if let Some(layer) = layers[*at] {",
        "if let Some(layer) = layers[*at].map(|_| 0) {",
    ),
    broken(
        (
            "e19-in-the-graph-as-given",
            "E-19",
            "paths are sought in the graph as given, not as contracted so far",
        ),
        "grouping.rs",
        "(self.heads[*from], self.heads[*to]));",
        "(*from, *to));",
    ),
    broken(
        ("e19-noop-joins", "E-19, E-11", "one in noop joins one that is not"),
        "grouping.rs",
        "let meta = Meta { semaphores: Vec::new(), ..*vertex.meta };",
        "let meta = Meta { semaphores: Vec::new(), noop: false, ..*vertex.meta };",
    ),
    broken(
        ("e19-semaphores-of-the-first", "E-19, E-14", "a group has the semaphores of one member"),
        "grouping.rs",
        "members.iter().flat_map(|member| member.meta.semaphores.iter().copied()).collect();",
        "members.iter().take(1).flat_map(|member| member.meta.semaphores.iter().copied()).collect();",
    ),
    broken(
        ("e19-a-group-notifies-nobody", "E-19, E-9", "the edges of a member move without notify"),
        "grouping.rs",
        "to: leader(edge.to), ..*edge };",
        "to: leader(edge.to), notify: false };",
    ),
    broken(
        ("e19-a-newcomer-leads", "E-19", "who led a group does not go on leading it"),
        "grouping.rs",
        "(!member.leads, member.id)",
        "(member.leads, member.id)",
    ),
    broken(
        (
            "e13-a-poll-hides-the-limiter",
            "E-12, E-13",
            "where something is polled, nobody is woken for a limiter but by the next tick",
        ),
        "engine.rs",
        "[self.timers.next(), self.next_write_off(),",
        "[self.vertices.iter().flatten().any(|v| matches!(v.place, crate::state::vertex::Place::Limit(_))).then(|| self.vertices.iter().flatten().filter_map(|v| v.poll_at).min()).flatten().or(self.timers.next()), self.next_write_off(),",
    ),
];
