//! The document: the nodes of a YAML text with their positions, before anything is interpreted.
//!
//! A document must never know a kind or a field. One document holds the nodes of one source file, as one use of that
//! file sees them: a module that is used twice gives two documents. Reading order: `tree` (nodes), `parse` (text to
//! nodes), `value_limit` (the number of values), and this file (a tree with its source and its origin).

pub(super) mod parse;
pub(super) mod tree;
pub(super) mod value_limit;

use super::source_file::{SourceFile, Span};
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use tree::Tree;

/// A tree with its source file and the chain of uses that led to it.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The index of the source file.
    pub(super) source: usize,
    /// The nodes.
    pub(super) tree: Tree<'static>,
    /// The origin.
    pub(super) origin: Arc<Origin>,
    /// The notes of expanded resources, by the node of the resource.
    pub(super) notes: HashMap<usize, Note>,
    /// The edges that a use of a module gives to all resources of the module.
    pub(super) module_edges: Vec<ModuleEdge>,
    /// True if a loop uses a module: the number of instances depends on a list.
    pub(super) loops_modules: bool,
}

/// The origin of a document: the instance of a module, and the uses that led to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    /// The instance, such as `shop` or `shop/tls`; empty outside of modules.
    pub(super) instance: Arc<str>,
    /// The uses that led to the document, the nearest first, such as `included at web.yaml:3:5`.
    pub(super) chain: Vec<String>,
    /// The name of the module; empty outside of modules.
    pub(super) module: String,
    /// The resources that other modules may name.
    pub(super) exports: Arc<Exports>,
}

/// The exports of a module, which all its instances share.
#[derive(Debug, Default)]
pub(super) struct Exports {
    /// The exports in the order of the files.
    pub(super) list: Vec<Export>,
    targets: HashSet<Arc<str>>,
}

/// A resource that other modules may name.
#[derive(Debug)]
pub(super) struct Export {
    /// The name, as messages list it; an export without a name of its own has that of its resource.
    pub(super) name: String,
    /// The resource as written: `file[vhost]`.
    pub(super) target: Arc<str>,
    /// The file and the position; none for a kind whose names a loop or an expression makes.
    pub(super) at: Option<(Arc<SourceFile>, Span)>,
}

impl Exports {
    /// Creates the exports of a module.
    pub(super) fn new(list: Vec<Export>) -> Self {
        let targets = list.iter().map(|export| Arc::clone(&export.target)).collect();
        Self { list, targets }
    }

    /// Returns true if a resource of the module is exported.
    pub(super) fn contains(&self, target: &str) -> bool {
        self.targets.contains(target)
    }
}

/// The facts about one expanded resource that are not part of its YAML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Note {
    /// The key of the item, if a loop made the resource.
    pub(super) item: Option<Arc<str>>,
    /// The condition as written, if the resource has one.
    pub(super) condition: Option<Arc<str>>,
    /// The reason, if the resource is inactive.
    pub(super) inactive: Option<Arc<Inactivity>>,
    /// The fields whose values are not known yet.
    pub(super) unknown_fields: Box<[Box<str>]>,
}

impl Note {
    /// Returns true if only the static fields of the resource are read: its condition does not hold. The fields of a
    /// resource that waits for a probe are all read.
    pub(super) fn hides_fields(&self) -> bool {
        self.inactive.as_ref().is_some_and(|reason| !reason.ends_with_answer())
    }
}

/// The reason of an inactive resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inactivity {
    /// The condition as written, which the items of a loop share.
    pub(super) condition: Arc<str>,
    /// The names in the condition with their values.
    pub(super) values: Arc<[(String, String)]>,
    /// The probe or resource whose value is missing; none if the condition is false.
    pub(super) unknown_until: Option<String>,
    /// The file and the line of the condition, if there is one.
    pub(super) at: Option<String>,
    /// The sums of the conditions that wait for a probe, the outer ones first and at most 32: equal ones hold together.
    pub(super) waiting: Arc<[u64]>,
}

impl Inactivity {
    /// Returns true if the answer of a probe may make the resource active: its fields are checked like those of an
    /// active one.
    pub(super) fn ends_with_answer(&self) -> bool {
        let missing = self.unknown_until.as_deref().unwrap_or_default();
        steadfast_resources::ResourceId::parse(missing).is_some_and(|id| id.kind == "probe")
    }

    /// Returns true if the condition holds, and a value of a field waits for a probe.
    pub(super) fn waits_for_probe(&self) -> bool {
        self.condition.is_empty() && self.ends_with_answer()
    }

    /// Joins the reasons of an outer and an inner condition: no answer of a probe changes a condition that is false.
    pub(super) fn join(outer: Option<Arc<Self>>, inner: Arc<Self>) -> Arc<Self> {
        match outer {
            Some(outer) if !outer.ends_with_answer() => outer,
            Some(outer) if inner.ends_with_answer() => {
                let waiting = joined_sums(&outer.waiting, &inner.waiting);
                Arc::new(Self { waiting, ..Self::clone(&outer) })
            }
            _ => inner,
        }
    }
}

/// The number of conditions that a resource stores apart; the last sum stands for all further ones.
const MOST_WAITING: usize = 32;

/// Returns the sums of an outer and an inner chain of conditions.
fn joined_sums(outer: &[u64], inner: &[u64]) -> Arc<[u64]> {
    let mut all = outer.to_vec();
    for sum in inner {
        let is_full = all.len() >= MOST_WAITING;
        match all.last_mut().filter(|_| is_full) {
            Some(last) => {
                let mut joined = DefaultHasher::new();
                (*last, *sum).hash(&mut joined);
                *last = joined.finish();
            }
            None => all.push(*sum),
        }
    }
    all.into()
}

/// An edge between all resources of a module and a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModuleEdge {
    /// The full instance of the module.
    pub(super) instance: Arc<str>,
    /// The key: `after`, `before`, `notify` or `subscribe`.
    pub(super) relation: super::ast::Relation,
    /// The target as written.
    pub(super) target: String,
    /// The position of the target.
    pub(super) span: Span,
}

impl Origin {
    /// Returns the prefix of the identities in a document: `shop/` in the instance `shop`, and nothing outside.
    pub(super) fn prefix(&self) -> String {
        if self.instance.is_empty() { String::new() } else { format!("{}/", self.instance) }
    }
}
