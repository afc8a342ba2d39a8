//! A resource with several forms on the host, of which each check chooses one.

use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::footprint::Footprint;
use crate::host::Host;
use crate::permit::Permit;
use crate::resource::{Resource, Traits};
use std::fmt;
use std::sync::Arc;

/// A function that chooses a form by its position, from the present host.
pub(crate) type Choose = dyn Fn(&Host) -> Result<usize, Failure> + Send + Sync;

/// A resource with several forms, for example one file of two that distributions use for the same purpose.
///
/// The forms must have equal traits, and must not block longer than a file is read.
pub(crate) struct Alternative {
    forms: Vec<Arc<dyn Resource>>,
    choose: Box<Choose>,
}

/// The premise of a change: the chosen form, and its own change.
struct Premise {
    form: usize,
    change: Box<dyn std::any::Any + Send>,
}

impl fmt::Debug for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alternative").field("forms", &self.forms).finish_non_exhaustive()
    }
}

impl Alternative {
    /// Makes a resource of at least one form.
    pub(crate) fn new(forms: Vec<Arc<dyn Resource>>, choose: Box<Choose>) -> Self {
        Self { forms, choose }
    }

    fn chosen(&self, host: &Host) -> Result<(usize, &Arc<dyn Resource>), Failure> {
        let number = (self.choose)(host)?;
        let form = self.forms.get(number).ok_or_else(|| Failure::new("no form fits this host"))?;
        Ok((number, form))
    }
}

impl Resource for Alternative {
    fn footprint(&self) -> Footprint {
        let forms = self.forms.iter().map(|form| form.footprint());
        let all = forms.reduce(Footprint::and).unwrap_or_default();
        Footprint { grouping: None, ..all }
    }

    fn traits(&self) -> Traits {
        self.forms.first().map(|form| form.traits()).unwrap_or_default()
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            let (number, form) = match self.chosen(host) {
                Ok(chosen) => chosen,
                Err(failure) => return CheckResult::Unknown(failure),
            };
            match form.check(host, ask).await {
                CheckResult::Differs(change) => {
                    let premise = Premise { form: number, change: change.premise };
                    CheckResult::Differs(Change { premise: Box::new(premise), ..change })
                }
                other => other,
            }
        })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let Change { differences, destructive, premise_digest, creates, replaces, premise } =
                change;
            let changed = || Outcome::Failed {
                failure: Failure::new("the object changed since the check").passing(),
                touched: false,
            };
            let Ok(premise) = premise.downcast::<Premise>() else { return changed() };
            match self.chosen(host) {
                Ok((number, form)) if number == premise.form => {
                    let premise = premise.change;
                    let change = Change {
                        differences,
                        destructive,
                        premise_digest,
                        creates,
                        replaces,
                        premise,
                    };
                    form.apply(host, permit, change).await
                }
                Ok(_) => changed(),
                Err(failure) => Outcome::Failed { failure, touched: false },
            }
        })
    }
}
