//! The schemas of field types.

use serde_json::{Map, Value, json};
use steadfast_resources::{FieldSpec, FieldType, Receives};

/// The types of a scalar: a graph keeps scalars as they are written, so that `0644` is a text.
const SCALAR: [&str; 4] = ["string", "number", "boolean", "null"];

/// The pattern of a duration with units.
const DURATION: &str = r"^([0-9]+(\.[0-9]*)?(w|d|h|ms|m|s|us))+$|^[-+]?[0-9][0-9.eE+-]*$";

/// Adds the common definitions.
pub(super) fn define(definitions: &mut Map<String, Value>) {
    definitions.insert("text".into(), json!({"type": SCALAR}));
    definitions.insert(
        "value".into(),
        json!({
            "description": "A received value or a secret: \"kind[name].key\", {from, key}, {secret: NAME}, {world: KEY} or {from: params.NAME}.",
            "type": ["string", "object"],
            "properties": {
                "from": {"type": "string", "description": "The sender, or params.NAME of a secret parameter."},
                "key": {"type": "string", "description": "The name of the sent value."},
                "secret": {"type": "string", "description": "The name of a secret."},
                "world": {"type": "string", "description": "The key of a value in the world."},
                "default": {"type": SCALAR, "description": "The value while the sender is inactive."},
                "template": {"type": "string"},
                "values": {"type": "object"},
            },
            "additionalProperties": false,
        }),
    );
    definitions.insert(
        "targets".into(),
        json!({"type": ["array", "string", "null"], "items": {"type": ["string", "null"]}}),
    );
}

/// The schema of a text.
pub(super) fn text() -> Value {
    json!({"type": SCALAR})
}

/// The schema of a field, with its description, default and example.
pub(super) fn of_field(field: &FieldSpec) -> Value {
    if field.later {
        return json!({"not": {}, "description": format!("Not in this build: {}", field.doc)});
    }
    // An expression may be a part of a text.
    let of_type = of_type(field);
    let mut schema =
        if field.takes == FieldType::Text { of_type } else { with_expressions(of_type) };
    if let Some(keys) = schema.as_object_mut() {
        let mut description = field.doc.to_owned();
        if let Some(why) = field.ignored {
            description = format!("Has no effect: {why}");
        }
        if field.required {
            description.push_str(" Required.");
        }
        if let Some(default) = field.default {
            description.push_str(&format!(" Default: {default}."));
        }
        keys.insert("description".into(), description.into());
        if let Some(example) = field.example {
            keys.insert("examples".into(), json!([example]));
        }
    }
    schema
}

/// Adds the alternative of an expression: a string that begins with `${`.
pub(super) fn with_expressions(schema: Value) -> Value {
    let accepts_any_text = schema.get("type") == Some(&json!(SCALAR)) || schema == json!({});
    if accepts_any_text {
        return schema;
    }
    json!({
        "if": {"type": "string", "pattern": r"^\$\{"},
        "then": {"pattern": r"\}$"},
        "else": schema,
    })
}

/// The schema of the type alone.
fn of_type(field: &FieldSpec) -> Value {
    let item = json!({"type": SCALAR});
    let mut schema = match field.takes {
        FieldType::Text => text(),
        FieldType::Anything => return json!({}),
        FieldType::Bool => json!({"type": ["boolean", "null"]}),
        FieldType::Int => match field.range {
            Some((least, most)) => {
                json!({"type": ["integer", "null"], "minimum": least, "maximum": most})
            }
            None => json!({"type": ["integer", "null"]}),
        },
        FieldType::Float => json!({"type": ["number", "null"]}),
        FieldType::Texts if field.list_only => json!({"type": ["array", "null"], "items": item}),
        FieldType::Texts => {
            json!({"type": ["array", "string", "number", "boolean", "null"], "items": item})
        }
        FieldType::TextMap => json!({"type": ["object", "null"], "additionalProperties": item}),
        FieldType::Choice(words) => json!({"enum": choices(words)}),
        FieldType::Duration | FieldType::Seconds | FieldType::Milliseconds => {
            json!({"type": ["string", "number", "null"], "pattern": DURATION})
        }
    };
    if field.receives > Receives::Nothing {
        accept_received(field, &mut schema);
    }
    accept_parts(field, &mut schema);
    schema
}

/// Also accepts the map form of a field.
fn accept_parts(field: &FieldSpec, schema: &mut Value) {
    if let (false, Some(Value::Object(properties))) =
        (field.parts.is_empty(), schema.get_mut("properties"))
    {
        for (key, of) in field.parts {
            let part = if *key == "args" {
                json!({"type": "array", "items": {"type": SCALAR}})
            } else {
                with_expressions(json!({"type": ["boolean", "null"]}))
            };
            let mut part = part;
            part["description"] = format!("The field `{of}`.").into();
            properties.insert((*key).to_owned(), part);
        }
        schema["maxProperties"] = json!(field.parts.len());
    }
}

/// Returns the words with the values that YAML reads from them.
fn choices(words: &[&str]) -> Vec<Value> {
    let mut all: Vec<Value> = vec![Value::Null, json!("")];
    for word in words {
        all.push(json!(word));
        all.extend(serde_json::from_str::<Value>(word).ok().filter(|value| !value.is_object()));
    }
    all
}

/// The schema of `from` in a field: a secret that a module gets as a parameter.
fn param() -> Value {
    json!({
        "type": "string",
        "pattern": r"^params\.",
        "description": "A secret parameter of the module.",
    })
}

/// Also accepts the map forms of received values and secrets.
fn accept_received(field: &FieldSpec, schema: &mut Value) {
    let Some(keys) = schema.as_object_mut() else { return };
    if field.takes == FieldType::TextMap {
        let entry = json!({
            "type": ["string", "number", "boolean", "null", "object"],
            "properties": {"secret": {"type": "string"}, "from": param()},
            "additionalProperties": false,
            "minProperties": 1,
            "maxProperties": 1,
        });
        keys.insert("additionalProperties".into(), entry);
        return;
    }
    if let Some(Value::Array(types)) = keys.get_mut("type") {
        types.push("object".into());
        keys.insert(
            "properties".into(),
            json!({
                "secret": {"type": "string", "description": "The name of a secret."},
                "from": param(),
            }),
        );
        keys.insert("minProperties".into(), json!(1));
        keys.insert("maxProperties".into(), json!(1));
        keys.insert("additionalProperties".into(), json!(false));
    }
}
