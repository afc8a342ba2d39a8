//! A graph file as read and not yet checked: what both readers produce.

use super::hash::Stable;
use super::scalar;
use super::source_file::Span;
use std::sync::Arc;
use steadfast_resources::host::Supply;
use steadfast_resources::{FieldSpec, Fields, KindSpec, Value};

/// One file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct GraphFile {
    pub(super) name: Option<String>,
    pub(super) comment: Option<String>,
    pub(super) resources: Vec<Resource>,
    pub(super) edges: Vec<Edge>,
    /// Where secrets come from.
    pub(super) secrets: Vec<Supplied>,
    /// Identities that are declared but cannot be checked further (kinds that are not known): edges may name them.
    pub(super) strangers: Vec<String>,
    /// It holds something else than a graph: what it would have declared is not known.
    pub(super) unread: bool,
    /// Where things stand, for the reader that knows.
    pub(super) spots: Option<Spans>,
}

/// One resource.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) spec: &'static KindSpec,
    pub(super) name: String,
    pub(super) given: FieldValues,
    /// The resource itself, where it was made while it was read; then its fields are used up.
    pub(super) built: Option<Arc<dyn steadfast_resources::Resource>>,
    pub(super) meta: Option<Box<FieldValues>>,
    pub(super) links: Box<[Link]>,
    /// What it was called before.
    pub(super) aliases: Box<[String]>,
    /// What it receives; the fast reader leaves those that do to the slow one.
    pub(super) receives: Box<[Receive]>,
    /// The line it begins on.
    pub(super) line: u32,
    /// Something of it was refused while it was read: only its identity counts.
    pub(super) broken: bool,
}

/// Whether both were written alike; fields are compared by their hash.
impl PartialEq for Resource {
    fn eq(&self, other: &Self) -> bool {
        self.spec.kind == other.spec.kind
            && self.name == other.name
            && self.given.sum == other.given.sum
            && self.given.relative == other.given.relative
            && self.meta == other.meta
            && self.links == other.links
            && self.aliases == other.aliases
            && self.receives == other.receives
            && self.line == other.line
            && self.broken == other.broken
    }
}

/// A short edge: `after`, `before`, `notify`, `subscribe`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) relation: Relation,
    pub(super) target: String,
}

/// What a short edge says of its resource and the one it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    After,
    Before,
    Notify,
    Subscribe,
}

impl Relation {
    pub(super) const NAMES: [&'static str; 4] = ["after", "before", "notify", "subscribe"];

    pub(super) fn parse(key: &str) -> Option<Self> {
        match key {
            "after" => Some(Self::After),
            "before" => Some(Self::Before),
            "notify" => Some(Self::Notify),
            "subscribe" => Some(Self::Subscribe),
            _ => None,
        }
    }

    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::After => "after",
            Self::Before => "before",
            Self::Notify => "notify",
            Self::Subscribe => "subscribe",
        }
    }

    /// Whether the edge runs from the resource to the one it names.
    pub(super) const fn is_forward(self) -> bool {
        matches!(self, Self::Before | Self::Notify)
    }

    pub(super) const fn notifies(self) -> bool {
        matches!(self, Self::Notify | Self::Subscribe)
    }
}

/// A field, or a part of one, that comes from elsewhere: an entry of `recv`, or a field that is `{secret: NAME}`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Receive {
    /// As written: `content`, `env.NAME`, `args.2`.
    pub(super) target: String,
    /// A text with `${name}` in it.
    pub(super) template: Option<String>,
    /// The one value, or those of the template by their names.
    pub(super) values: Vec<(String, Reference)>,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// Another resource sends it: `kind[name]` and key.
    Sent(String, String),
    /// A secret, by name.
    Secret(String),
}

/// An entry of `secrets`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Supplied {
    pub(super) name: String,
    pub(super) supply: Supply,
}

/// An entry of `edges`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: End,
    pub(super) to: End,
    pub(super) notify: bool,
}

/// One end of an edge.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) kind: String,
    pub(super) name: String,
}

/// The values given for one resource, or for its `meta`, with a hash that does not depend on their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FieldValues {
    pub(super) fields: Fields,
    pub(super) sum: u64,
    /// Some value is a path that is relative to the graph file.
    pub(super) relative: bool,
}

/// Fields whose values may be paths relative to the graph file.
const RELATIVE: [&str; 3] = ["source", "fragments", "template"];

impl FieldValues {
    pub(super) fn insert(&mut self, field: &'static FieldSpec, value: Value) {
        self.sum = self.sum.wrapping_add(scalar::hash(Stable::new().text(field.name), &value));
        self.relative |= RELATIVE.contains(&field.name)
            && match &value {
                Value::Text(text) => !text.starts_with('/'),
                Value::Texts(texts) => texts.iter().any(|text| !text.starts_with('/')),
                _ => false,
            };
        self.fields.insert(field.name, value);
    }
}

/// Whether a key was seen before in the same map, by its number in a table.
#[derive(Debug, Default)]
pub(super) struct Seen([u64; 4]);

impl Seen {
    /// True the first time. Tables have far fewer than 256 entries (a test holds that).
    pub(super) fn first(&mut self, index: usize) -> bool {
        let bit = 1 << (index % 64);
        match self.0.get_mut(index / 64) {
            Some(word) => {
                let first = *word & bit == 0;
                *word |= bit;
                first
            }
            None => true,
        }
    }
}

/// Where the parts of a file stand.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Spans {
    pub(super) name: Option<Span>,
    pub(super) resources: Vec<ResourceSpots>,
    pub(super) edges: Vec<EdgeSpots>,
    pub(super) secrets: Vec<Span>,
}

/// Where the parts of a resource stand.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ResourceSpots {
    pub(super) name: Span,
    pub(super) fields: Vec<(&'static str, Span)>,
    pub(super) meta: Vec<(&'static str, Span)>,
    pub(super) links: Vec<Span>,
    pub(super) receives: Vec<Span>,
    pub(super) semaphores: Vec<Span>,
}

/// Where the parts of an edge stand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EdgeSpots {
    pub(super) from: Span,
    pub(super) to: Span,
}
