//! Breakages of refreshes, failures and noop: E-9 to E-11.

use crate::{Breakage, broken};

pub(crate) const ALL: &[Breakage] = &[
    broken(
        ("e09-the-intent-owes-nobody", "E-9", "a crash during the apply loses the refresh"),
        "runs/steps.rs",
        "Intent { run, vertex: id, definition, stamp, class, owes, pays }",
        "Intent { run, vertex: id, definition, stamp, class, owes: vec![], pays }",
    ),
    broken(
        ("e09-pays-what-came-later", "E-9, W-8", "what came during the run is paid, too"),
        "runs/owed_refreshes.rs",
        "let paid = (run.pays > Stamp::NEVER).then_some(run.pays)?;",
        "let owed = self.vertex(id)?.owed;\n        \
         let paid = (owed > Stamp::NEVER && run.pays <= owed).then_some(owed)?;",
    ),
    broken(
        ("e09-a-failed-run-owes-nothing", "E-9", "content written, chown failed: nobody is told"),
        "runs/steps.rs",
        "let owes = if touched { self.debts(id, &run) } else { Vec::new() };\n        \
         let outcome = Outcome::Failed { touched };",
        "let owes = Vec::new();\n        let outcome = Outcome::Failed { touched };",
    ),
    broken(
        ("e09-a-cut-off-run-owes-nothing", "E-9", "a run that a stop cut off owes nobody"),
        "runs/steps.rs",
        "let owes = if touched { self.debts(id, &run) } else { Vec::new() };\n        \
         let outcome = if touched",
        "let owes = Vec::new();\n        let outcome = if touched",
    ),
    broken(
        ("e09-paid-by-a-failure", "E-9, R-12", "a failed run consumes what was owed"),
        "runs/retries.rs",
        "vertex.failing = true;\n        vertex.doublings =",
        "vertex.failing = true;\n        vertex.owed = crate::Stamp::NEVER;\n        vertex.doublings =",
    ),
    broken(
        (
            "e09-the-edge-takes-it-along",
            "E-9",
            "an edge that goes during the run loses the refresh",
        ),
        "runs/owed_refreshes.rs",
        "run.owes.iter().filter(|child| self.vertex(**child).is_some_and(|v| !v.leaving)),",
        "run.owes.iter().filter(|child| self.vertex(**child).is_none()),",
    ),
    broken(
        ("e09-forgotten-by-a-new-definition", "E-9", "a changed child is owed nothing any more"),
        "swaps/replacement.rs",
        "vertex.right = Stamp::NEVER;\n        vertex.retries = 0;",
        "vertex.right = Stamp::NEVER;\n        vertex.owed = Stamp::NEVER;\n        \
         vertex.retries = 0;",
    ),
    broken(
        ("e09-forgotten-by-a-restart", "E-9", "what the store remembers as owed is not taken over"),
        "swaps/replacement.rs",
        "(vertex.owed, vertex.owed_by) = (stamp, by);",
        "(vertex.owed, vertex.owed_by) = (Stamp::NEVER, by);",
    ),
    broken(
        ("e09-not-told", "E-9", "the run that pays is not told of the refresh"),
        "scheduling/admission.rs",
        "let refresh = !look && (vertex.owed.0 > 0 || supposed);",
        "let refresh = !look && supposed;",
    ),
    broken(
        ("e09-owed-and-not-dirty", "E-9", "what is owed marks nobody"),
        "runs/owed_refreshes.rs",
        "self.attempt(*id);\n            self.mark(*id, Causes::OWED);",
        "self.attempt(*id);",
    ),
    broken(
        ("e10-a-back-poke-refills", "E-10, R-6", "a back-poke counts as a success"),
        "scheduling/readiness.rs",
        "vertex.phase = Phase::Resting;\n        vertex.causes.add(Causes::AGAIN);",
        "vertex.phase = Phase::Resting;\n        vertex.retries = 0;\n        \
         vertex.causes.add(Causes::AGAIN);",
    ),
    broken(
        ("e10-a-swap-refills", "E-10, R-7", "each swap gives a new budget"),
        "swaps/replacement.rs",
        "if swap.operator {\n            self.encourage_all();",
        "if swap.operator || self.counts.failed > 0 {\n            self.encourage_all();",
    ),
    broken(
        ("e10-own-events-refill", "E-10", "events during its own run are a new budget"),
        "scheduling/triggers.rs",
        "if !own {\n            vertex.retries = 0;",
        "if own || !own {\n            vertex.retries = 0;",
    ),
    broken(
        ("e10-an-event-ends-the-delay", "E-10, R-5", "an event ends the wait before a retry"),
        "scheduling/triggers.rs",
        "if !own {\n            vertex.retries = 0;",
        "if !own {\n            if matches!(vertex.phase, Phase::Delayed(_)) {\n                \
         vertex.phase = Phase::Resting;\n            }\n            vertex.retries = 0;",
    ),
    broken(
        ("e10-no-back-off", "E-10", "the delay does not grow"),
        "runs/retries.rs",
        "vertex.doublings = vertex.doublings.saturating_add(1);",
        "vertex.doublings = 0;",
    ),
    broken(
        ("e10-no-shortest-delay", "E-10, R-5", "a delay of 0 spins"),
        "runs/retries.rs",
        "let first = vertex.meta.delay.max(crate::Meta::SHORTEST_DELAY);",
        "let first = vertex.meta.delay;",
    ),
    broken(
        ("e10-one-retry-too-many", "E-10", "the budget is counted wrongly"),
        "runs/retries.rs",
        "vertex.meta.retry.is_none_or(|limit| vertex.retries < limit)",
        "vertex.meta.retry.is_none_or(|limit| vertex.retries <= limit)",
    ),
    broken(
        ("e10-an-event-is-no-new-budget", "E-10", "who failed for good is not tried for an event"),
        "scheduling/triggers.rs",
        "if !own {\n            vertex.retries = 0;\n            self.attempt(id);",
        "if !own {\n            self.attempt(id);",
    ),
    broken(
        ("e10-a-failed-one-blocks-nobody", "E-10, R-13", "descendants of a failed one go on"),
        "state/vertex.rs",
        "Phase::Resting => !self.causes.any(),\n            // A look",
        "Phase::Resting | Phase::Failed { .. } => !self.causes.any(),\n            // A look",
    ),
    broken(
        ("e11-noop-applies", "E-11", "a vertex in noop is changed"),
        "runs/dry_run.rs",
        "if vertex.meta.noop && (!vertex.meta.planned || self.is_allowed(id)) {",
        "if vertex.meta.noop && vertex.definition == 0 {",
    ),
    broken(
        ("e11-noop-blocks", "E-11", "what would change blocks its descendants"),
        "scheduling/pokes.rs",
        "if limited || has_tried || self.is_settled() || self.is_out_of_the_way() {",
        "if limited || self.is_settled() {",
    ),
    broken(
        ("e11-noop-pays", "E-11", "what is owed is paid by a run that only checked"),
        "runs/steps.rs",
        "if vertex.meta.noop && vertex.owed > Stamp::NEVER {",
        "if vertex.meta.noop && vertex.owed == Stamp::CLEAR {",
    ),
    broken(
        ("e11-noop-fails-below-a-change", "E-11", "unknown until that one is called failed"),
        "runs/steps.rs",
        "let is_noop = vertex.meta.noop;",
        "let is_noop = vertex.definition == 0;",
    ),
    broken(
        ("e11-freed-and-not-run", "E-11", "taken out of noop it stays as it was held"),
        "swaps/replacement.rs",
        "if freed && (held || vertex.owed > Stamp::NEVER) {",
        "if freed && vertex.owed > Stamp::NEVER {",
    ),
];
