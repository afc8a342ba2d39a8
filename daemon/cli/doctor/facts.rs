//! The check of facts: values that the schema refuses, and local facts that cannot be used.

use super::Finding;
use crate::facts::{self, HostRoot, SystemAnswers};

/// Returns a warning for each fact that is absent because of its value.
pub(super) fn look() -> Vec<Finding> {
    let collected = facts::collect(&HostRoot::of_this_host(), &SystemAnswers::of_this_host());
    if collected.problems.is_empty() {
        return vec![Finding::ok("facts", "all values match their patterns")];
    }
    let advice =
        "expressions treat the fact as absent; correct its source (`steadfast explain facts`)";
    let warning =
        |problem: &facts::FactProblem| Finding::warning("facts", problem.to_string(), advice);
    collected.problems.iter().map(warning).collect()
}
