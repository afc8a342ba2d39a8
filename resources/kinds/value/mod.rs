//! `value`: a literal that other resources receive, also joined or converted from received values; changes nothing.
//!
//! Reading order: this file (literals), `combine.rs` (conversions).

pub(super) mod combine;

use crate::change::CheckResult;
use crate::check_request::{Answer, CheckRequest};
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::host::Host;
use crate::kind::KindSpec;
use crate::resource::{Resource, Traits};
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "value",
    collectible: true,
    doc: "Provides values to other resources, each under the name of its type. A received value can be joined, taken out of JSON, and converted to another type.",
    fields: &[
        FieldSpec::new("text", FieldType::Text, "String; may be a template of other values.").listable()
            .mode(FieldMode::Value)
            .receives(Receives::Shown),
        FieldSpec::new("bool", FieldType::Bool, "Boolean.").listable().receives(Receives::Shown),
        FieldSpec::new("int", FieldType::Int, "Integer.").listable().receives(Receives::Shown),
        FieldSpec::new("float", FieldType::Float, "A number.").listable().receives(Receives::Shown),
        FieldSpec::new("texts", FieldType::Texts, "List of strings.").listable()
            .mode(FieldMode::Value)
            .receives(Receives::Shown),
        FieldSpec::new(
            "separator",
            FieldType::Text,
            "Joins `texts` with this text between them, and sends the result as `text`.",
        )
        .mode(FieldMode::Value)
        .example(",")
        .conflicts_with(&["text"])
        .receives(Receives::Shown),
        FieldSpec::new(
            "from",
            FieldType::Text,
            "Text that is converted; needs `convert`. Conversion removes white space around the text.",
        )
        .mode(FieldMode::Value)
        .example("8080")
        .conflicts_with(&["text", "bool", "int", "float", "texts"])
        .receives(Receives::Shown),
        FieldSpec::new(
            "convert",
            FieldType::Choice(&["text", "bool", "int", "float", "texts"]),
            "Type that `from` is converted to; the result is sent under the name of the type. bool: true, yes, on and 1, or their opposites. texts: the items of a JSON list, or the lines.",
        ).receives(Receives::Shown),
        FieldSpec::new(
            "field",
            FieldType::Text,
            "Keys down to a value in `from`, which is read as JSON or YAML: server.port. A number is a position in a list, counted from 0.",
        )
        .mode(FieldMode::Value)
        .example("server.port")
        .receives(Receives::Shown),
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
    let given = match combine::read(&mut fields)? {
        Some(conversion) => return Ok(Arc::new(conversion)),
        None => literals(&mut fields),
    };
    let separator = fields.text("separator");
    if separator.is_some() && !given.iter().any(|(key, _)| *key == "texts") {
        let hint = "set texts, or omit separator";
        return Err(vec![Invalid::field("separator", "there are no `texts` to join").hint(hint)]);
    }
    let joined = separator.and_then(|it| combine::join_texts(&given, &it));
    let given: Sent = given.into_iter().chain(joined.map(|text| ("text", text))).collect();
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
        Traits::confined_command()
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
}
