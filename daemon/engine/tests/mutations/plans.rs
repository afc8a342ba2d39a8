//! Breakages of uncertain findings in plans (E-11).

use super::{Breakage, broken};

pub(super) const ALL: &[Breakage] = &[
    broken(
        ("e11-a-doubt-is-said-and-no-more", "E-11", "what is told to be unknown stays as it was"),
        "runs/dry_run.rs",
        "vertex.phase = Phase::Held(holding);",
        "",
    ),
    broken(
        ("e11-what-failed-is-not-doubted", "E-11", "a check that failed is not in doubt"),
        "runs/dry_run.rs",
        "Phase::Resting | Phase::Failed { .. } => true,",
        "Phase::Resting => true,\n                Phase::Failed { .. } => false,",
    ),
    broken(
        ("e11-what-would-change-is-not-doubted", "E-11", "a change that was found is not in doubt"),
        "runs/dry_run.rs",
        "matches!(holding, HeldReason::WouldChange | HeldReason::WouldRefresh)",
        "matches!(holding, HeldReason::WouldRefresh)",
    ),
    broken(
        (
            "e11-a-doubt-ends-a-check",
            "E-11, E-6",
            "what is asked at the moment is held, and its answer is nobody's",
        ),
        "runs/dry_run.rs",
        "if !vertex.meta.noop || !is_told {",
        "if !vertex.meta.noop || vertex.causes.any() {",
    ),
    broken(
        (
            "e11-a-doubt-refreshes-nobody",
            "E-11",
            "whom it would refresh is not asked what that would do",
        ),
        "runs/dry_run.rs",
        "            }\n        }\n        self.assume_possible_refresh(id);",
        "            }\n        }",
    ),
    broken(
        (
            "e11-who-failed-below-a-doubt-has-failed",
            "E-11, E-10",
            "who failed below what is in doubt is neither asked again nor in doubt",
        ),
        "runs/dry_run.rs",
        "if self.counts.failed > 0 {",
        "if false {",
    ),
];
