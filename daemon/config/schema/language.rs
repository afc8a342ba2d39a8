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
                "default": described("The value if none is given.", json!({})),
                "required": described(
                    "False makes the value optional. Default: true.",
                    json!({"type": "boolean"}),
                ),
                "pattern": described(
                    "A regular expression that matches the whole string.",
                    json!({"type": "string"}),
                ),
                "min": described(
                    "The smallest number, length of a string, or count of items.",
                    json!({"type": "number"}),
                ),
                "max": described(
                    "The largest number, length of a string, or count of items.",
                    json!({"type": "number"}),
                ),
                "choices": described("The allowed values.", json!({"type": "array"})),
                "doc": described("One line about the value, for `explain MODULE_DIR`.", json!({"type": "string"})),
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
                "for_each": refers("for_each", "One instance for each item."),
                "when": refers("condition", "A condition, without `${ }`, for the whole instance."),
                "meta": refers("meta", "Metaparams: the defaults of each resource of the instance."),
                "after": refers("targets", "Resources that each resource of the instance comes after."),
                "before": refers("targets", "Resources that come after each resource of the instance."),
                "notify": refers("targets", "Resources that a change of the instance refreshes."),
                "subscribe": refers("targets", "Resources whose change refreshes the instance."),
            },
            "required": ["use"],
            "additionalProperties": false,
        }),
    );
}

/// Returns a reference to a definition, with a description.
fn refers(definition: &str, about: &str) -> Value {
    json!({"$ref": format!("#/definitions/{definition}"), "description": about})
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
                        "properties": {
                            "file": described("The path, relative to the graph file.", json!({"type": "string"})),
                            "optional": described("True if the file may be absent. Default: false.", json!({"type": "boolean"})),
                        },
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
                            "that": refers("condition", "The condition that must hold."),
                            "message": described("The message if the condition is false.", json!({"type": ["string", "number", "boolean"]})),
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
        "file": described("A path or a glob, relative to this file.", json!({"type": "string"})),
        "when": refers("condition", "A condition, without `${ }`, for each resource of the file."),
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
