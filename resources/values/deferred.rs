//! Builds a resource whose fields are partly written in the graph and partly received.

use crate::dependency::Need;
use crate::failure::Failure;
use crate::fields::field_spec::FieldType;
use crate::fields::field_spec::Receives;
use crate::fields::field_values::{Fields, Invalid, Value};
use crate::host::Supply;
use crate::resource::Resource;
use crate::secrets::secret_text::{KeyedHash, KeyedHashOf, Secret, StateKey};
use crate::values::inputs::{
    BuiltResource, DeferredResource, InputSlot, Origin, Part, Received, ResolvedInput,
    TemplatePiece,
};
use crate::values::sent_values::SentValue;
use crate::watch_source::WatchSource;
use std::sync::Arc;

impl InputSlot {
    /// Returns the name of the slot as in the graph file: `content`, `env.NAME`, `args.2`.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.part {
            Part::Whole => self.field.name.to_owned(),
            Part::Key(key) => format!("{}.{key}", self.field.name),
            Part::At(at) => format!("{}.{at}", self.field.name),
        }
    }

    /// Returns the type that the slot takes.
    #[must_use]
    pub fn takes(&self) -> FieldType {
        if self.part == Part::Whole && !self.is_template() {
            self.field.takes
        } else {
            FieldType::Text
        }
    }

    /// Returns true if the slot is a text with values in it.
    #[must_use]
    pub fn is_template(&self) -> bool {
        !matches!(self.pieces.as_slice(), [TemplatePiece::Value(_)])
    }

    /// Returns a valid value of the slot's type, for use while there is no value yet.
    fn stand_in(&self) -> Value {
        match self.takes() {
            FieldType::Text | FieldType::Anything => {
                Value::Text(self.field.example.unwrap_or("received").to_owned())
            }
            FieldType::Choice(words) => {
                Value::Text(words.first().copied().unwrap_or_default().to_owned())
            }
            FieldType::Duration => Value::Float(60.0),
            FieldType::Bool => Value::Bool(false),
            FieldType::Int | FieldType::Seconds | FieldType::Milliseconds => Value::Int(1),
            FieldType::Float => Value::Float(1.0),
            FieldType::Texts => Value::Texts(vec!["received".to_owned()]),
            FieldType::TextMap => Value::TextMap(Vec::new()),
        }
    }

    /// Returns the value of the slot while only the hash of its input is known. An entry of a map is left out
    /// instead: a guard must not try a wrong password.
    fn in_place_of(&self, sealed: KeyedHashOf) -> Option<Value> {
        match (self.field.receives, &self.part) {
            (Receives::Seals, _) => Some(Value::Sealed(sealed)),
            (_, Part::Key(_)) => None,
            (_, Part::Whole | Part::At(_)) => Some(self.stand_in()),
        }
    }

    /// Returns the stored hash if the slot is exactly one value and its field compares by hash alone.
    fn is_all_of(&self, given: &[ResolvedInput]) -> Option<KeyedHash> {
        match (self.pieces.as_slice(), self.field.receives) {
            ([TemplatePiece::Value(number)], Receives::Seals) => match given.get(*number)? {
                ResolvedInput::Sealed(seal) => Some(seal.clone()),
                ResolvedInput::Value(_) => None,
            },
            _ => None,
        }
    }

    /// Returns a keyed hash over the slot's pieces: each text, and the hash of each value.
    fn pieces(&self, given: &[ResolvedInput], key: &StateKey) -> KeyedHash {
        let mut all = String::new();
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Text(words) => {
                    all.push_str(&format!("text {}\n{words}\n", words.len()));
                }
                TemplatePiece::Value(number) => {
                    let seal = match given.get(*number) {
                        Some(ResolvedInput::Value(datum)) => datum.seal(key).to_hex(),
                        Some(ResolvedInput::Sealed(seal)) => seal.to_hex(),
                        None => String::new(),
                    };
                    all.push_str(&format!("value {seal}\n"));
                }
            }
        }
        key.seal(all.as_bytes())
    }

    /// Returns the value of the slot; none if one of its inputs is only known by its hash.
    fn value(&self, given: &[ResolvedInput]) -> Result<Option<SentValue>, Failure> {
        let mut text = Secret::default();
        let mut is_secret = false;
        for piece in &self.pieces {
            let datum = match piece {
                TemplatePiece::Text(words) => SentValue::Shown(Value::Text(words.clone())),
                TemplatePiece::Value(number) => match given.get(*number) {
                    Some(ResolvedInput::Value(datum)) => datum.clone(),
                    Some(ResolvedInput::Sealed(_)) | None => return Ok(None),
                },
            };
            if !self.is_template()
                && let SentValue::Shown(value) = datum
            {
                return convert(value, self.takes()).map(|value| Some(SentValue::Shown(value)));
            }
            match datum {
                SentValue::Secret { secret, .. } => {
                    is_secret = true;
                    text = Secret::from(format!("{}{}", text.reveal(), secret.reveal()));
                }
                SentValue::TooLong => return Err(unfit(self.takes())),
                SentValue::Shown(value) => {
                    let words = as_text(&value).ok_or_else(|| unfit(FieldType::Text))?;
                    text = Secret::from(format!("{}{words}", text.reveal()));
                }
            }
        }
        Ok(Some(if is_secret {
            SentValue::Secret { secret: text, saved: false }
        } else {
            SentValue::Shown(Value::Text(text.reveal().to_owned()))
        }))
    }
}

impl DeferredResource {
    /// Builds the resource from the written fields and stand-ins. The result serves validation and watches, and
    /// is never run.
    ///
    /// # Errors
    ///
    /// Returns every problem of the written fields.
    pub fn placeholder(&self) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
        let mut fields = self.fields.clone();
        for slot in &self.slots {
            put(&mut fields, slot, slot.stand_in());
        }
        self.spec.build_resource(&self.name, fields, &self.place)?;
        // Leaves out the parts of maps: a command that watches all the time must not run with stand-ins.
        let mut fields = self.fields.clone();
        for slot in self.slots.iter().filter(|slot| !matches!(slot.part, Part::Key(_))) {
            put(&mut fields, slot, slot.stand_in());
        }
        self.spec.build_resource(&self.name, fields, &self.place)
    }

    /// Returns the watch sources of the inputs: the files of their secrets.
    #[must_use]
    pub fn watch(&self) -> Vec<WatchSource> {
        let files = self.origins.iter().filter_map(|origin| match origin {
            Origin::Secret(Supply::File(path)) => Some(WatchSource::Supply(path.clone())),
            Origin::Secret(_) | Origin::Sent { .. } => None,
        });
        files.collect()
    }

    /// Returns the needs of the inputs: the files of their secrets, and the resources that supply them.
    #[must_use]
    pub fn needs(&self) -> Vec<Need> {
        let supplies = self.origins.iter().filter_map(|origin| match origin {
            Origin::Secret(supply) => Some(supply),
            Origin::Sent { .. } => None,
        });
        let needs = supplies.filter_map(|supply| match supply {
            Supply::File(path) => Some(Need::path(path, "holds a secret of this resource")),
            Supply::Command(argv) => {
                let program = argv.first().filter(|program| program.starts_with('/'))?;
                Some(Need::path(program, "supplies a secret of this resource"))
            }
            Supply::Credential(_) => None,
        });
        needs.collect()
    }

    /// Builds the resource from the resolved inputs. `before` returns the hash of a slot's value in the last
    /// successful run, if the same pieces made that value.
    pub fn make(
        &self,
        given: &[ResolvedInput],
        key: &StateKey,
        before: &dyn Fn(&str, &KeyedHash) -> Option<KeyedHash>,
    ) -> Result<BuiltResource, Failure> {
        let (mut fields, mut blind, mut received) = (self.fields.clone(), false, Vec::new());
        for slot in &self.slots {
            let (name, pieces) = (slot.name(), slot.pieces(given, key));
            let Some(datum) = slot.value(given)? else {
                let whole = before(&name, &pieces).or_else(|| slot.is_all_of(given));
                let Some(whole) = whole else { return Err(forgotten(&name)) };
                blind |= slot.field.receives != Receives::Seals;
                if let Some(value) = slot.in_place_of(key.sealed(whole.clone())) {
                    put(&mut fields, slot, value);
                }
                received.push(Received { slot: name, whole, pieces });
                continue;
            };
            received.push(Received { slot: name.clone(), whole: datum.seal(key), pieces });
            match datum {
                SentValue::TooLong => return Err(unfit(slot.takes())),
                SentValue::Shown(value) => put(&mut fields, slot, value),
                SentValue::Secret { .. } if slot.field.receives < Receives::Secrets => {
                    let what = format!("`{name}` accepts no secret, but received one");
                    return Err(
                        Failure::new(what).hint("send the secret to a field that accepts secrets")
                    );
                }
                SentValue::Secret { secret, .. } => put(&mut fields, slot, Value::Secret(secret)),
            }
        }
        match self.spec.build_resource(&self.name, fields, &self.place) {
            Ok(resource) => Ok(BuiltResource { resource, blind, received }),
            Err(invalid) => Err(refused(self.spec.kind, &invalid)),
        }
    }
}

/// Reports received values that make no valid resource. The kind's message may quote a value, so the failure
/// names only the field.
fn refused(kind: &str, invalid: &[Invalid]) -> Failure {
    let field = invalid.iter().find_map(|invalid| invalid.field).unwrap_or("a field");
    let what = format!("the received value is invalid for `{field}`");
    let page = format!("{kind}.{field}");
    Failure::new(what).hint(format!(
        "`steadfast explain {page}` says what the field expects; the value is not shown here"
    ))
}

fn forgotten(name: &str) -> Failure {
    Failure::new(format!("the value of `{name}` was not stored and has never been applied"))
        .hint("only a hash of a secret is stored: `steadfast retry` the sender for a new secret, or set `saved: true`")
}

fn put(fields: &mut Fields, slot: &InputSlot, value: Value) {
    let name = slot.field.name;
    match (&slot.part, value) {
        (Part::Whole, value) => fields.insert(name, value),
        (Part::Key(key), Value::Secret(secret)) => fields.insert_secret(name, key.clone(), secret),
        (Part::Key(key), value) => {
            let mut map = fields.text_map(name).unwrap_or_default();
            map.push((key.clone(), as_text(&value).unwrap_or_default()));
            fields.insert(name, Value::TextMap(map));
        }
        (Part::At(at), value) => {
            let mut list = fields.texts(name).unwrap_or_default();
            let at = list.len().min(*at);
            list.insert(at, as_text(&value).unwrap_or_default());
            fields.insert(name, Value::Texts(list));
        }
    }
}

fn convert(value: Value, takes: FieldType) -> Result<Value, Failure> {
    let converted = match (takes, value) {
        (FieldType::Text | FieldType::Anything | FieldType::Choice(_), value) => {
            as_text(&value).map(Value::Text)
        }
        (FieldType::Duration, Value::Text(text)) => {
            crate::duration::seconds(&text).map(Value::Float)
        }
        (FieldType::Duration, Value::Float(number)) => Some(Value::Float(number)),
        (FieldType::Bool, Value::Bool(truth)) => Some(Value::Bool(truth)),
        (FieldType::Int | FieldType::Seconds | FieldType::Milliseconds, Value::Int(number)) => {
            Some(Value::Int(number))
        }
        (FieldType::Seconds, Value::Text(text)) => {
            crate::duration::whole(&text, 1.0).map(Value::Int)
        }
        (FieldType::Milliseconds, Value::Text(text)) => {
            crate::duration::whole(&text, 1000.0).map(Value::Int)
        }
        (FieldType::Float, Value::Float(number)) => Some(Value::Float(number)),
        #[expect(
            clippy::cast_precision_loss,
            reason = "as written in the graph it would be read so"
        )]
        (FieldType::Float | FieldType::Duration, Value::Int(number)) => {
            Some(Value::Float(number as f64))
        }
        (FieldType::Texts, Value::Texts(texts)) => Some(Value::Texts(texts)),
        (FieldType::Texts, value) => as_text(&value).map(|text| Value::Texts(vec![text])),
        (FieldType::TextMap, Value::TextMap(map)) => Some(Value::TextMap(map)),
        _ => None,
    };
    converted.ok_or_else(|| unfit(takes))
}

fn unfit(takes: FieldType) -> Failure {
    Failure::new(format!("the sent value is not of type {takes:?}"))
}

/// Returns a scalar as the graph file would write it.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Texts(_) | Value::TextMap(_) | Value::Secret(_) | Value::Sealed(_) => None,
    }
}
