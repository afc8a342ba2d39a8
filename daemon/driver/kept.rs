//! Values in the form in which they are kept: secrets as keyed hashes, unless they are declared as `saved`.

use crate::store::Hidden;
use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use steadfast_resources::{Datum, Seal, SealKey, Sent, Value};

/// What a resource has sent, as one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Snapshot {
    /// Under which definition.
    pub(super) definition: u64,
    /// By key.
    pub(super) values: BTreeMap<String, OneValue>,
}

/// One value.
#[derive(Clone, Debug)]
pub(super) struct OneValue {
    pub(super) seal: Seal,
    /// None where only the hash was kept.
    pub(super) datum: Option<Datum>,
}

/// They are the same value if their hashes are.
impl PartialEq for OneValue {
    fn eq(&self, other: &Self) -> bool {
        self.seal == other.seal && self.datum.is_some() == other.datum.is_some()
    }
}

/// What a good run of a receiver was made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taken {
    /// The values.
    pub(super) origins: Seal,
    /// What they made, by slot.
    pub(super) fields: HashMap<String, Seal>,
}

/// What of this cannot be read, if anything.
#[must_use]
pub fn unreadable(sent: Option<&Hidden>, taken: Option<&str>) -> Option<&'static str> {
    let sent = sent.is_none_or(|Hidden(text)| Snapshot::parse(text).is_some());
    let taken = taken.is_none_or(|text| Taken::parse(text).is_some());
    match (sent, taken) {
        (true, true) => None,
        (false, _) => Some("what it has sent cannot be read"),
        (true, false) => Some("what it has received cannot be read"),
    }
}

/// The same without secrets that are declared as `saved`: of those, as of others, only the keyed hash.
#[must_use]
pub fn without_secrets(sent: &Hidden) -> Option<Hidden> {
    let mut snapshot = Snapshot::parse(&sent.0)?;
    for value in snapshot.values.values_mut() {
        value.datum.take_if(|datum| matches!(datum, Datum::Secret { .. }));
    }
    Some(Hidden(snapshot.to_text().into()))
}

/// The same with the secrets that are kept, where their hashes are those of the ones that were left out.
#[must_use]
pub fn with_secrets(sent: &Hidden, kept: &Hidden) -> Option<Hidden> {
    let (mut snapshot, kept) = (Snapshot::parse(&sent.0)?, Snapshot::parse(&kept.0)?);
    for (name, value) in snapshot.values.iter_mut().filter(|(_, value)| value.datum.is_none()) {
        let same = kept.values.get(name).filter(|kept| kept.seal == value.seal);
        value.datum = same.and_then(|kept| kept.datum.clone());
    }
    Some(Hidden(snapshot.to_text().into()))
}

impl Snapshot {
    pub(super) fn new(definition: u64, sent: Sent, key: &SealKey) -> Self {
        let value = |datum: Datum| OneValue { seal: datum.seal(key), datum: Some(datum) };
        let values = sent.into_iter().map(|(name, datum)| (name.to_owned(), value(datum)));
        Self { definition, values: values.collect() }
    }

    pub(super) fn to_text(&self) -> String {
        let value = |(name, value): (&String, &OneValue)| {
            let mut json = match &value.datum {
                Some(Datum::Shown(value)) => shown(value),
                Some(Datum::Secret { secret, saved: true }) => json!({"secret": secret.reveal()}),
                Some(Datum::TooLong) => json!({"too_long": true}),
                Some(Datum::Secret { saved: false, .. }) | None => json!({}),
            };
            json["hash"] = value.seal.to_hex().into();
            (name.clone(), json)
        };
        let values: Map<String, Json> = self.values.iter().map(value).collect();
        json!({"definition": self.definition, "values": values}).to_string()
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let json: Json = serde_json::from_str(text).ok()?;
        let value = |(name, json): (&String, &Json)| {
            let seal = Seal::from_hex(json["hash"].as_str()?)?;
            let secret = json["secret"].as_str();
            let secret = secret.map(|text| Datum::Secret { secret: text.into(), saved: true });
            let too_long = json["too_long"].as_bool().filter(|is| *is).map(|_| Datum::TooLong);
            let datum = secret.or(too_long).or_else(|| read(json).map(Datum::Shown));
            Some((name.clone(), OneValue { seal, datum }))
        };
        let values = json["values"].as_object()?.iter().map(value).collect::<Option<_>>()?;
        Some(Self { definition: json["definition"].as_u64()?, values })
    }
}

impl Taken {
    pub(super) fn to_text(&self) -> String {
        let fields: BTreeMap<&String, String> =
            self.fields.iter().map(|(name, seal)| (name, seal.to_hex())).collect();
        json!({"origins": self.origins.to_hex(), "fields": fields}).to_string()
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let json: Json = serde_json::from_str(text).ok()?;
        let seal = |json: &Json| Seal::from_hex(json.as_str()?);
        let fields = json["fields"].as_object()?.iter();
        let fields = fields.map(|(name, hash)| Some((name.clone(), seal(hash)?)));
        Some(Self { origins: seal(&json["origins"])?, fields: fields.collect::<Option<_>>()? })
    }
}

fn shown(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({"text": text}),
        Value::Bool(truth) => json!({"bool": truth}),
        Value::Int(number) => json!({"int": number}),
        // As bits: not every number can be written in JSON.
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

#[cfg(test)]
mod tests {
    use super::{Snapshot, Taken};
    use steadfast_resources::{Datum, SealKey, Value};

    /// S-6: of a secret that is not saved, only its keyed hash is kept.
    #[test]
    fn what_is_kept_is_told_back() {
        let key = SealKey::new([3; 32]);
        let secret = |text: &str, saved| Datum::Secret { secret: text.into(), saved };
        let sent = vec![
            ("a", Datum::Shown(Value::Text("x".into()))),
            ("b", Datum::Shown(Value::Bool(true))),
            ("c", Datum::Shown(Value::Int(-7))),
            ("d", Datum::Shown(Value::Float(f64::INFINITY))),
            ("e", Datum::Shown(Value::Texts(vec!["x".into(), "y".into()]))),
            ("f", secret("kept", true)),
            ("g", secret("canary", false)),
            ("h", Datum::TooLong),
        ];
        let snapshot = Snapshot::new(u64::MAX, sent.clone(), &key);
        let text = snapshot.to_text();
        assert!(text.contains("kept") && !text.contains("canary"), "{text}");
        let again = Snapshot::parse(&text).unwrap();
        assert_eq!(again.definition, u64::MAX);
        for (name, datum) in sent {
            let value = &again.values[name];
            assert_eq!(value.seal, datum.seal(&key), "{name}");
            assert_eq!(value.datum.as_ref(), Some(&datum).filter(|_| name != "g"), "{name}");
        }
        let fields = [("content".to_owned(), key.seal(b"x"))].into();
        let taken = Taken { origins: key.seal(b"y"), fields };
        assert_eq!(Taken::parse(&taken.to_text()), Some(taken));
    }

    #[test]
    fn what_was_not_written_by_us_is_nothing() {
        for text in ["", "{}", "[]", r#"{"definition":1,"values":{"a":{"hash":"x"}}}"#] {
            assert!(Snapshot::parse(text).is_none() && Taken::parse(text).is_none(), "{text}");
        }
    }
}
