//! The JSON Schema (draft-07) of graph files and modules, generated from the field tables, for editors.
//!
//! A schema must never refuse a graph that the reader accepts. Editors show the messages of the first failing keyword,
//! so that `anyOf` and `oneOf` are avoided. Reading order: this file (a file, edges), `fields` (the types of fields),
//! `resources` (the entries of a kind), `language` (variables, loops, modules), `world` (exports and collections).

mod fields;
mod language;
mod resources;
mod world;

use serde_json::{Map, Value, json};
use steadfast_resources::KindSet;

/// Returns the schema of graphs that use these kinds.
#[must_use]
pub fn json_schema(kinds: &KindSet) -> Value {
    let mut definitions = Map::new();
    fields::define(&mut definitions);
    resources::define(kinds, &mut definitions);
    language::define(&mut definitions);
    world::define(&mut definitions);
    let kinds_of_resources: Map<String, Value> = kinds
        .names()
        .map(|kind| {
            let items =
                json!({"$ref": format!("#/definitions/{}", resources::definition_name(kind))});
            (kind.to_owned(), json!({"type": ["array", "null"], "items": items}))
        })
        .collect();
    let mut properties = Map::new();
    for (name, schema) in language::file_keys() {
        properties.insert(name.to_owned(), schema);
    }
    properties.insert("graph".into(), described("The name of the graph.", fields::text()));
    properties.insert("comment".into(), described("A comment.", fields::text()));
    properties.insert("secrets".into(), secrets());
    properties.insert(
        "resources".into(),
        json!({
            "description": "The resources, by kind.",
            "type": ["object", "null"],
            "properties": kinds_of_resources,
            "additionalProperties": false,
        }),
    );
    properties.insert("edges".into(), edges());
    properties.insert("collect".into(), world::collect(kinds));
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "steadfast graph",
        "description": "A graph of resources, a file included by a graph, or a module.",
        "type": ["object", "null"],
        "properties": properties,
        "additionalProperties": false,
        "definitions": definitions,
    })
}

/// Adds a description to a schema.
fn described(text: &str, schema: Value) -> Value {
    match schema {
        Value::Object(mut keys) => {
            keys.insert("description".to_owned(), text.into());
            Value::Object(keys)
        }
        other => other,
    }
}

/// The top-level key `secrets`: names with their sources.
fn secrets() -> Value {
    json!({
        "description": "The secrets, by name, with their sources.",
        "type": ["object", "null"],
        "additionalProperties": {
            "type": "object",
            "properties": {
                "credential": {"type": "string", "description": "A credential of systemd."},
                "file": {"type": "string", "description": "A file; its mode must exclude others."},
                "command": {"type": ["array", "string"], "items": {"type": ["string", "number", "boolean"]}, "description": "A command whose output is the secret."},
            },
            "additionalProperties": false,
            "minProperties": 1,
            "maxProperties": 1,
        },
    })
}

/// The top-level key `edges`.
fn edges() -> Value {
    let end = json!({
        "type": ["string", "object"],
        "pattern": r"\[.*\]$|/\*$",
        "properties": {"kind": {"type": "string"}, "name": {"$ref": "#/definitions/text"}},
        "additionalProperties": false,
        "required": ["kind", "name"],
    });
    json!({
        "description": "Edges between resources.",
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "properties": {
                "name": {"$ref": "#/definitions/text"},
                "from": described("The resource that runs first.", end.clone()),
                "to": described("The resource that runs after `from`.", end),
                "notify": {"type": ["boolean", "null"], "description": "Refresh `to` when `from` changes."},
            },
            "additionalProperties": false,
            "required": ["from", "to"],
        },
    })
}
