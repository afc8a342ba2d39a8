//! Values that go from one resource to another, and secrets: what kinds send, and what fields receive.

#[cfg(doc)]
use crate::host::Captured;
use crate::host::Supply;
use crate::kind::{FieldSpec, FieldType, Fields, KindSpec, Place, Value};
use crate::resource::Resource;
use crate::secret::{KeyedHash, KeyedHashOf, Secret, StateKey};
use std::sync::Arc;

/// A value that a kind sends.
#[derive(Debug)]
pub struct SendSpec {
    /// Its name: `output` in `exec[x].output`.
    pub key: &'static str,
    /// Of which type it is.
    pub gives: FieldType,
    /// It is always secret.
    pub secret: bool,
    /// It is made once, and is there as long as it is kept.
    pub once: bool,
    /// One sentence for `explain`.
    pub doc: &'static str,
}

impl SendSpec {
    /// A value that may be shown.
    #[must_use]
    pub const fn new(key: &'static str, gives: FieldType, doc: &'static str) -> Self {
        Self { key, gives, secret: false, once: false, doc }
    }
}

/// Which values from elsewhere a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Receives {
    /// None.
    Nothing,
    /// What may be shown.
    Shown,
    /// Secrets too.
    Secrets,
    /// Secrets too, and it can tell whether what is there is one of which only the keyed hash is kept.
    Seals,
}

/// One value as sent: a snapshot that never changes.
#[derive(Clone, Debug, PartialEq)]
pub enum SentValue {
    /// It may be shown, and is kept as it is.
    Shown(Value),
    /// It is never shown. Of one that is not `saved` only a keyed hash is kept.
    Secret {
        /// It.
        secret: Secret,
        /// It may be kept in clear.
        saved: bool,
    },
    /// It was printed, and longer than what is kept of a stream ([`Captured::BOUND`]): it counts as sent, and nobody can be given it.
    TooLong,
}

impl SentValue {
    /// Its keyed hash.
    #[must_use]
    pub fn seal(&self, key: &StateKey) -> KeyedHash {
        match self {
            Self::Shown(value) => key.seal(format!("{value:?}").as_bytes()),
            Self::Secret { secret, .. } => key.seal(secret.reveal().as_bytes()),
            // No text has these bytes.
            Self::TooLong => key.seal(b"\xfftoo long"),
        }
    }
}

/// All that a resource sends, by key.
pub type Sent = Vec<(&'static str, SentValue)>;

/// What is kept of what a resource has sent under its present definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRetention {
    /// All values.
    Known,
    /// That there are values; some are only known by their hashes.
    Sealed,
}

/// A resource some of whose fields come from elsewhere: it is made anew for each run.
#[derive(Clone, Debug)]
pub struct DeferredResource {
    /// Its kind.
    pub spec: &'static KindSpec,
    /// Its name.
    pub name: String,
    /// The fields that are written.
    pub fields: Fields,
    /// Where it is declared.
    pub place: Place,
    /// The fields that come from elsewhere.
    pub slots: Vec<InputSlot>,
    /// Where values come from; slots name them by their number.
    pub origins: Vec<Origin>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Another resource sends it.
    Sent {
        /// `kind[name]`; a kind does nothing with it.
        by: Arc<str>,
        /// The key.
        key: Arc<str>,
    },
    /// A secret is supplied.
    Secret(Supply),
}

/// A field, or a part of one, that comes from elsewhere.
#[derive(Clone, Debug)]
pub struct InputSlot {
    /// The field.
    pub field: &'static FieldSpec,
    /// Which part of it.
    pub part: Part,
    /// What it is made of: one value, or a text with values in it.
    pub pieces: Vec<TemplatePiece>,
}

/// A part of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// What stands at a key of a map.
    Key(String),
    /// An element of a list, counted from 0 in the list as it will be.
    At(usize),
}

/// A piece of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePiece {
    /// A text as written.
    Text(String),
    /// The value of an origin, by its number.
    Value(usize),
}

/// What an origin has given.
#[derive(Clone, Debug)]
pub enum ResolvedInput {
    /// The value.
    Value(SentValue),
    /// Of the value only this, its keyed hash, is kept.
    Sealed(KeyedHash),
}

/// A resource made of what was received.
#[derive(Clone, Debug)]
pub struct BuiltResource {
    /// It.
    pub resource: Arc<dyn Resource>,
    /// Something in it is a stand-in, since only a hash is kept: that nothing differs can be told, and nothing can be done.
    pub blind: bool,
    /// What was received, by slot.
    pub received: Vec<Received>,
}

/// What a slot was given, by keyed hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The slot.
    pub slot: String,
    /// What it came to.
    pub whole: KeyedHash,
    /// The pieces that made it, texts and values: the same ones make the same whole, though what that is may not be kept.
    pub pieces: KeyedHash,
}

/// Whether a value of one type can stand where another is wanted.
#[must_use]
pub fn fits(gives: FieldType, takes: FieldType) -> bool {
    match takes {
        FieldType::Text | FieldType::Anything => {
            !matches!(gives, FieldType::Texts | FieldType::TextMap)
        }
        FieldType::Float => matches!(gives, FieldType::Float | FieldType::Int),
        FieldType::Texts => gives != FieldType::TextMap,
        FieldType::Bool | FieldType::Int | FieldType::TextMap => gives == takes,
    }
}

/// A text that may be a secret, or known by its hash only.
#[derive(Clone, Debug, PartialEq)]
pub enum MaybeSecret {
    /// It may be shown.
    Shown(String),
    /// It is never shown.
    Secret(Secret),
    /// Only its hash is known.
    Sealed(KeyedHashOf),
}
