//! Values between resources: the values that kinds send, and the inputs and secrets that fields receive.

#[cfg(doc)]
use crate::host::Captured;
use crate::host::Supply;
use crate::kind::{FieldSpec, FieldType, Fields, KindSpec, Place, Value};
use crate::resource::Resource;
use crate::secret_text::{KeyedHash, KeyedHashOf, Secret, StateKey};
use std::sync::Arc;

/// A value that a kind sends.
#[derive(Debug)]
pub struct SendSpec {
    /// The name of the value: `output` in `exec[x].output`.
    pub key: &'static str,
    /// The type of the value.
    pub gives: FieldType,
    /// The value is always secret.
    pub secret: bool,
    /// The value is made once and lasts as long as it is stored.
    pub once: bool,
    /// One sentence for `explain`.
    pub doc: &'static str,
}

impl SendSpec {
    /// Makes the declaration of a value that may be shown.
    #[must_use]
    pub const fn new(key: &'static str, gives: FieldType, doc: &'static str) -> Self {
        Self { key, gives, secret: false, once: false, doc }
    }
}

/// The values from elsewhere that a field accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Receives {
    /// None.
    Nothing,
    /// Values that may be shown.
    Shown,
    /// Secrets too.
    Secrets,
    /// Secrets too, and also secrets that are only known by their keyed hash: the field can compare by hash.
    Seals,
}

/// One value as sent: a copy that never changes.
#[derive(Clone, Debug, PartialEq)]
pub enum SentValue {
    /// A value that may be shown, stored in clear.
    Shown(Value),
    /// A value that is never shown. Unless `saved` is set, only a keyed hash is stored.
    Secret {
        /// The secret itself.
        secret: Secret,
        /// The secret may be stored in clear.
        saved: bool,
    },
    /// A printed value longer than the limit of a stream ([`Captured::BOUND`]): the value counts as sent, and no
    /// receiver can get it.
    TooLong,
}

impl SentValue {
    /// Returns the keyed hash of the value.
    #[must_use]
    pub fn seal(&self, key: &StateKey) -> KeyedHash {
        self.with_bytes(|bytes| key.seal(bytes))
    }

    /// Returns true if the hash is that of the value under this key.
    #[must_use]
    pub fn has_seal(&self, key: &StateKey, seal: &KeyedHash) -> bool {
        self.with_bytes(|bytes| key.verify(bytes, seal))
    }

    /// Passes the bytes that are hashed to `f`.
    fn with_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Shown(value) => f(format!("{value:?}").as_bytes()),
            Self::Secret { secret, .. } => f(secret.reveal().as_bytes()),
            // No UTF-8 text has these bytes.
            Self::TooLong => f(b"\xfftoo long"),
        }
    }
}

/// The values that a resource sends, by key.
pub type Sent = Vec<(&'static str, SentValue)>;

/// The stored part of the values that a resource has sent under its present definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRetention {
    /// All values.
    Known,
    /// The existence of the values; some are only known by their hashes.
    Sealed,
}

/// A resource with fields from elsewhere, built anew for each run.
#[derive(Clone, Debug)]
pub struct DeferredResource {
    /// The kind of the resource.
    pub spec: &'static KindSpec,
    /// The name of the resource.
    pub name: String,
    /// The written fields.
    pub fields: Fields,
    /// The place of the declaration.
    pub place: Place,
    /// The fields that come from elsewhere.
    pub slots: Vec<InputSlot>,
    /// The origins of the values; slots refer to them by position.
    pub origins: Vec<Origin>,
}

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A value that another resource sends.
    Sent {
        /// The sender, `kind[name]`; kinds do not interpret the name.
        by: Arc<str>,
        /// The key of the value.
        key: Arc<str>,
    },
    /// A secret from a supply.
    Secret(Supply),
}

/// A field, or a part of one, that comes from elsewhere.
#[derive(Clone, Debug)]
pub struct InputSlot {
    /// The field.
    pub field: &'static FieldSpec,
    /// The part of the field.
    pub part: Part,
    /// The pieces of the slot: one value, or a text with values in it.
    pub pieces: Vec<TemplatePiece>,
}

/// A part of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole field.
    Whole,
    /// The entry of a map with this key.
    Key(String),
    /// An element of a list, counted from 0 in the final list.
    At(usize),
}

/// A piece of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePiece {
    /// A text as written.
    Text(String),
    /// The value of an origin, by its position.
    Value(usize),
}

/// The value of an origin, as far as it is known.
#[derive(Clone, Debug)]
pub enum ResolvedInput {
    /// The value.
    Value(SentValue),
    /// The keyed hash of a value whose text is not stored.
    Sealed(KeyedHash),
}

/// A resource built from received values.
#[derive(Clone, Debug)]
pub struct BuiltResource {
    /// The resource.
    pub resource: Arc<dyn Resource>,
    /// The resource contains a stand-in because only a hash is stored: a check can find that nothing differs, and
    /// an apply is impossible.
    pub blind: bool,
    /// The received values, by slot.
    pub received: Vec<Received>,
}

/// The value of a slot in one run, as keyed hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The name of the slot.
    pub slot: String,
    /// The hash of the complete value.
    pub whole: KeyedHash,
    /// The hash of the pieces, texts and values: equal pieces make an equal value, even if that value is not
    /// stored.
    pub pieces: KeyedHash,
}

/// Returns true if a field of type `takes` accepts a value of type `gives`.
#[must_use]
pub fn fits(gives: FieldType, takes: FieldType) -> bool {
    match takes {
        FieldType::Text | FieldType::Anything | FieldType::Choice(_) => {
            !matches!(gives, FieldType::Texts | FieldType::TextMap)
        }
        FieldType::Float => matches!(gives, FieldType::Float | FieldType::Int),
        FieldType::Seconds | FieldType::Milliseconds => {
            matches!(gives, FieldType::Int | FieldType::Text)
        }
        FieldType::Duration => !matches!(gives, FieldType::Texts | FieldType::TextMap),
        FieldType::Texts => gives != FieldType::TextMap,
        FieldType::Bool | FieldType::Int | FieldType::TextMap => gives == takes,
    }
}

/// A text that may be a secret, or known by its hash only.
#[derive(Clone, Debug, PartialEq)]
pub enum MaybeSecret {
    /// A text that may be shown.
    Shown(String),
    /// A text that is never shown.
    Secret(Secret),
    /// A text that is only known by its hash.
    Sealed(KeyedHashOf),
}
