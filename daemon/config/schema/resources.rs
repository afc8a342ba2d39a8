//! The schemas of the entries of each kind.

use super::{described, fields, language, world};
use crate::config::ast::Relation;
use crate::config::checks::metaparams::{ALIASES, META};
use serde_json::{Map, Value, json};
use steadfast_resources::{FieldSpec, KindSet, KindSpec, Receives};

/// Adds a definition for the metaparams and for each kind.
pub(super) fn define(kinds: &KindSet, definitions: &mut Map<String, Value>) {
    let meta: Map<String, Value> = META.iter().map(keyed).collect();
    definitions.insert(
        "meta".into(),
        json!({"type": ["object", "null"], "properties": meta, "additionalProperties": false}),
    );
    for spec in kinds.names().filter_map(|kind| kinds.find(kind)) {
        definitions.insert(definition_name(spec.kind), of_kind(spec));
    }
}

/// Returns the name of a kind's definition, which must hold no `:` and no `/`.
pub(super) fn definition_name(kind: &str) -> String {
    format!("kind_{}", kind.replace([':', '/'], "_"))
}

fn keyed(field: &FieldSpec) -> (String, Value) {
    (field.name.to_owned(), fields::of_field(field))
}

fn of_kind(spec: &KindSpec) -> Value {
    let mut properties: Map<String, Value> = Map::new();
    properties.insert("name".into(), described("The name of the resource.", fields::text()));
    properties
        .insert("meta".into(), json!({"$ref": "#/definitions/meta", "description": "Metaparams."}));
    properties.insert(ALIASES.name.into(), fields::of_field(&ALIASES));
    for relation in Relation::NAMES {
        properties.insert(
            relation.to_owned(),
            json!({"$ref": "#/definitions/targets", "description": "Resources, each written kind[name]."}),
        );
    }
    if spec.fields.iter().any(|field| field.receives > Receives::Nothing) {
        properties.insert(
            "recv".into(),
            json!({
                "description": "Received values, by field.",
                "type": ["object", "null"],
                "additionalProperties": {"$ref": "#/definitions/value"},
            }),
        );
        if let Some(field) = spec.template_field() {
            // A template has keys of its own there.
            let content = json!({
                "allOf": [{"$ref": "#/definitions/value"}],
                "properties": {"template": false, "values": false},
            });
            properties["recv"]["properties"] = json!({field.name: content});
        }
    }
    for (name, schema) in language::resource_keys() {
        properties.insert(name.to_owned(), schema);
    }
    properties.insert("export".into(), world::export());
    if spec.template_field().is_some() {
        for (name, schema) in language::template_keys() {
            properties.insert(name.to_owned(), schema);
        }
    }
    for field in spec.fields {
        properties.extend([keyed(field)]);
    }
    let mut schema = json!({
        // An entry may be a name alone.
        "type": ["object", "string"],
        "description": spec.doc,
        "properties": properties,
        "additionalProperties": false,
        "if": {"required": ["for_each"]},
        "else": {"required": ["name"]},
    });
    let required: Vec<&str> = spec
        .fields
        .iter()
        .filter(|field| field.required && field.receives == Receives::Nothing)
        .map(|field| field.name)
        .collect();
    let dependencies = exclusions(spec);
    if let Some(keys) = schema.as_object_mut() {
        if !required.is_empty() {
            keys.insert("required".into(), json!(required));
        }
        if !dependencies.is_empty() {
            keys.insert("dependencies".into(), Value::Object(dependencies));
        }
    }
    schema
}

/// Returns the fields that exclude others: with the one, only an empty other is allowed.
fn exclusions(spec: &KindSpec) -> Map<String, Value> {
    let excluding = spec.fields.iter().filter(|field| !field.conflicts_with.is_empty());
    excluding
        .map(|field| {
            let others: Map<String, Value> = field
                .conflicts_with
                .iter()
                .map(|other| {
                    let message = format!("`{}` and `{other}` exclude each other", field.name);
                    ((*other).to_owned(), json!({"type": "null", "errorMessage": message}))
                })
                .collect();
            // An empty field excludes nothing.
            let given = json!({"properties": {field.name: {"not": {"type": "null"}}}});
            (
                field.name.to_owned(),
                json!({"if": given, "then": {"properties": Value::Object(others)}}),
            )
        })
        .collect()
}
