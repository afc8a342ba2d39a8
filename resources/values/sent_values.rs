//! The values that kinds send to other resources.

use crate::fields::field_spec::FieldType;
use crate::fields::field_values::Value;
#[cfg(doc)]
use crate::host::Captured;
use crate::secrets::secret_text::{KeyedHash, Secret, StateKey};

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
