//! The JSON text in which sent values are stored.

use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use steadfast_resources::{Encrypted, KeyedHash, Secret, Value};

/// All sent values of a resource, as stored.
#[derive(Debug)]
pub(in crate::driver) struct Written {
    pub(in crate::driver) definition: u64,
    pub(in crate::driver) values: BTreeMap<String, One>,
    /// No receiver can have got a value.
    pub(in crate::driver) is_unreached: bool,
}

/// One stored value.
#[derive(Debug)]
pub(in crate::driver) struct One {
    pub(in crate::driver) seal: KeyedHash,
    pub(in crate::driver) body: Body,
}

/// The stored content beside the hash of a value.
#[derive(Clone, Debug)]
pub(in crate::driver) enum Body {
    Shown(Value),
    Encrypted(Encrypted),
    /// A clear text secret, as older versions stored it.
    Clear(Secret),
    /// A value beyond the maximum length; the content was not stored.
    TooLong,
    /// No content.
    Hashed,
}

impl Written {
    pub(in crate::driver) fn to_text(&self) -> String {
        let value = |(name, value): (&String, &One)| {
            let mut json = match &value.body {
                Body::Shown(value) => shown(value),
                Body::Encrypted(secret) => json!({"encrypted": secret.to_hex()}),
                Body::Clear(secret) => json!({"secret": secret.reveal()}),
                Body::TooLong => json!({"too_long": true}),
                Body::Hashed => json!({}),
            };
            json["hash"] = value.seal.to_hex().into();
            (name.clone(), json)
        };
        let values: Map<String, Json> = self.values.iter().map(value).collect();
        let mut json = json!({"definition": self.definition, "values": values});
        if self.is_unreached {
            json["unreached"] = true.into();
        }
        json.to_string()
    }

    pub(in crate::driver) fn parse(text: &str) -> Option<Self> {
        let json: Json = serde_json::from_str(text).ok()?;
        let value = |(name, json): (&String, &Json)| {
            let seal = KeyedHash::from_hex(json["hash"].as_str()?)?;
            Some((name.clone(), One { seal, body: body(json)? }))
        };
        let values = json["values"].as_object()?.iter().map(value).collect::<Option<_>>()?;
        let is_unreached = json["unreached"] == true;
        Some(Self { definition: json["definition"].as_u64()?, values, is_unreached })
    }
}

/// Reads the content of a value; `None` for an invalid text.
fn body(json: &Json) -> Option<Body> {
    if let Some(encrypted) = json.get("encrypted") {
        return Encrypted::from_hex(encrypted.as_str()?).map(Body::Encrypted);
    }
    if json["too_long"].as_bool() == Some(true) {
        return Some(Body::TooLong);
    }
    let clear = json["secret"].as_str().map(|text| Body::Clear(text.into()));
    Some(clear.or_else(|| read(json).map(Body::Shown)).unwrap_or(Body::Hashed))
}

fn shown(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({"text": text}),
        Value::Bool(truth) => json!({"bool": truth}),
        Value::Int(number) => json!({"int": number}),
        // As bits, since JSON cannot express every number.
        Value::Float(number) => json!({"float": number.to_bits()}),
        Value::Texts(texts) => json!({"texts": texts}),
        Value::TextMap(_) | Value::Secret(_) | Value::Sealed(_) => json!({}),
    }
}

fn read(json: &Json) -> Option<Value> {
    let text = |json: &Json| json.as_str().map(str::to_owned);
    let float = json["float"].as_u64().map(|bits| Value::Float(f64::from_bits(bits)));
    let texts = || json["texts"].as_array()?.iter().map(text).collect::<Option<Vec<_>>>();
    text(&json["text"])
        .map(Value::Text)
        .or_else(|| json["bool"].as_bool().map(Value::Bool))
        .or_else(|| json["int"].as_i64().map(Value::Int))
        .or(float)
        .or_else(|| texts().map(Value::Texts))
}
