//! The schemas of the keys of the world: `export` of a resource, and the top-level key `collect`.

use super::{described, fields};
use serde_json::{Map, Value, json};
use steadfast_resources::KindSet;

/// Adds the definition of `export` of a resource.
pub(super) fn define(definitions: &mut Map<String, Value>) {
    definitions.insert(
        "export".into(),
        json!({
            "type": ["boolean", "object", "null"],
            "properties": {"apply": {"type": ["boolean", "null"]}},
            "additionalProperties": false,
        }),
    );
}

/// Returns the schema of `export` of a resource.
pub(super) fn export() -> Value {
    json!({
        "$ref": "#/definitions/export",
        "description": "Offer the resource to other hosts; {apply: true} applies it here too.",
    })
}

/// Returns the schema of `collect`, a list of collections.
pub(super) fn collect(kinds: &KindSet) -> Value {
    let texts = || json!({"type": ["array", "string", "number", "boolean", "null"], "items": fields::text()});
    let kind = json!({"enum": kinds.names().collect::<Vec<_>>()});
    let set = json!({"type": "object", "additionalProperties": fields::text()});
    let below = "The folder in which collected files lie.";
    json!({
        "description": "Collections of resources that other hosts export.",
        "type": ["array", "null"],
        "items": {
            "type": "object",
            "properties": {
                "kind": described("The kind of the resources.", kind),
                "from": described("Patterns of the exporting hosts. Default: *.", texts()),
                "fields": described("The fields that come from the exporters.", texts()),
                "set": described("The fields that this host sets; ${host} and ${name} are replaced.", set),
                "below": described(below, fields::text()),
                "pattern": described("mgmt's word for `below`, with `fields: [path, content]`.", fields::text()),
                "splay": described("The time over which hosts take over a change, such as 5m, at most 1h: each host waits for a part of it.", fields::text()),
                "meta": {"$ref": "#/definitions/meta"},
            },
            "required": ["kind"],
            "additionalProperties": false,
        },
    })
}
