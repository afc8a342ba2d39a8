//! Nothing is done that was not planned.

use super::{Action, Plan, Step};
use crate::driver::Guard;
use crate::driver::status::Differing;
use steadfast_resources::{Change, Trouble, Verdict};

const HINT: &str = "the host is not as it was when this was planned: plan again";

impl Guard for Plan {
    fn admit(&self, identity: &str, verdict: Verdict) -> Verdict {
        let Verdict::Differs(change) = verdict else { return verdict };
        match self.objection(identity, &change) {
            None => Verdict::Differs(change),
            Some(what) => {
                Verdict::Unknown(Trouble::new(format!("not as planned: {what}")).hint(HINT))
            }
        }
    }
}

impl Plan {
    /// What of a change was not planned.
    fn objection(&self, identity: &str, change: &Change) -> Option<String> {
        let found: Vec<Differing> = change.differences.iter().map(Differing::from).collect();
        let Some(step) = self.step(identity) else {
            return Some(format!("it was as declared, and by now differs: {}", names(&found)));
        };
        match step.action {
            // What comes of the changes before it: the plan has said that it does not know.
            Action::Unknown | Action::Refresh | Action::Held => None,
            Action::Change | Action::Remove => step.objection(&found, change.seal),
        }
    }
}

impl Step {
    /// What was found now and was not then. Less than then is no objection: a part of it is done.
    fn objection(&self, found: &[Differing], seal: u64) -> Option<String> {
        for one in found {
            let planned = self.differences.iter().find(|planned| planned.aspect == one.aspect);
            match planned {
                _ if self.differences.contains(one) => {}
                Some(planned) => return Some(moved(planned, one)),
                None => {
                    return Some(format!(
                        "{}: it was as declared, and is {}",
                        one.aspect, one.from
                    ));
                }
            }
        }
        let hidden = self.seal != 0 && seal != 0 && self.seal != seal;
        hidden.then(|| "content: what is there was changed since".to_owned())
    }
}

/// One aspect that differs otherwise than it did.
pub(super) fn moved(planned: &Differing, found: &Differing) -> String {
    let aspect = &planned.aspect;
    if planned.from != found.from {
        return format!("{aspect}: it was {}, and is {}", word(&planned.from), word(&found.from));
    }
    if planned.to != found.to {
        return format!("{aspect}: to become {}, and now {}", word(&planned.to), word(&found.to));
    }
    format!("{aspect}: what is there was changed since")
}

fn word(text: &str) -> &str {
    if text.is_empty() { "not there" } else { text }
}

pub(super) fn names(aspects: &[Differing]) -> String {
    let names: Vec<&str> = aspects.iter().map(|one| one.aspect.as_str()).collect();
    names.join(", ")
}
