//! Values as they are kept: secrets as keyed hashes, and those that are declared as `saved` encrypted besides (B-26).

use super::format::{Body, One, Written};
use crate::store::OpaqueText;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use steadfast_resources::{Failure, Host, KeyedHash, Secret, Sent, SentValue, StateKey};

/// What a resource has sent, as one.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::driver) struct SentRecord {
    /// Under which definition.
    pub(in crate::driver) definition: u64,
    /// By key.
    pub(in crate::driver) values: BTreeMap<String, ValueRecord>,
}

/// One value.
#[derive(Clone, Debug)]
pub(in crate::driver) struct ValueRecord {
    pub(in crate::driver) seal: KeyedHash,
    /// None where only the hash was kept, or what was kept cannot be decrypted.
    pub(in crate::driver) datum: Option<SentValue>,
}

/// They are the same value if their hashes are.
impl PartialEq for ValueRecord {
    fn eq(&self, other: &Self) -> bool {
        self.seal == other.seal && self.datum.is_some() == other.datum.is_some()
    }
}

/// What a good run of a receiver was made of.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::driver) struct ReceivedRecord {
    /// The values.
    pub(in crate::driver) origins: KeyedHash,
    /// What they made, by slot.
    pub(in crate::driver) fields: HashMap<String, Field>,
    /// What it copied; none where it copied nothing, or a program of before has not kept it.
    pub(in crate::driver) copied: Option<CopySource>,
    /// It was cut off, and is taken as done: what was made of the values nobody saw, and the fields are those of before.
    pub(in crate::driver) unseen: bool,
}

/// What somebody has copied.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::driver) struct CopySource {
    /// A hash of its state.
    pub(in crate::driver) state: u64,
    /// A hash of its content, which may be a secret.
    pub(in crate::driver) content: KeyedHash,
}

/// What a slot came to.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::driver) struct Field {
    pub(in crate::driver) whole: KeyedHash,
    /// What made it; programs of before have not kept that.
    pub(in crate::driver) pieces: Option<KeyedHash>,
}

/// What of this cannot be read, if anything.
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

/// Whether of what somebody was made of anything was received, and whether anything was copied.
#[must_use]
pub fn sorts(taken: &str) -> (bool, bool) {
    ReceivedRecord::parse(taken)
        .map_or((false, false), |it| (!it.fields.is_empty(), it.copied.is_some()))
}

/// The same without secrets that are declared as `saved`: of those, as of others, only the keyed hash.
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

/// The same with the secrets that are kept, as they are kept, where their hashes are those of the ones that were left out.
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

/// What was kept, and whether that was in the form of before: with secrets in clear.
pub(in crate::driver) struct Decoded {
    pub(in crate::driver) snapshot: SentRecord,
    pub(in crate::driver) in_clear: bool,
}

impl SentRecord {
    pub(in crate::driver) fn new(definition: u64, sent: Sent, key: &StateKey) -> Self {
        let value = |datum: SentValue| ValueRecord { seal: datum.seal(key), datum: Some(datum) };
        let values = sent.into_iter().map(|(name, datum)| (name.to_owned(), value(datum)));
        Self { definition, values: values.collect() }
    }

    /// Whether anything in it stands there only under the name of who sent it.
    pub(in crate::driver) fn is_bound(&self) -> bool {
        let is_saved =
            |one: &ValueRecord| matches!(one.datum, Some(SentValue::Secret { saved: true, .. }));
        self.values.values().any(is_saved)
    }

    /// As it is kept of this sender. Fails where a secret cannot be encrypted: none is written in clear.
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
        Ok(Written { definition: self.definition, values }.to_text())
    }

    /// What is kept of this sender. What another key has encrypted, or what was changed, is not known.
    pub(in crate::driver) fn parse(text: &str, sender: &str, key: &StateKey) -> Option<Decoded> {
        let Written { definition, values } = Written::parse(text)?;
        let in_clear = values.values().any(|value| matches!(value.body, Body::Clear(_)));
        let saved = |secret: Secret| SentValue::Secret { secret, saved: true };
        let read = |(name, One { seal, body }): (String, One)| {
            let mut seal = seal;
            let datum = match body {
                Body::Shown(value) => Some(SentValue::Shown(value)),
                Body::Clear(secret) => {
                    // Its hash may be one by a key of before: what is encrypted has one by that of now.
                    let datum = saved(secret);
                    seal = datum.seal(key);
                    Some(datum)
                }
                Body::Encrypted(secret) => key
                    .decrypt(&secret, &[sender, &name])
                    .map(saved)
                    // It may be one of before, put there again.
                    .filter(|datum| datum.seal(key) == seal),
                Body::TooLong => Some(SentValue::TooLong),
                Body::Hashed => None,
            };
            (name, ValueRecord { seal, datum })
        };
        let values = values.into_iter().map(read).collect();
        Some(Decoded { snapshot: Self { definition, values }, in_clear })
    }
}

impl ReceivedRecord {
    /// By somebody who was cut off and is taken as done.
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

    /// A password that is saved, as it is kept.
    fn saved(text: &str, key: &StateKey) -> String {
        let snapshot = SentRecord::new(1, vec![("p", secret(text, true))], key);
        snapshot.to_text(SENDER, key, &Host::default()).unwrap()
    }

    fn known(text: &str, sender: &str, key: &StateKey) -> Option<SentValue> {
        SentRecord::parse(text, sender, key).unwrap().snapshot.values["p"].datum.clone()
    }

    /// S-6, B-26: of a secret that is not saved, only its keyed hash is kept; one that is saved is encrypted.
    #[test]
    fn what_is_kept_is_told_back() {
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

    /// B-26: what was kept in clear before is known, and said to be in clear.
    #[test]
    fn what_was_kept_in_clear_is_read() {
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

    /// B-26: with another key, under another name, beside the hash of another one, or changed, it is unknown.
    #[test]
    fn what_cannot_be_decrypted_is_not_known() {
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

    /// B-24, B-26: a document has only hashes; with what is kept here it is what it was.
    #[test]
    fn what_was_left_out_is_joined_again() {
        let key = StateKey::new([3; 32]);
        let text = hidden(&saved("kept", &key));
        let bare = without_secrets(&text).unwrap();
        assert_eq!(known(&bare.0, SENDER, &key), None);
        assert_eq!(with_secrets(&bare, &text), Some(text));
        let other = hidden(&saved("other", &key));
        assert_eq!(with_secrets(&bare, &other), Some(bare), "the hash is another one");
    }

    #[test]
    fn what_was_not_written_by_us_is_nothing() {
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
