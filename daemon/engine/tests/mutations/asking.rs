//! Breakages of the questions to ancestors after a failure (E-3, E-10).

use super::{Breakage, broken};

pub(super) const ALL: &[Breakage] = &[
    broken(
        (
            "e03-a-failure-asks-nobody",
            "E-3, E-10",
            "a failure counts before its parents are looked at",
        ),
        "runs/asking_ancestors.rs",
        "let may_ask = self.mode == Mode::Running && !self.one_shot;",
        "let may_ask = false;",
    ),
    broken(
        (
            "e03-what-differs-excuses-nobody",
            "E-3, E-10",
            "a failure counts although a parent differs",
        ),
        "runs/asking_ancestors.rs",
        "Ancestors::Differ => self.discard_failure(id),",
        "Ancestors::Differ => self.count_failure(id),",
    ),
    broken(
        (
            "e03-an-old-answer-will-do",
            "E-3",
            "a look that began before the failed run is an answer",
        ),
        "runs/asking_ancestors.rs",
        "can_start && awaits && vertex.seen <= since",
        "can_start && awaits && vertex.seen == Stamp::NEVER",
    ),
];
