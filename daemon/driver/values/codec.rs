//! Records of sent and received values: secrets are stored as keyed hashes, those with `saved: true` also encrypted
//! (B-26).

use super::format::{Body, One, Written};
use crate::store::OpaqueText;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use steadfast_resources::{Failure, Host, KeyedHash, Secret, Sent, SentValue, StateKey};

/// All values that a resource has sent.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::driver) struct SentRecord {
    /// The definition of the sender at that time.
    pub(in crate::driver) definition: u64,
    /// The values by key.
    pub(in crate::driver) values: BTreeMap<String, ValueRecord>,
    /// No receiver can have got a value: no run of one has begun since.
    pub(in crate::driver) is_unreached: bool,
}

/// One sent value.
#[derive(Clone, Debug)]
pub(in crate::driver) struct ValueRecord {
    pub(in crate::driver) seal: KeyedHash,
    /// The value; `None` if only the hash was stored or decryption has failed.
    pub(in crate::driver) datum: Option<SentValue>,
}

/// Two records are equal if their hashes are equal and both or neither have the value.
impl PartialEq for ValueRecord {
    fn eq(&self, other: &Self) -> bool {
        self.seal == other.seal && self.datum.is_some() == other.datum.is_some()
    }
}

/// The inputs of the last successful run of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::driver) struct ReceivedRecord {
    /// A hash of the sent values.
    pub(in crate::driver) origins: KeyedHash,
    /// The built inputs by slot.
    pub(in crate::driver) fields: HashMap<String, Field>,
    /// The copied source; `None` if nothing was copied or an older version did not record it.
    pub(in crate::driver) copied: Option<CopySource>,
    /// True if the receiver was interrupted and counts as done: nobody has seen the built inputs, and `fields` are
    /// older.
    pub(in crate::driver) unseen: bool,
}

/// The source of a copy, at the time of the copy.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::driver) struct CopySource {
    /// A hash of the metadata of the source.
    pub(in crate::driver) state: u64,
    /// A keyed hash of the content, which may be a secret.
    pub(in crate::driver) content: KeyedHash,
}

/// The built input of one slot.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::driver) struct Field {
    pub(in crate::driver) whole: KeyedHash,
    /// A hash of the single inputs; older versions did not record it.
    pub(in crate::driver) pieces: Option<KeyedHash>,
}

/// Returns a message if one of these stored texts cannot be read.
#[must_use]
pub fn unreadable(sent: Option<&OpaqueText>, taken: Option<&str>) -> Option<&'static str> {
    let sent = sent.is_none_or(|OpaqueText(text)| Written::parse(text).is_some());
    let taken = taken.is_none_or(|text| ReceivedRecord::parse(text).is_some());
    match (sent, taken) {
        (true, true) => None,
        (false, _) => Some("the stored sent values cannot be read"),
        (true, false) => Some("the stored received values cannot be read"),
    }
}

/// Returns two flags for a stored text: values were received; a source was copied.
#[must_use]
pub fn sorts(taken: &str) -> (bool, bool) {
    ReceivedRecord::parse(taken)
        .map_or((false, false), |it| (!it.fields.is_empty(), it.copied.is_some()))
}

/// Returns the record without encrypted secrets: only their keyed hashes stay.
#[must_use]
pub fn without_secrets(sent: &OpaqueText) -> Option<OpaqueText> {
    let mut written = Written::parse(&sent.0)?;
    for value in written.values.values_mut() {
        if matches!(value.body, Body::Encrypted(_) | Body::Clear(_)) {
            value.body = Body::Hashed;
        }
    }
    Some(OpaqueText(written.to_text().into()))
}

/// Returns the record with the encrypted secrets of `kept` added, as far as their hashes match.
#[must_use]
pub fn with_secrets(sent: &OpaqueText, kept: &OpaqueText) -> Option<OpaqueText> {
    let (mut written, kept) = (Written::parse(&sent.0)?, Written::parse(&kept.0)?);
    for (name, value) in &mut written.values {
        let same = kept.values.get(name).filter(|kept| kept.seal == value.seal);
        if let (Body::Hashed, Some(same)) = (&value.body, same) {
            value.body = same.body.clone();
        }
    }
    Some(OpaqueText(written.to_text().into()))
}

/// A decoded record. `in_clear` marks the old format with secrets in clear text.
pub(in crate::driver) struct Decoded {
    pub(in crate::driver) snapshot: SentRecord,
    pub(in crate::driver) in_clear: bool,
}

impl SentRecord {
    pub(in crate::driver) fn new(definition: u64, sent: Sent, key: &StateKey) -> Self {
        let value = |datum: SentValue| ValueRecord { seal: datum.seal(key), datum: Some(datum) };
        let values = sent.into_iter().map(|(name, datum)| (name.to_owned(), value(datum)));
        Self { definition, values: values.collect(), is_unreached: false }
    }

    /// Returns true if the record lacks a value that no receiver can have got.
    pub(in crate::driver) fn is_lost(&self) -> bool {
        self.is_unreached && self.values.values().any(|value| value.datum.is_none())
    }

    /// Returns true if the record has a secret that is stored only as a hash.
    pub(in crate::driver) fn has_unsaved(&self) -> bool {
        let is_unsaved =
            |one: &ValueRecord| matches!(one.datum, Some(SentValue::Secret { saved: false, .. }));
        self.values.values().any(is_unsaved)
    }

    /// Returns true if the record contains an encrypted value, which is bound to the name of its sender.
    pub(in crate::driver) fn is_bound(&self) -> bool {
        let is_saved =
            |one: &ValueRecord| matches!(one.datum, Some(SentValue::Secret { saved: true, .. }));
        self.values.values().any(is_saved)
    }

    /// Returns the text to store for this sender.
    ///
    /// # Errors
    ///
    /// A failure if a secret cannot be encrypted: no secret is written in clear text.
    pub(in crate::driver) fn to_text(
        &self,
        sender: &str,
        key: &StateKey,
        host: &Host,
    ) -> Result<String, Failure> {
        let write = |(name, value): (&String, &ValueRecord)| {
            let body = match &value.datum {
                Some(SentValue::Shown(value)) => Body::Shown(value.clone()),
                Some(SentValue::Secret { secret, saved: true }) => {
                    Body::Encrypted(key.encrypt(secret, &[sender, name], host)?)
                }
                Some(SentValue::TooLong) => Body::TooLong,
                Some(SentValue::Secret { saved: false, .. }) | None => Body::Hashed,
            };
            Ok((name.clone(), One { seal: value.seal.clone(), body }))
        };
        let values = self.values.iter().map(write).collect::<Result<_, Failure>>()?;
        let (definition, is_unreached) = (self.definition, self.is_unreached);
        Ok(Written { definition, values, is_unreached }.to_text())
    }

    /// Decodes a stored record of this sender. Values encrypted with another key, or modified, are decoded without
    /// their content.
    pub(in crate::driver) fn parse(text: &str, sender: &str, key: &StateKey) -> Option<Decoded> {
        let Written { definition, values, is_unreached } = Written::parse(text)?;
        let in_clear = values.values().any(|value| matches!(value.body, Body::Clear(_)));
        let saved = |secret: Secret| SentValue::Secret { secret, saved: true };
        let read = |(name, One { seal, body }): (String, One)| {
            let mut seal = seal;
            let datum = match body {
                Body::Shown(value) => Some(SentValue::Shown(value)),
                Body::Clear(secret) => {
                    // The hash may come from an older key; encryption needs the current key.
                    let datum = saved(secret);
                    seal = datum.seal(key);
                    Some(datum)
                }
                Body::Encrypted(secret) => key
                    .decrypt(&secret, &[sender, &name])
                    .map(saved)
                    // An older ciphertext may have been put back.
                    .filter(|datum| datum.has_seal(key, &seal)),
                Body::TooLong => Some(SentValue::TooLong),
                Body::Hashed => None,
            };
            (name, ValueRecord { seal, datum })
        };
        let values = values.into_iter().map(read).collect();
        Some(Decoded { snapshot: Self { definition, values, is_unreached }, in_clear })
    }
}

impl ReceivedRecord {
    /// Creates the record of an interrupted receiver that counts as done.
    pub(in crate::driver) fn unseen(origins: KeyedHash, before: Option<&Self>) -> Self {
        let fields = before.map(|before| before.fields.clone()).unwrap_or_default();
        let copied = before.and_then(|before| before.copied.clone());
        Self { origins, fields, copied, unseen: true }
    }

    pub(in crate::driver) fn to_text(&self) -> String {
        let by_name = |seal: fn(&Field) -> Option<&KeyedHash>| -> BTreeMap<&String, String> {
            let seals = self.fields.iter().filter_map(|(name, it)| Some((name, seal(it)?)));
            seals.map(|(name, seal)| (name, seal.to_hex())).collect()
        };
        let (fields, pieces) = (by_name(|it| Some(&it.whole)), by_name(|it| it.pieces.as_ref()));
        let mut json =
            json!({"origins": self.origins.to_hex(), "fields": fields, "pieces": pieces});
        if let Some(CopySource { state, content }) = &self.copied {
            json["copied"] = json!([state, content.to_hex()]);
        }
        if self.unseen {
            json["unseen"] = true.into();
        }
        json.to_string()
    }

    pub(in crate::driver) fn parse(text: &str) -> Option<Self> {
        let json: Json = serde_json::from_str(text).ok()?;
        let seal = |json: &Json| KeyedHash::from_hex(json.as_str()?);
        let fields = json["fields"].as_object()?.iter();
        let fields = fields.map(|(name, hash)| {
            let pieces = match json["pieces"].get(name) {
                Some(pieces) => Some(seal(pieces)?),
                None => None,
            };
            Some((name.clone(), Field { whole: seal(hash)?, pieces }))
        });
        let copied = match json.get("copied") {
            Some(both) => {
                Some(CopySource { state: both.get(0)?.as_u64()?, content: seal(both.get(1)?)? })
            }
            None => None,
        };
        let unseen = json["unseen"] == true;
        let (origins, fields) = (seal(&json["origins"])?, fields.collect::<Option<_>>()?);
        Some(Self { origins, fields, copied, unseen })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CopySource, Field, ReceivedRecord, SentRecord, unreadable, with_secrets, without_secrets,
    };
    use crate::store::OpaqueText;
    use steadfast_resources::{Host, SentValue, StateKey, Value};

    const SENDER: &str = "password[p]";

    fn secret(text: &str, saved: bool) -> SentValue {
        SentValue::Secret { secret: text.into(), saved }
    }

    fn hidden(text: &str) -> OpaqueText {
        OpaqueText(text.into())
    }

    /// Returns the stored text of a saved password.
    fn saved(text: &str, key: &StateKey) -> String {
        let snapshot = SentRecord::new(1, vec![("p", secret(text, true))], key);
        snapshot.to_text(SENDER, key, &Host::default()).unwrap()
    }

    fn known(text: &str, sender: &str, key: &StateKey) -> Option<SentValue> {
        SentRecord::parse(text, sender, key).unwrap().snapshot.values["p"].datum.clone()
    }

    /// S-6, B-26: a secret that is not saved is stored as a keyed hash only; a saved one is encrypted.
    #[test]
    fn stored_values_are_decoded() {
        let key = StateKey::new([3; 32]);
        let sent = vec![
            ("a", SentValue::Shown(Value::Text("x".into()))),
            ("b", SentValue::Shown(Value::Bool(true))),
            ("c", SentValue::Shown(Value::Int(-7))),
            ("d", SentValue::Shown(Value::Float(f64::INFINITY))),
            ("e", SentValue::Shown(Value::Texts(vec!["x".into(), "y".into()]))),
            ("f", secret("kept", true)),
            ("g", secret("canary", false)),
            ("h", SentValue::TooLong),
        ];
        let snapshot = SentRecord::new(u64::MAX, sent.clone(), &key);
        let text = snapshot.to_text(SENDER, &key, &Host::default()).unwrap();
        assert!(!text.contains("kept") && !text.contains("canary"), "{text}");
        let told = SentRecord::parse(&text, SENDER, &key).unwrap();
        assert!(!told.in_clear);
        assert_eq!(told.snapshot.definition, u64::MAX);
        for (name, datum) in sent {
            let value = &told.snapshot.values[name];
            assert_eq!(value.seal, datum.seal(&key), "{name}");
            assert_eq!(value.datum.as_ref(), Some(&datum).filter(|_| name != "g"), "{name}");
        }
        for pieces in [None, Some(key.seal(b"z"))] {
            let field = Field { whole: key.seal(b"x"), pieces };
            let fields = [("content".to_owned(), field)].into();
            let copied = Some(CopySource { state: u64::MAX, content: key.seal(b"v") });
            let taken = ReceivedRecord { origins: key.seal(b"y"), fields, copied, unseen: false };
            assert_eq!(ReceivedRecord::parse(&taken.to_text()).as_ref(), Some(&taken));
            let unseen = ReceivedRecord::unseen(key.seal(b"w"), Some(&taken));
            assert!(unseen.fields == taken.fields && unseen != taken);
            assert_eq!(ReceivedRecord::parse(&unseen.to_text()), Some(unseen));
        }
    }

    /// B-26: a record with clear text secrets is decoded and marked.
    #[test]
    fn values_stored_in_clear_text_are_read() {
        let key = StateKey::new([3; 32]);
        let hash = secret("old", true).seal(&key).to_hex();
        let text =
            format!(r#"{{"definition":1,"values":{{"p":{{"hash":"{hash}","secret":"old"}}}}}}"#);
        let told = SentRecord::parse(&text, SENDER, &key).unwrap();
        assert!(told.in_clear);
        assert_eq!(told.snapshot.values["p"].datum, Some(secret("old", true)));
        let again = told.snapshot.to_text(SENDER, &key, &Host::default()).unwrap();
        assert!(!again.contains("\"old\"") && !again.contains("secret"), "{again}");
        assert_eq!(known(&again, SENDER, &key), Some(secret("old", true)));
        let bare = without_secrets(&hidden(&text)).unwrap();
        assert!(!bare.0.contains("old"), "{}", bare.0);
    }

    /// B-26: a ciphertext under another key, another name or another hash, or modified, has no content.
    #[test]
    fn undecryptable_values_are_unknown() {
        let (key, other) = (StateKey::new([3; 32]), StateKey::new([4; 32]));
        let text = saved("kept", &key);
        assert_eq!(known(&text, SENDER, &key), Some(secret("kept", true)));
        assert_eq!(known(&text, SENDER, &other), None);
        assert_eq!(known(&text, "password[other]", &key), None);
        let (hash, newer) = (secret("kept", true).seal(&key), secret("newer", true).seal(&key));
        let newer = text.replace(&hash.to_hex(), &newer.to_hex());
        assert_ne!(newer, text);
        assert_eq!(known(&newer, SENDER, &key), None);
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(flipped) = String::from_utf8(bytes) else { continue };
            let told = SentRecord::parse(&flipped, SENDER, &key);
            let damaged = unreadable(Some(&hidden(&flipped)), None).is_some();
            assert_eq!(told.is_none(), damaged, "{flipped}");
            let values = told.map(|told| told.snapshot.values).unwrap_or_default();
            let datum = values.into_values().next().and_then(|value| value.datum);
            assert!(datum.is_none_or(|datum| datum == secret("kept", true)), "{flipped}");
        }
    }

    /// B-24, B-26: an export has only hashes; with the local record its secrets are restored.
    #[test]
    fn omitted_secrets_are_joined_again() {
        let key = StateKey::new([3; 32]);
        let text = hidden(&saved("kept", &key));
        let bare = without_secrets(&text).unwrap();
        assert_eq!(known(&bare.0, SENDER, &key), None);
        assert_eq!(with_secrets(&bare, &text), Some(text));
        let other = hidden(&saved("other", &key));
        assert_eq!(with_secrets(&bare, &other), Some(bare), "the hash is another one");
    }

    #[test]
    fn foreign_records_are_ignored() {
        let key = StateKey::new([3; 32]);
        let hash = key.seal(b"x").to_hex();
        let odd =
            format!(r#"{{"definition":1,"values":{{"a":{{"hash":"{hash}","encrypted":"00"}}}}}}"#);
        for text in ["", "{}", "[]", r#"{"definition":1,"values":{"a":{"hash":"x"}}}"#, &odd] {
            let sent = SentRecord::parse(text, SENDER, &key);
            assert!(sent.is_none() && ReceivedRecord::parse(text).is_none(), "{text}");
            assert!(unreadable(Some(&hidden(text)), None).is_some(), "{text}");
        }
    }
}
