//! The JSON Schema of the interface.

use super::{Data, Event, PROTOCOL, PlanReport, Principal, ReplyLine, RequestLine};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Returns the JSON Schema (draft-07) of all requests, replies, events and reports.
#[must_use]
pub fn api_schema() -> Value {
    let mut generator = SchemaSettings::draft07().into_generator();
    let parts = [
        ("request", generator.subschema_for::<RequestLine>()),
        ("reply", generator.subschema_for::<ReplyLine>()),
        ("data", generator.subschema_for::<Data>()),
        ("event", generator.subschema_for::<Event>()),
        ("plan", generator.subschema_for::<PlanReport>()),
        ("principal", generator.subschema_for::<Principal>()),
    ];
    let properties: serde_json::Map<String, Value> =
        parts.into_iter().map(|(name, schema)| (name.to_owned(), schema.into())).collect();
    let definitions = generator.take_definitions(true);
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": format!("The interface of steadfast, protocol {PROTOCOL}"),
        "description": "A request is one `request` line; a reply consists of `reply` lines.",
        "type": "object",
        "properties": properties,
        "definitions": definitions,
    })
}
