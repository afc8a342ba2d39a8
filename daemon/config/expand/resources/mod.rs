//! Resources: each entry of `resources` gives one resource, or one for each item of its loop.
//!
//! Reading order: this file, `conditions`, `loops`, `fields`, `field_parts`, `references`, `received`, `commands`,
//! `templates`, `loaded_templates`. The folder never decides what an expression means: `evaluate` does.

pub(in crate::config::expand) mod commands;
pub(in crate::config::expand) mod conditions;
mod field_parts;
pub(in crate::config::expand) mod fields;
pub(in crate::config::expand) mod loaded_templates;
pub(in crate::config::expand) mod loops;
pub(in crate::config::expand) mod received;
mod references;
pub(in crate::config) mod templates;

use crate::config::ast::{Relation, claim_field, is_read_if_inactive};
use crate::config::document::tree::{Node, Tree};
use crate::config::document::{Document, Inactivity, Note};
use crate::config::expand::evaluate::LoopItem;
use crate::config::expand::names::probe_identity;
use crate::config::expand::outcome::Outcome;
use crate::config::expand::resources::conditions::Condition;
use crate::config::expand::resources::fields::Target;
use crate::config::expand::{Context, Expander, copy_nodes};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::config::read::Reader;
use crate::config::source_file::Span;
use crate::expressions::Value;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use steadfast_resources::KindSpec;

/// The keys that the expansion itself uses.
const CONTROL: [&str; 2] = ["when", "for_each"];

impl Expander<'_> {
    /// Expands `resources`, a map of lists by kind; returns the new node.
    pub(in crate::config::expand) fn expand_resources(
        &mut self,
        context: &Context,
        node: usize,
        document: &mut Document,
    ) -> usize {
        let Some(Node::Map(pairs)) = context.tree().node(node) else {
            return copy_nodes(context.tree(), node, &mut document.tree);
        };
        let mut kinds = Vec::new();
        for (key, value) in pairs.clone() {
            let kind = context.text_of(key).map(str::to_owned).unwrap_or_default();
            let spec = self.kinds.find(&kind);
            let copied_key = copy_nodes(context.tree(), key, &mut document.tree);
            let list = match (spec, context.tree().node(value)) {
                (Some(spec), Some(Node::List(items))) => {
                    let mut expanded = Vec::with_capacity(items.len());
                    for item in items.clone() {
                        self.expand_entry(context, (spec, item), document, &mut expanded);
                    }
                    document.tree.push(Node::List(expanded), context.tree().span(value))
                }
                // The reader reports an unknown kind and a value that is no list.
                _ => copy_nodes(context.tree(), value, &mut document.tree),
            };
            kinds.push((copied_key, list));
        }
        document.tree.push(Node::Map(kinds), context.tree().span(node))
    }

    /// Expands one entry of a kind.
    fn expand_entry(
        &mut self,
        context: &Context,
        (spec, item): (&'static KindSpec, usize),
        document: &mut Document,
        expanded: &mut Vec<usize>,
    ) {
        if self.used.is_over {
            return;
        }
        if !matches!(context.tree().node(item), Some(Node::Map(_))) {
            if !self.count_resource(context, item, "the list")
                || self.refuse_command_name(context, (spec, item)).is_none()
            {
                return;
            }
            let copy = self.expand_static(context, item, &mut document.tree, "name");
            if let Some(copy) = copy {
                let resource = named_resource(context, (item, copy), &mut document.tree);
                document.notes.insert(resource, note(context));
                expanded.push(resource);
            }
            return;
        }
        let for_each = context.tree().entry(item, "for_each").map(|(_, value)| value);
        let Some(for_each) = for_each else {
            if self.count_resource(context, item, "the list") {
                expanded.extend(self.expand_one(context, (spec, item), document));
            }
            return;
        };
        let Some(items) = self.loop_items(context, for_each) else {
            self.is_complete = false;
            self.unknown_fields(context, (spec, item));
            return;
        };
        for each in items {
            let of = format!("the loop over `{}`", quoted(&each.of));
            if !self.count_resource(context, for_each, &of) {
                return;
            }
            let inner = with_item(context, &each);
            let before = document.tree.bytes();
            expanded.extend(self.expand_one(&inner, (spec, item), document));
            let bytes = document.tree.bytes().saturating_sub(before);
            if !self.count_copies(&inner, item, bytes) {
                return;
            }
        }
    }

    /// Expands one resource; returns its node, or nothing after a problem.
    fn expand_one(
        &mut self,
        context: &Context,
        (spec, item): (&'static KindSpec, usize),
        document: &mut Document,
    ) -> Option<usize> {
        self.uses.begin_resource();
        let mut note = note(context);
        // All problems of a resource are reported in one run.
        let mut is_wrong = false;
        if let Some((_, when)) = context.tree().entry(item, "when") {
            match self.evaluate_condition(context, when) {
                Condition::Holds(text) => note.condition = Some(text),
                Condition::Fails(reason) => {
                    note.inactive = Some(Inactivity::join(note.inactive, reason));
                }
                Condition::Wrong => is_wrong = true,
            }
        }
        if let Some(of_item) = Self::unknown_control(context, item) {
            self.report(context, item, of_item);
        }
        let hides_fields = note.hides_fields();
        if !hides_fields {
            is_wrong |= self.refuse_command_name(context, (spec, item)).is_none();
        }
        let mut pairs = Vec::new();
        let has_name = context.tree().entry(item, "name").is_some();
        if let (false, Some(each)) = (has_name, &context.scope.item) {
            let span = context.tree().span(item);
            let key = document.tree.push_text("name".to_owned(), true, span);
            pairs.push((key, document.tree.push_text(each.key.to_string(), false, span)));
        }
        let mut target = Target { spec, item, pairs, unknown: None, unknown_fields: Vec::new() };
        for (key, value) in context.tree().entries(item).to_vec() {
            let name = context.text_of(key).map(str::to_owned).unwrap_or_default();
            if CONTROL.contains(&name.as_str()) {
                continue;
            }
            if hides_fields && !is_read_if_inactive(spec, &name) {
                if claim_field(spec, &name).is_some() {
                    let key = (key, name.as_str(), value);
                    self.expand_quietly(context, key, &mut document.tree, &mut target);
                }
                continue;
            }
            let key = (key, name.as_str(), value);
            is_wrong |= self.expand_key(context, key, &mut document.tree, &mut target).is_none();
        }
        if is_wrong {
            self.uses.end_resource();
            self.unknown_fields(context, (spec, item));
            return None;
        }
        if !hides_fields && let Some(until) = target.unknown.take() {
            let reason = Inactivity { unknown_until: Some(until), ..Inactivity::default() };
            note.inactive = note.inactive.or_else(|| Some(Arc::new(reason)));
            note.unknown_fields = target.unknown_fields.into();
        }
        // Names within the instance; a target of an edge has no prefix there.
        let probes = self.uses.end_resource();
        if !self.check_probes(context, item, &probes) {
            return None;
        }
        let own: BTreeSet<String> =
            probes.iter().map(|probe| name_within(context, probe).to_owned()).collect();
        let probes: Vec<String> = own.union(&context.probes).cloned().collect();
        add_probes(&mut document.tree, &mut target.pairs, &probes, context.tree().span(item));
        let expanded = document.tree.push(Node::Map(target.pairs), context.tree().span(item));
        document.notes.insert(expanded, note);
        Some(expanded)
    }

    /// Reports the unknown keys of a resource that is left out because of another problem.
    fn unknown_fields(&mut self, context: &Context, (spec, item): (&'static KindSpec, usize)) {
        let (notes, instance) = (HashMap::new(), context.origin.prefix().into());
        let mut reader = Reader {
            source: &context.parsed.file,
            kinds: self.kinds,
            tree: context.tree(),
            origin: &context.origin,
            instance,
            notes: &notes,
            item: context.item.clone(),
            problems: &mut *self.problems,
        };
        reader.unknown_fields(spec, item);
    }

    /// Expands a static field of an inactive resource: `purge` spares its path. A field that cannot be computed is left
    /// out, and is no problem: the condition may say that it has no value.
    fn expand_quietly(
        &mut self,
        context: &Context,
        key: (usize, &str, usize),
        into: &mut Tree<'static>,
        target: &mut Target,
    ) {
        self.run_quietly(|expander| expander.expand_key(context, key, into, target));
    }

    /// Runs a part of the expansion whose problems are not reported, except an exceeded budget.
    pub(in crate::config::expand) fn run_quietly<T>(
        &mut self,
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let is_complete = self.is_complete;
        let problems = std::mem::take(self.problems);
        let was_quiet = std::mem::replace(&mut self.is_quiet, true);
        let result = run(self);
        self.is_quiet = was_quiet;
        let quiet = std::mem::replace(self.problems, problems);
        if self.used.is_over {
            quiet.list.into_iter().for_each(|problem| self.problems.push(problem));
        } else {
            self.is_complete = is_complete;
        }
        result
    }

    /// Returns the problem of a control key that is written like one of another tool.
    fn unknown_control(context: &Context, item: usize) -> Option<Problem> {
        let (_, value) = context.tree().entry(item, "count")?;
        let is_number = context.text_of(value).is_some_and(|text| text.parse::<u32>().is_ok());
        is_number.then(|| {
            Problem::new(Code::Loop, "loops have no count: instances are known by key")
                .hint("write: for_each: [a, b, c]")
        })
    }

    /// Expands a node whose value must be known at load and may use no probe.
    pub(in crate::config::expand) fn expand_static(
        &mut self,
        context: &Context,
        node: usize,
        into: &mut Tree<'static>,
        field: &str,
    ) -> Option<usize> {
        match context.tree().node(node)? {
            Node::Scalar(scalar) if scalar.text.contains("${") => {
                let names = self.names_in(context, node);
                if !self.names_are_static(context, node, (field, &names)) {
                    return None;
                }
                let value = self.scalar_expression(&context.at_load(), node)?;
                let Some(text) = value.embedded_text() else {
                    let kind = crate::config::expand::values::kind_of(&value);
                    let what = format!("`{field}` wants a string, the expression is {kind}");
                    let written = context.text_of(node).unwrap_or_default().trim();
                    let inner = written.trim_start_matches("${").trim_end_matches('}');
                    let hint = match &value {
                        _ if inner == "item" => {
                            Some("an item of a map has ${item.key} and ${item.value}".to_owned())
                        }
                        Value::List(_) if field == "name" => Some(format!(
                            "one resource for each item: for_each: {}, name: \"${{item}}\"",
                            quoted(inner.trim())
                        )),
                        _ => None,
                    };
                    self.report(context, node, Problem::new(Code::Expression, what).hint_if(hint));
                    return None;
                };
                Some(into.push_text(text, false, context.tree().span(node)))
            }
            Node::List(items) => {
                let items = items.clone().into_iter();
                let copied: Vec<Option<usize>> =
                    items.map(|item| self.expand_static(context, item, into, field)).collect();
                let copied: Option<Vec<usize>> = copied.into_iter().collect();
                Some(into.push(Node::List(copied?), context.tree().span(node)))
            }
            _ => {
                self.doubt_text(context, node, field);
                Some(copy_nodes(context.tree(), node, into))
            }
        }
    }

    /// Expands the list `edges`: its names are known at load, as those of the resources are.
    pub(in crate::config::expand) fn expand_edges(
        &mut self,
        context: &Context,
        node: usize,
        into: &mut Tree<'static>,
    ) -> Option<usize> {
        let mut names = Vec::new();
        self.names_below(context, node, &mut names);
        if !self.names_are_static(context, node, ("an edge", &names)) {
            return None;
        }
        self.expand_plain(&context.at_load(), node, into)
    }

    /// Expands a node outside of resources: every scalar may be an expression.
    pub(in crate::config::expand) fn expand_plain(
        &mut self,
        context: &Context,
        node: usize,
        into: &mut Tree<'static>,
    ) -> Option<usize> {
        match context.tree().node(node)? {
            Node::Map(pairs) => {
                let mut copied = Vec::with_capacity(pairs.len());
                for (key, value) in pairs.clone() {
                    let copied_key = copy_nodes(context.tree(), key, into);
                    copied.push((copied_key, self.expand_plain(context, value, into)?));
                }
                Some(into.push(Node::Map(copied), context.tree().span(node)))
            }
            Node::List(items) => {
                let copied: Option<Vec<usize>> = items
                    .clone()
                    .into_iter()
                    .map(|item| self.expand_plain(context, item, into))
                    .collect();
                Some(into.push(Node::List(copied?), context.tree().span(node)))
            }
            Node::Scalar(scalar) if scalar.text.contains("${") => {
                match self.evaluate_scalar(context, node) {
                    Outcome::Known(value) => Some(crate::config::expand::values::push_value(
                        into,
                        &value,
                        context.tree().span(node),
                    )),
                    Outcome::Unknown(until) => {
                        let what = format!("the value must be known at load; `{until}` is not");
                        self.report(context, node, Problem::new(Code::Expression, what));
                        None
                    }
                    Outcome::Failed => None,
                }
            }
            _ => Some(copy_nodes(context.tree(), node, into)),
        }
    }
}

/// Returns the map of a resource that is only a name, where a use of a module may add metaparameters and a condition
/// may add edges; elsewhere the name itself.
fn named_resource(
    context: &Context,
    (item, name): (usize, usize),
    tree: &mut Tree<'static>,
) -> usize {
    if context.text_of(item).is_none() || !context.is_module() && context.probes.is_empty() {
        return name;
    }
    let span = context.tree().span(item);
    let mut pairs = vec![(tree.push_text("name".to_owned(), true, span), name)];
    let probes: Vec<String> = context.probes.iter().cloned().collect();
    add_probes(tree, &mut pairs, &probes, span);
    tree.push(Node::Map(pairs), span)
}

/// Returns the context of one item of a loop.
pub(in crate::config::expand) fn with_item(context: &Context, each: &Arc<LoopItem>) -> Context {
    let mut inner = context.clone();
    inner.scope.item = Some(Arc::clone(each));
    inner.item = Some(Arc::clone(&each.key));
    inner
}

/// Returns the name of a probe as seen from the instance of a context.
pub(in crate::config::expand) fn name_within<'name>(
    context: &Context,
    probe: &'name str,
) -> &'name str {
    probe.strip_prefix(&context.origin.prefix()).unwrap_or(probe)
}

/// Returns the note of a resource in a context.
fn note(context: &Context) -> Note {
    Note { item: context.item.clone(), inactive: context.inactive.clone(), ..Note::default() }
}

/// Adds the automatic edges from the probes that a resource uses: `after: ["probe[NAME]"]`.
fn add_probes(
    tree: &mut Tree<'static>,
    pairs: &mut Vec<(usize, usize)>,
    probes: &[String],
    span: Span,
) {
    if probes.is_empty() {
        return;
    }
    let is_after = |(key, _): &&(usize, usize)| {
        tree.scalar(*key).is_some_and(|key| key.text == Relation::After.key())
    };
    let written = pairs.iter().find(is_after).map(|(_, value)| *value);
    let mut targets = match written.and_then(|value| tree.node(value)) {
        Some(Node::List(items)) => items.clone(),
        Some(Node::Scalar(_)) => written.into_iter().collect(),
        _ => Vec::new(),
    };
    let text = |target: &usize| Some(tree.scalar(*target)?.text.to_string());
    let known: Vec<String> = targets.iter().filter_map(text).collect();
    for probe in probes {
        let target = probe_identity(probe);
        if !known.contains(&target) {
            targets.push(tree.push_text(target, false, span));
        }
    }
    let list = tree.push(Node::List(targets), span);
    if let Some((_, value)) = pairs.iter_mut().find(|(_, value)| Some(*value) == written) {
        *value = list;
    } else {
        let key = tree.push_text(Relation::After.key().to_owned(), true, span);
        pairs.push((key, list));
    }
}
