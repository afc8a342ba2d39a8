//! The declared types of probes: an expression is checked before its probe has answered.

use crate::config::document::tree::{Node, Tree};
use crate::config::expand::evaluate::Root;
use crate::config::expand::outcome::Outcome;
use crate::config::expand::text::Part;
use crate::config::expand::written::Written;
use crate::config::expand::{Context, Expander};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::config::source_file::Span;
use crate::expressions::{MapKey, Shared, Value, ValueType};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The declared probes of one instance.
#[derive(Default)]
pub(in crate::config::expand) struct DeclaredProbes {
    /// The types of the answers; none for a name with two types, and for JSON.
    declared: BTreeMap<String, Option<ValueType>>,
    /// True if a loop or an expression makes a name.
    has_computed: bool,
    /// The known types; made at the first use.
    types: OnceCell<Arc<BTreeMap<String, ValueType>>>,
}

impl Expander<'_> {
    /// Notes the probes that a file declares, in the instance of its context.
    pub(in crate::config::expand) fn note_probes(&mut self, context: &Context) {
        let tree = context.tree();
        let resources = tree.root().and_then(|root| tree.entry(root, "resources"));
        let probes = resources.and_then(|(_, kinds)| tree.entry(kinds, "probe"));
        let Some(Node::List(items)) = probes.and_then(|(_, list)| tree.node(list)) else { return };
        let instance = &context.origin.instance;
        let known = self.probes.entry(Arc::clone(instance)).or_default();
        known.types = OnceCell::new();
        for item in items {
            let Some(name) = probe_name(tree, *item) else {
                known.has_computed = true;
                continue;
            };
            let of = declared_type(tree, *item);
            let first = known.declared.entry(name).or_insert_with(|| of.clone());
            if *first != of {
                *first = None;
            }
        }
    }

    /// Reports the probes that a resource uses and no file declares, where they are used. Returns false after a report.
    pub(in crate::config::expand) fn check_probes(
        &mut self,
        context: &Context,
        item: usize,
        used: &[String],
    ) -> bool {
        let known = self.probes.get(&context.origin.instance);
        if known.is_some_and(|known| known.has_computed) {
            return true;
        }
        let declared = known.map_or_else(Vec::new, |known| known.declared.keys().collect());
        let mut unknown = Vec::new();
        for probe in used {
            let name = crate::config::expand::resources::name_within(context, probe);
            if name.contains('/') || declared.iter().any(|known| *known == name) {
                continue;
            }
            // A probe behind a variable is reported with its edge.
            let Some(span) = place_of_name(context, item, &format!("probe.{name}")) else {
                continue;
            };
            let near = crate::nearest_name::nearest(name, declared.iter().map(|it| it.as_str()));
            let near = near.map(|near| format!("; nearest: `{near}`")).unwrap_or_default();
            let what = format!("no probe `{}`{near}", quoted(name));
            let longer = declared.iter().find(|it| it.starts_with(&format!("{name}-")));
            let hint = longer.map(|longer| {
                format!(
                    "write `probe[\"{}\"]`: a name with a minus stands in quotes",
                    quoted(longer)
                )
            });
            let hint = hint.unwrap_or_else(|| {
                "declare it below `resources:`, as an entry of the kind `probe`".to_owned()
            });
            unknown.push((span, Problem::new(Code::Expression, what).hint(hint)));
        }
        let is_right = unknown.is_empty();
        for (span, problem) in unknown {
            self.report_at(context, span, problem);
        }
        is_right
    }

    /// Evaluates the definition of a variable; notes the type of one that waits for a probe.
    pub(super) fn typed_variable(
        &mut self,
        name: &str,
        context: &Context,
        node: usize,
    ) -> Outcome<Value> {
        let outcome = self.evaluate_scalar(context, node);
        if matches!(outcome, Outcome::Unknown(_)) {
            let of = self.type_of_scalar(context, node);
            self.variables.pass.unknown_types.extend(of.map(|of| (name.to_owned(), of)));
        }
        outcome
    }

    /// Returns the type of a scalar that waits for a probe; none if it is not known.
    pub(in crate::config::expand) fn type_of_scalar(
        &mut self,
        context: &Context,
        node: usize,
    ) -> Option<ValueType> {
        match self.split_node(context, node).as_deref() {
            Some([Part::Expression(text)]) => {
                let written = Written::find(context, text, context.tree().span(node));
                self.type_of_unknown(context, written)
            }
            _ => Some(ValueType::Text),
        }
    }

    /// Gives a context the types of the probes that its instance declares so far.
    pub(in crate::config::expand) fn see_probes(&self, context: &mut Context) {
        let Some(known) = self.probes.get(&context.origin.instance) else { return };
        let typed = Arc::clone(known.types.get_or_init(|| {
            let all = known.declared.iter();
            Arc::new(all.filter_map(|(name, of)| Some((name.clone(), of.clone()?))).collect())
        }));
        if Arc::ptr_eq(&typed, &context.scope.probe_types) {
            return;
        }
        // An answer from before a change of the declared type has no meaning for the new type.
        let is_other =
            |name: &String, value: &Value| typed.get(name).is_some_and(|of| !of.accepts(value));
        if context.scope.probes.iter().any(|(name, value)| is_other(name, value)) {
            context.scope.probes.retain(|name, value| !is_other(name, value));
        }
        context.scope.probe_types = typed;
    }
}

/// Returns the root of variables: the known values, and the types of those that wait for a probe.
pub(super) fn with_types(
    known: Shared<BTreeMap<String, Value>>,
    unknown: &BTreeMap<String, ValueType>,
) -> Root {
    let root = Root::of(Value::Map(known));
    if unknown.is_empty() {
        return root;
    }
    let ValueType::Map(mut keys) = ValueType::clone(&root.value_type) else { return root };
    Arc::make_mut(&mut keys)
        .extend(unknown.iter().map(|(name, of)| (name.clone(), MapKey::required(of.clone()))));
    Root { value_type: Arc::new(ValueType::Map(keys)), ..root }
}

/// Returns the span of a dotted name in the first text below a node that has it.
fn place_of_name(context: &Context, node: usize, name: &str) -> Option<Span> {
    let tree = context.tree();
    match tree.node(node)? {
        Node::Scalar(scalar) if scalar.text.contains(name) => {
            let span = tree.span(node);
            let text = context.parsed.file.text.get(span.start as usize..span.end as usize)?;
            let found = text.match_indices(name).find(|(at, _)| {
                let next = text.get(at + name.len()..).and_then(|rest| rest.chars().next());
                next.is_none_or(|next| !next.is_ascii_alphanumeric() && next != '_')
            });
            let start = span.start as usize + found?.0;
            Some(Span::new(start, start + name.len()))
        }
        Node::List(items) => items.iter().find_map(|item| place_of_name(context, *item, name)),
        Node::Map(pairs) => pairs.iter().find_map(|(_, at)| place_of_name(context, *at, name)),
        Node::Scalar(_) | Node::Alias(_) => None,
    }
}

/// Returns the name of a probe, if no expression and no loop makes it.
fn probe_name(tree: &Tree<'static>, item: usize) -> Option<String> {
    let is_loop = tree.entry(item, "for_each").is_some();
    let name = tree.entry(item, "name").map_or(item, |(_, name)| name);
    let name = tree.scalar(name).filter(|name| !is_loop && !name.text.contains("${"))?;
    Some(name.text.to_string())
}

/// Returns the type of the answer, as the kind `probe` reads its fields; none for JSON.
fn declared_type(tree: &Tree<'static>, item: usize) -> Option<ValueType> {
    let text = |node: usize, key: &str| {
        let (_, value) = tree.entry(node, key)?;
        tree.scalar(value).map(|scalar| scalar.text.to_string())
    };
    let value = tree.entry(item, "value").map(|(_, value)| value);
    let of_value = |key: &str| value.and_then(|value| text(value, key));
    if of_value("lines").as_deref() == Some("true") {
        return Some(ValueType::List(Arc::new(ValueType::Text)));
    }
    match text(item, "type").or_else(|| of_value("type")).as_deref() {
        Some("text" | "string") => Some(ValueType::Text),
        Some("int") => Some(ValueType::Int),
        Some("float") => Some(ValueType::Float),
        Some("bool") => Some(ValueType::Bool),
        Some(_) => None,
        None if of_value("json").is_some() => None,
        None if of_value("match").is_some() => Some(ValueType::Bool),
        None if of_value("exit").as_deref() == Some("true") => Some(ValueType::Int),
        None => Some(ValueType::Text),
    }
}
