//! The guard of a planned apply: it rejects every change that the plan does not contain.

use super::{Action, Plan, Step};
use crate::api::Differing;
use crate::driver::Guard;
use steadfast_resources::{Change, CheckResult, Failure, RunPolicy};

const HINT: &str = "the host has changed since the plan; plan again";

impl Guard for Plan {
    fn admit(&self, identity: &str, repeat: RunPolicy, verdict: CheckResult) -> CheckResult {
        let CheckResult::Differs(change) = verdict else { return verdict };
        match self.objection(identity, repeat, &change) {
            None => CheckResult::Differs(change),
            Some(what) => CheckResult::Unknown(not_planned(&what)),
        }
    }

    fn holds(&self, identity: &str) -> Option<Failure> {
        let held = self.step(identity).filter(|step| step.action == Action::Held)?;
        let until = held.until.as_deref().map(|until| format!(" (changes are allowed {until})"));
        let until = until.unwrap_or_default();
        Some(not_planned(&format!("planned: held{until}; found: would change")))
    }
}

impl Plan {
    /// Returns the reason why a change is not part of the plan, if there is one.
    fn objection(&self, identity: &str, repeat: RunPolicy, change: &Change) -> Option<String> {
        let found: Vec<Differing> = change.differences.iter().map(Differing::from).collect();
        let Some(step) = self.step(identity) else {
            return Some(format!("planned: converged; found: differs: {}", names(&found)));
        };
        match step.action {
            // The plan could not foresee the result of earlier changes, nor the guard command of an `exec`.
            Action::Unknown => None,
            Action::Refresh if repeat != RunPolicy::State => None,
            // Only the refresh itself was planned.
            Action::Refresh => {
                let found: Vec<Differing> =
                    found.into_iter().filter(|one| one.aspect != "refresh").collect();
                step.objection(&found, change.premise_digest)
            }
            // Reporting the difference is harmless; `holds` prevents the run.
            Action::Held => None,
            Action::Change | Action::Remove => {
                // An earlier step may have removed the entries of this directory.
                let is_emptied = step.differences.iter().any(|one| one.from == "directory")
                    && self.removals() > 1;
                // The plan has no premise digest for objects that its own steps create.
                let is_open = is_emptied || step.follows;
                step.objection(&found, if is_open { 0 } else { change.premise_digest })
            }
        }
    }
}

impl Step {
    /// Returns a difference found now that is not in the plan. A missing difference is no objection: that part is done.
    fn objection(&self, found: &[Differing], premise_digest: u64) -> Option<String> {
        for one in found {
            let planned = self.differences.iter().find(|planned| planned.aspect == one.aspect);
            match planned {
                _ if self.differences.contains(one) => {}
                Some(planned) => return Some(moved(planned, one)),
                None => {
                    return Some(format!("{}: was converged, is now {}", one.aspect, one.from));
                }
            }
        }
        let hidden = self.premise_digest != 0
            && premise_digest != 0
            && self.premise_digest != premise_digest;
        hidden.then(|| "content: changed since the plan".to_owned())
    }
}

fn not_planned(what: &str) -> Failure {
    Failure::new(format!("not as planned: {what}")).hint(HINT)
}

/// Describes an aspect that differs in another way than planned.
pub(super) fn moved(planned: &Differing, found: &Differing) -> String {
    let aspect = &planned.aspect;
    if planned.from != found.from {
        return format!("{aspect}: was {}, is now {}", word(&planned.from), word(&found.from));
    }
    if planned.to != found.to {
        return format!("{aspect}: planned target {}, now {}", word(&planned.to), word(&found.to));
    }
    format!("{aspect}: changed since the plan")
}

fn word(text: &str) -> &str {
    if text.is_empty() { "not there" } else { text }
}

pub(super) fn names(aspects: &[Differing]) -> String {
    let names: Vec<&str> = aspects.iter().map(|one| one.aspect.as_str()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_resources::Difference;

    fn plan(action: &str) -> Plan {
        let step = serde_json::json!({"resource": "svc[x]", "action": action, "until": null, "differences": []});
        Plan::with(serde_json::from_value(serde_json::json!([step])).expect("steps"))
    }

    fn differs(aspect: &'static str) -> CheckResult {
        let (from, to) = ("stopped".to_owned(), "running".to_owned());
        CheckResult::Differs(Change::of(vec![Difference { aspect, from, to, diff: None }]))
    }

    /// F-16: a planned refresh admits nothing but the refresh; only an unknown step admits everything.
    #[test]
    fn a_refresh_admits_no_other_change_of_a_state() {
        let refresh = plan("refresh");
        let is_admitted = |plan: &Plan, repeat, aspect| {
            matches!(plan.admit("svc[x]", repeat, differs(aspect)), CheckResult::Differs(_))
        };
        assert!(!is_admitted(&refresh, RunPolicy::State, "state"));
        assert!(is_admitted(&refresh, RunPolicy::State, "refresh"));
        assert!(is_admitted(&refresh, RunPolicy::Events, "command"));
        assert!(is_admitted(&plan("unknown"), RunPolicy::State, "state"));
        let CheckResult::Unknown(failure) =
            refresh.admit("svc[x]", RunPolicy::State, differs("state"))
        else {
            panic!("admitted");
        };
        assert!(
            failure.what.starts_with("not as planned: state: was converged, is now stopped"),
            "{failure:?}"
        );
    }

    /// F-16: a held resource is checked, and its apply is never begun.
    #[test]
    fn held_steps_are_never_begun() {
        assert!(plan("held").holds("svc[x]").is_some());
        for action in ["change", "remove", "refresh", "unknown"] {
            assert!(plan(action).holds("svc[x]").is_none(), "{action}");
        }
        assert!(plan("held").holds("svc[y]").is_none());
        let found = plan("held").admit("svc[x]", RunPolicy::State, differs("state"));
        assert!(matches!(found, CheckResult::Differs(_)));
    }
}
