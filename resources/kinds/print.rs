//! `print`: prints a text once for each definition and again for each refresh.
//!
//! The text is the note of the outcome, which the driver writes among its own log lines.

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::host::Host;
use crate::kind::KindSpec;
use crate::permit::Permit;
use crate::resource::{ExecutorKind, Resource, RunPolicy, Traits};
use crate::secrets::escape::{printable, short};
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "print",
    collectible: true,
    doc: "Prints a message once, and again when notified.",
    fields: &[FieldSpec::new("msg", FieldType::Text, "Message; default: the name.")
        .listable()
        .mode(FieldMode::Value)
        .receives(Receives::Shown)],
    sends: &[],
    example: "print:\n  - name: hello\n    msg: the graph was applied\n",
    restore: None,
    build,
};

#[derive(Debug)]
struct Print {
    text: String,
}

#[expect(clippy::unnecessary_wraps, reason = "the shape that every kind has")]
fn build(
    name: &str,
    mut fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    Ok(Arc::new(Print { text: fields.text("msg").unwrap_or_else(|| name.to_owned()) }))
}

impl Resource for Print {
    fn traits(&self) -> Traits {
        Traits {
            executor: ExecutorKind::Command,
            repeat: RunPolicy::Once,
            confined: true,
            ..Traits::default()
        }
    }

    fn check<'a>(&'a self, _host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move { said(&ask, &self.text) })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async {
            if permit.check().is_err() {
                return Outcome::Interrupted;
            }
            Outcome::Changed(self.text.lines().map(|line| printable(line).into_owned()).collect())
        })
    }
}

/// Returns the check result of a kind that only prints or logs a text.
pub(super) fn said(ask: &CheckRequest, text: &str) -> CheckResult {
    if !ask.run && !ask.refresh {
        return CheckResult::Same;
    }
    let difference =
        Difference { aspect: "message", from: String::new(), to: short(text, 200), diff: None };
    CheckResult::Differs(Change::of(vec![difference]))
}
