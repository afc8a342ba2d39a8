//! `value`: a literal that other resources receive; always converged.

use crate::change::{Change, CheckResult, Outcome};
use crate::host::Host;
use crate::kind::{FieldSpec, FieldType, Fields, Invalid, KindSpec, Place, Value};
use crate::permit::Permit;
use crate::resource::{Answer, CheckRequest, ExecutorKind, Resource, Traits};
use crate::values::{Receives, SendSpec, Sent, SentValue};
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "value",
    doc: "Provides values to other resources, each under the name of its type.",
    fields: &[
        FieldSpec::new("text", FieldType::Text, "String; may be a template of other values.")
            .receives(Receives::Shown),
        FieldSpec::new("bool", FieldType::Bool, "Boolean.").receives(Receives::Shown),
        FieldSpec::new("int", FieldType::Int, "Integer.").receives(Receives::Shown),
        FieldSpec::new("float", FieldType::Float, "A number.").receives(Receives::Shown),
        FieldSpec::new("texts", FieldType::Texts, "List of strings.").receives(Receives::Shown),
    ],
    sends: &[
        SendSpec::new("text", FieldType::Text, "`text`."),
        SendSpec::new("bool", FieldType::Bool, "`bool`."),
        SendSpec::new("int", FieldType::Int, "`int`."),
        SendSpec::new("float", FieldType::Float, "`float`."),
        SendSpec::new("texts", FieldType::Texts, "`texts`."),
    ],
    example: "value:\n  - name: port\n    int: 8080\n",
    restore: None,
    build,
};

#[derive(Debug)]
struct Literal(Sent);

fn build(
    _name: &str,
    mut fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let given = literals(&mut fields);
    if given.is_empty() {
        let hint = "set text, bool, int, float or texts";
        return Err(vec![Invalid::whole("expected a value, found none").hint(hint)]);
    }
    Ok(Arc::new(Literal(given)))
}

/// Returns the values of the fields that are named after their types, ready to send.
pub(super) fn literals(fields: &mut Fields) -> Sent {
    let all = [
        ("text", fields.text("text").map(Value::Text)),
        ("bool", fields.bool("bool").map(Value::Bool)),
        ("int", fields.int("int").map(Value::Int)),
        ("float", fields.float("float").map(Value::Float)),
        ("texts", fields.texts("texts").map(Value::Texts)),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key, SentValue::Shown(value?)))).collect()
}

impl Resource for Literal {
    fn traits(&self) -> Traits {
        Traits { seat: ExecutorKind::Command, confined: true, ..Traits::default() }
    }

    fn sends(&self) -> Sent {
        self.0.clone()
    }

    fn sends_key(&self, key: &str) -> bool {
        self.0.iter().any(|(own, _)| *own == key)
    }

    fn check<'a>(&'a self, _host: &'a Host, _ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async { CheckResult::Same })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        _permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async { Outcome::Unchanged })
    }
}
