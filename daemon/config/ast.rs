//! A graph file as read and not yet checked: the result of the reader.

use super::document::{ModuleEdge, Note};
use super::hash::Stable;
use super::scalar;
use super::source_file::Span;
use std::sync::Arc;
use steadfast_resources::host::Supply;
use steadfast_resources::{FieldMode, FieldSpec, Fields, KindSpec, Value};

/// One graph file.
#[derive(Debug, Default)]
pub(super) struct GraphFile {
    pub(super) name: Option<String>,
    pub(super) comment: Option<String>,
    pub(super) resources: Vec<Resource>,
    pub(super) edges: Vec<Edge>,
    /// The declared secrets and their sources.
    pub(super) secrets: Vec<Supplied>,
    /// The collections of exported resources.
    pub(super) collects: Vec<Collect>,
    /// The instance to which the resources belong, such as `@web1`; empty for a file.
    pub(super) instance: String,
    /// The identities of resources of unknown kinds. They cannot be checked further, and edges may name them.
    pub(super) strangers: Vec<String>,
    /// True if the file holds something other than a graph, so that its declarations are unknown.
    pub(super) unread: bool,
    /// The edges that uses of modules give to all resources of the modules.
    pub(super) module_edges: Vec<ModuleEdge>,
    /// The positions of all parts.
    pub(super) spots: Option<Spans>,
}

/// One declared resource.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) spec: &'static KindSpec,
    pub(super) name: String,
    pub(super) given: FieldValues,
    pub(super) meta: Option<Box<FieldValues>>,
    pub(super) links: Box<[Link]>,
    /// The former names of the resource.
    pub(super) aliases: Box<[String]>,
    /// The received values.
    pub(super) receives: Box<[Receive]>,
    /// The line of the beginning of the resource.
    pub(super) line: u32,
    /// True if a part was rejected while reading; only the identity is used then.
    pub(super) broken: bool,
    /// The offer of this resource to other hosts.
    pub(super) export: Option<Export>,
    /// True for an offer: it is withdrawn when it leaves the graph.
    pub(super) withdraws: bool,
    /// The condition and the loop of an expanded resource.
    pub(super) note: Option<Box<Note>>,
    /// The labels.
    pub(super) labels: Box<[(String, String)]>,
}

/// Returns true if a key of an inactive resource is read: its name, its order, and its export, which decides about its
/// identity.
pub(super) fn is_read_if_inactive(spec: &KindSpec, key: &str) -> bool {
    let is_export = key == "export" && spec.fields.iter().all(|field| field.name != key);
    key == "name" || is_export || Relation::parse(key).is_some()
}

/// Returns the field that a key of a resource gives, if claims are made of it. Such a field counts for an inactive
/// resource too.
pub(super) fn claim_field(spec: &KindSpec, key: &str) -> Option<&'static FieldSpec> {
    let is_meant = |field: &&FieldSpec| field.name == key && field.mode == Some(FieldMode::Static);
    spec.fields.iter().find(is_meant)
}

/// The offer of a resource to other hosts (`export`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Export {
    /// True if this host applies the resource too.
    pub(super) apply: bool,
}

/// A collection of resources that other hosts export (an entry of `collect`).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Collect {
    pub(super) kind: String,
    /// The patterns of hosts.
    pub(super) from: Vec<String>,
    /// The fields that come from the exporters.
    pub(super) fields: Vec<String>,
    /// The fields that this host sets; `${host}` and `${name}` are replaced.
    pub(super) set: Vec<(String, String)>,
    /// The folder in which collected files lie.
    pub(super) below: Option<String>,
    /// The time over which hosts take over a change, in seconds.
    pub(super) splay: u64,
    pub(super) meta: Option<Box<FieldValues>>,
    pub(super) span: Span,
    pub(super) line: u32,
}

/// A short edge: `after`, `before`, `notify`, `subscribe`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) relation: Relation,
    pub(super) target: String,
}

/// The relation of a short edge between its resource and the target.
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

    /// Returns true if the edge runs from the resource to its target.
    pub(super) const fn is_forward(self) -> bool {
        matches!(self, Self::Before | Self::Notify)
    }

    pub(super) const fn notifies(self) -> bool {
        matches!(self, Self::Notify | Self::Subscribe)
    }
}

/// A field, or a part of one, with a received value: an entry of `recv`, or a field that is `{secret: NAME}`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Receive {
    /// The target as written: `content`, `env.NAME`, `args.2`.
    pub(super) target: String,
    /// The template, a text with `${name}`.
    pub(super) template: Option<String>,
    /// The single value, or the values of the template by name.
    pub(super) values: Vec<(String, Reference)>,
    /// The values to use while the sender is inactive, by the same names.
    pub(super) defaults: Vec<DefaultValue>,
    /// True if a default was written into the fields in place of the received value.
    pub(super) is_default: bool,
}

/// The value of a receiver whose sender is inactive (`default`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DefaultValue {
    /// The name of the value in the template; empty for a single value.
    pub(super) name: String,
    pub(super) text: String,
    /// True for a text without quotes.
    pub(super) plain: bool,
}

/// The source of a received value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// A value that another resource sends: the resource as `kind[name]`, and the key.
    Sent(String, String),
    /// A secret, by name.
    Secret(String),
    /// A shared value of the world, by its key.
    World(String),
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
    /// True if some value is a path relative to the graph file.
    pub(super) relative: bool,
}

impl FieldValues {
    /// Replaces the value of a field.
    pub(super) fn replace(&mut self, field: &'static FieldSpec, old: &Value, value: Value) {
        if self.fields.has(field.name) {
            let hash = scalar::hash(Stable::new().text(field.name), old);
            self.sum = self.sum.wrapping_sub(hash);
        }
        self.insert(field, value);
    }

    pub(super) fn insert(&mut self, field: &'static FieldSpec, value: Value) {
        self.sum = self.sum.wrapping_add(scalar::hash(Stable::new().text(field.name), &value));
        self.relative |= field.relative
            && match &value {
                Value::Text(text) => !text.starts_with('/'),
                Value::Texts(texts) => texts.iter().any(|text| !text.starts_with('/')),
                _ => false,
            };
        self.fields.insert(field.name, value);
    }
}

/// The positions of the parts of a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Spans {
    pub(super) name: Option<Span>,
    pub(super) resources: Vec<ResourceSpots>,
    pub(super) edges: Vec<EdgeSpots>,
    pub(super) secrets: Vec<Span>,
    pub(super) module_edges: Vec<Span>,
}

/// The positions of the parts of a resource.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ResourceSpots {
    pub(super) name: Span,
    pub(super) fields: Vec<(&'static str, Span)>,
    pub(super) meta: Vec<(&'static str, Span)>,
    pub(super) links: Vec<Span>,
    pub(super) receives: Vec<Span>,
    pub(super) semaphores: Vec<Span>,
    /// The key of the loop item.
    pub(super) item: Option<Arc<str>>,
}

/// The positions of the ends of an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct EdgeSpots {
    pub(super) from: Span,
    pub(super) to: Span,
}
