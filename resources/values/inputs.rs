//! The fields of a resource that come from elsewhere: their origins and slots, and the resource that is built of them.

use crate::fields::field_spec::FieldSpec;
use crate::fields::field_values::{Fields, Place};
use crate::host::Supply;
use crate::kind::KindSpec;
use crate::resource::Resource;
use crate::secrets::secret_text::KeyedHash;
use crate::values::sent_values::SentValue;
use std::sync::Arc;

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
