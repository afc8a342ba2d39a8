//! The schemas of the keys of the graph language.

use super::described;
use serde_json::{Map, Value, json};

/// Adds the definitions of conditions, loops, modules and declarations.
pub(super) fn define(definitions: &mut Map<String, Value>) {
    definitions.insert(
        "condition".into(),
        json!({
            "type": ["string", "boolean", "array"],
            "not": {"type": "string", "pattern": r"^\s*\$\{"},
            "items": {"type": ["string", "boolean"]},
        }),
    );
    definitions.insert(
        "for_each".into(),
        json!({
            "type": ["string", "array", "object"],
            "not": {"type": "string", "pattern": r"^\s*\$\{"},
            "required": ["in"],
            "additionalProperties": false,
            "properties": {
                "in": described("A list or map, or the name of one.", json!({"type": ["string", "array", "object"]})),
                "key": described("The field of each map that is the key.", json!({"type": "string"})),
                "item": {
                    "description": "The declaration of the items.",
                    "type": "object",
                    "additionalProperties": {"$ref": "#/definitions/declaration"},
                },
            },
        }),
    );
    definitions.insert(
        "declaration".into(),
        json!({
            "type": "object",
            "required": ["type"],
            "properties": {
                "type": described(
                    "string, int, float, bool, list, map, secret, or `list of TYPE`.",
                    json!({"type": "string", "pattern": "^(list of )*(string|int|float|bool|list|map|secret)$"}),
                ),
                "default": {},
                "required": {"type": "boolean"},
                "pattern": {"type": "string"},
                "min": {"type": "number"},
                "max": {"type": "number"},
                "choices": {"type": "array"},
                "doc": {"type": "string"},
            },
            "additionalProperties": false,
        }),
    );
    definitions.insert(
        "module_use".into(),
        json!({
            "type": "object",
            "properties": {
                "use": described("The folder of the module.", json!({"type": "string"})),
                "as": described("The name of the instance.", json!({"type": ["string", "number"]})),
                "with": described("The parameters.", json!({"type": ["object", "null"]})),
                "for_each": {"$ref": "#/definitions/for_each"},
                "when": {"$ref": "#/definitions/condition"},
                "meta": {"$ref": "#/definitions/meta"},
                "after": {"$ref": "#/definitions/targets"},
                "before": {"$ref": "#/definitions/targets"},
                "notify": {"$ref": "#/definitions/targets"},
                "subscribe": {"$ref": "#/definitions/targets"},
            },
            "required": ["use"],
            "additionalProperties": false,
        }),
    );
}

/// Returns the keys of a graph or module file that belong to the language.
pub(super) fn file_keys() -> Vec<(&'static str, Value)> {
    vec![
        ("vars", described("Variables.", json!({"type": ["object", "null"]}))),
        (
            "vars_files",
            described(
                "Files of variables, in ascending precedence.",
                json!({
                    "type": ["string", "array", "null"],
                    "items": {
                        "type": ["string", "object"],
                        "properties": {"file": {"type": "string"}, "optional": {"type": "boolean"}},
                        "required": ["file"],
                        "additionalProperties": false,
                    },
                }),
            ),
        ),
        ("include", described("Files with more resources.", include_schema())),
        (
            "modules",
            described(
                "Uses of modules.",
                json!({"type": ["array", "null"], "items": {"$ref": "#/definitions/module_use"}}),
            ),
        ),
        (
            "assert",
            described(
                "Conditions that must hold.",
                json!({
                    "type": ["array", "null"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "that": {"$ref": "#/definitions/condition"},
                            "message": {"type": ["string", "number", "boolean"]},
                        },
                        "required": ["that", "message"],
                        "additionalProperties": false,
                    },
                }),
            ),
        ),
        ("module", described("The name of the module.", json!({"type": "string"}))),
        (
            "params",
            described(
                "The parameters of the module.",
                json!({"type": ["object", "null"], "additionalProperties": {"$ref": "#/definitions/declaration"}}),
            ),
        ),
        (
            "exports",
            described(
                "The resources and probes that a user of the module may name.",
                json!({
                    "type": ["object", "array", "string", "null"],
                    "additionalProperties": {"type": "string"},
                    "items": {"type": "string"},
                }),
            ),
        ),
    ]
}

/// An include is a file, a glob, or a map with a condition; a list has several.
fn include_schema() -> Value {
    let keys = json!({
        "file": {"type": "string"},
        "when": {"$ref": "#/definitions/condition"},
    });
    let item = json!({
        "type": ["string", "object"],
        "properties": keys,
        "required": ["file"],
        "additionalProperties": false,
    });
    json!({
        "type": ["string", "array", "object", "null"],
        "items": item,
        "properties": keys,
        "required": ["file"],
        "additionalProperties": false,
    })
}

/// Returns the keys of each resource that belong to the language.
pub(super) fn resource_keys() -> Vec<(&'static str, Value)> {
    vec![
        (
            "when",
            json!({"$ref": "#/definitions/condition", "description": "A condition, without `${ }`."}),
        ),
        (
            "for_each",
            json!({"$ref": "#/definitions/for_each", "description": "One resource for each item."}),
        ),
        (
            "labels",
            described(
                "Labels for selections.",
                json!({"type": ["object", "null"], "additionalProperties": {"type": ["string", "number", "boolean"]}}),
            ),
        ),
    ]
}

/// Returns the keys of a template, for the kinds with a text as content.
pub(super) fn template_keys() -> Vec<(&'static str, Value)> {
    vec![
        (
            "template",
            json!({
                "description": "The file of the template, or {text: …}.",
                "type": ["string", "object"],
                "properties": {"text": {"type": "string"}},
                "additionalProperties": false,
            }),
        ),
        (
            "with",
            described("Names and values of the template.", json!({"type": ["object", "null"]})),
        ),
        (
            "values",
            described(
                "Received values and secrets of the template.",
                json!({"type": ["object", "null"], "additionalProperties": {"$ref": "#/definitions/value"}}),
            ),
        ),
    ]
}
