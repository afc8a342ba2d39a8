//! Templates of files: `template` with `with` becomes the content. With `values`, the text is finished at run time: it
//! becomes a received value, so that no secret is part of the expansion.

use crate::config::document::tree::{Node, Tree};
use crate::config::expand::names::{
    environment, has_failed, is_from_probe, missing_value, with_values,
};
use crate::config::expand::outcome::Outcome;
use crate::config::expand::resources::fields::Target;
use crate::config::expand::resources::loaded_templates::LoadedTemplate;
use crate::config::expand::{Context, Expander, copy_nodes};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::{TemplateError, Value, ValueType};
use std::collections::BTreeMap;
use steadfast_resources::KindSpec;

/// The keys of a template.
pub(in crate::config::expand) const KEYS: [&str; 3] = ["template", "with", "values"];
/// The mark around the name of a value in a rendered template. No template can contain this character.
const MARK: char = '\u{fdd0}';
/// The work of a name that a template gets: its type and its value.
const WORK_OF_NAME: u64 = 20;
/// The number of failed trials with stand-ins after which no other template is tried: each can take 20 ms.
const MOST_FAILED_TRIALS: usize = 40;

/// The names that a template gets from its resource.
#[derive(Default)]
struct Names {
    with: BTreeMap<String, Value>,
    /// The names whose values wait, with their types, and the probe or resource that the last of them waits for.
    waiting: BTreeMap<String, Option<ValueType>>,
    unknown_until: Option<String>,
    /// The placeholder of each value that is known at run time.
    marks: BTreeMap<String, String>,
    /// The map of these values.
    values: Option<usize>,
}

/// Returns true for a key that belongs to a template in a kind that has templates.
pub(in crate::config) fn is_template_key(spec: &KindSpec, name: &str) -> bool {
    let is_own = spec.fields.iter().any(|it| it.name == name);
    KEYS.contains(&name) && spec.template_field().is_some() && !is_own
}

impl Expander<'_> {
    /// Expands `template`; the keys that belong to it are read with it.
    pub(in crate::config::expand) fn expand_template_key(
        &mut self,
        context: &Context,
        (key, name, value): (usize, &str, usize),
        into: &mut Tree<'static>,
        target: &mut Target,
    ) -> Option<()> {
        if name != "template" {
            if context.tree().entry(target.item, "template").is_none() {
                let what = format!("`{name}` needs `template`");
                self.report(context, key, Problem::new(Code::UnknownKey, what));
                return None;
            }
            return Some(());
        }
        let made = target.spec.template_field()?.name;
        if context.tree().entry(target.item, made).is_some() {
            let what = format!("`template` and `{made}` exclude each other");
            self.report(context, key, Problem::new(Code::Field, what).hint("keep one of them"));
            return None;
        }
        let is_right = self.check_template_form(context, value);
        let has_maps = self.check_template_maps(context, target.item);
        if !is_right || !has_maps {
            return None;
        }
        let loaded = self.load_template(context, value)?;
        let names = self.template_names(context, target.item, into)?;
        for mark in names.marks.keys() {
            self.refuse_filters(context, value, (&loaded, mark))?;
        }
        let text = match self.render(context, value, (&loaded, &names)) {
            Outcome::Known(text) => text,
            Outcome::Unknown(until) => {
                target.wait_for(until, made);
                if names.values.is_none() {
                    return Some(());
                }
                // The values are checked before the text is known.
                names.marks.values().map(String::as_str).collect()
            }
            Outcome::Failed => return None,
        };
        // The copies of a loop count with their resource.
        let is_copy = context.scope.item.is_some();
        if !is_copy && !self.count_copies(context, value, text.len()) {
            return None;
        }
        let span = context.tree().span(value);
        let Some(values) = names.values else {
            let key = into.push_text(made.to_owned(), true, context.tree().span(key));
            let rendered = into.push_text(text, false, span);
            target.pairs.push((key, rendered));
            return Some(());
        };
        let text = with_references(&text, &names.marks);
        let entry = |into: &mut Tree<'static>, name: &str, value: usize| {
            (into.push_text(name.to_owned(), true, span), value)
        };
        let text = into.push_text(text, false, span);
        let sources = vec![entry(into, "template", text), entry(into, "values", values)];
        let source = into.push(Node::Map(sources), span);
        into.mark_rendered(source);
        let receipts = vec![entry(into, made, source)];
        let recv = into.push(Node::Map(receipts), span);
        target.pairs.push(entry(into, "recv", recv));
        Some(())
    }

    /// Reports a template that is neither a path nor a map with `text` alone.
    fn check_template_form(&mut self, context: &Context, node: usize) -> bool {
        let example = "write template: FILE, or template: {text: \"…\"}";
        let problem = |what: String| Problem::new(Code::Field, what).hint(example);
        match context.tree().node(node) {
            Some(Node::Map(pairs)) => {
                let keys = pairs.clone().into_iter().map(|(key, _)| key);
                let mut is_right = true;
                for key in keys {
                    let name = context.text_of(key).unwrap_or_default();
                    let found = match name {
                        "text" => continue,
                        "file" => problem("`template` has no key `file`".to_owned())
                            .hint("write the file alone: template: FILE"),
                        name => {
                            let what = format!("unknown key `{}` in `template`", quoted(name));
                            Problem::new(Code::UnknownKey, what).hint(example)
                        }
                    };
                    self.report(context, key, found);
                    is_right = false;
                }
                if is_right && context.tree().entries(node).is_empty() {
                    self.report(context, node, problem("`template` is empty".to_owned()));
                    is_right = false;
                }
                is_right
            }
            Some(Node::List(_)) => {
                let what = "`template` should be a file or a map with `text`, found a list";
                self.report(context, node, problem(what.to_owned()));
                false
            }
            _ => true,
        }
    }

    /// Reports `with` and `values` of a template that are no maps.
    fn check_template_maps(&mut self, context: &Context, item: usize) -> bool {
        let mut is_right = true;
        for (name, example) in [
            ("with", "write with: {port: 8080}; the template then prints {{ port }}"),
            ("values", "write values: {password: {secret: NAME}}"),
        ] {
            let Some((_, node)) = context.tree().entry(item, name) else { continue };
            if matches!(context.tree().node(node), Some(Node::Map(_))) || context.is_null(node) {
                continue;
            }
            let what = format!("`{name}` of a template should be a map of names");
            self.report(context, node, Problem::new(Code::Field, what).hint(example));
            is_right = false;
        }
        is_right
    }

    /// Evaluates `with`, and names the values of `values`.
    fn template_names(
        &mut self,
        context: &Context,
        item: usize,
        into: &mut Tree<'static>,
    ) -> Option<Names> {
        let mut names = Names::default();
        let mut is_wrong = false;
        if let Some((_, with)) = context.tree().entry(item, "with") {
            for (key, node) in context.tree().entries(with).to_vec() {
                let name = context.text_of(key).unwrap_or_default().to_owned();
                match self.node_outcome(context, node) {
                    Outcome::Known(value) => drop(names.with.insert(name, value)),
                    Outcome::Unknown(until) => {
                        let is_scalar = context.tree().scalar(node).is_some();
                        let of = is_scalar.then(|| self.type_of_scalar(context, node)).flatten();
                        names.waiting.insert(name, of);
                        names.unknown_until = Some(until);
                    }
                    // The other values may have problems too.
                    Outcome::Failed => is_wrong = true,
                }
            }
        }
        if is_wrong {
            return None;
        }
        let Some((_, values)) = context.tree().entry(item, "values") else { return Some(names) };
        let mut pairs = Vec::new();
        for (key, value) in context.tree().entries(values).to_vec() {
            let name = context.text_of(key).unwrap_or_default().to_owned();
            let copied = self.expand_source(context, value, into)?;
            pairs.push((copy_nodes(context.tree(), key, into), copied));
            names.marks.insert(name.clone(), format!("{MARK}{name}{MARK}"));
        }
        if !pairs.is_empty() {
            names.values = Some(into.push(Node::Map(pairs), context.tree().span(values)));
        }
        Some(names)
    }

    fn render(
        &mut self,
        context: &Context,
        node: usize,
        (loaded, names): (&LoadedTemplate, &Names),
    ) -> Outcome<String> {
        let (template, uses_facts) = (&loaded.template, loaded.uses_facts);
        let names_used = template.names();
        self.uses.note_names(names_used, &context.origin.instance);
        if uses_facts {
            context.scope.facts.use_root();
        }
        let missing = names_used.iter().find_map(|name| missing_value(&context.scope, name));
        if let Some(name) = names_used.iter().find(|name| is_from_probe(&context.scope, name)) {
            let what = format!("the template uses `{}`: pass it by `with:`", quoted(name));
            self.report(context, node, Problem::new(Code::Expression, what));
            return Outcome::Failed;
        }
        if has_failed(&context.scope, names_used) {
            return Outcome::Failed;
        }
        // The names of included templates are not known before they are rendered.
        let of_facts = context.scope.facts.unknown_until("facts");
        let missing =
            missing.or_else(|| of_facts.filter(|_| uses_facts && loaded.has_includes).cloned());
        if let Some(until) = missing {
            return Outcome::Unknown(until);
        }
        let known = names.with.keys().chain(names.marks.keys()).chain(names.waiting.keys());
        let known: Vec<&str> = known.map(String::as_str).collect();
        let mut types = environment(&context.scope, (context.is_module(), uses_facts), &self.cache);
        let span = context.tree().span(node);
        if !self.count_work(context, span, (names.with.len() as u64).saturating_mul(WORK_OF_NAME)) {
            return Outcome::Failed;
        }
        for (name, value) in &names.with {
            types = types.with_root(name, value.value_type());
        }
        let problems = template.check(&types, &known);
        if !problems.is_empty() {
            for problem in &problems {
                self.report_template(context, node, problem);
            }
            return Outcome::Failed;
        }
        if let Some(until) = &names.unknown_until {
            if self.try_template(context, node, (loaded, names)).is_none() {
                return Outcome::Failed;
            }
            return Outcome::Unknown(until.clone());
        }
        let is_open = loaded.has_includes;
        let roots = ["vars", "params", "item"].map(str::to_owned);
        let read = roots.iter().filter(|root| {
            is_open || names_used.iter().any(|name| name.split('.').next() == Some(root.as_str()))
        });
        if !self.count_read(context, read, false) {
            let what = "the templates of the graph read more than 256 MiB of values";
            self.exceed(context, context.tree().span(node), (what, "a value"));
            return Outcome::Failed;
        }
        let rendered = with_values(&context.scope, (context.is_module(), &self.cache), |scope| {
            template.render(&names.with, &names.marks, scope)
        });
        match rendered {
            Ok(text) if self.count_work(context, context.tree().span(node), 1) => {
                Outcome::Known(text)
            }
            Ok(_) => Outcome::Failed,
            Err(error) => {
                let error = template.explain_absent(&types, error);
                self.report_template(context, node, &error);
                self.count_work(context, context.tree().span(node), 1);
                Outcome::Failed
            }
        }
    }

    /// Renders a template with a stand-in for each value that waits; reports a problem that no value makes right.
    fn try_template(
        &mut self,
        context: &Context,
        node: usize,
        (loaded, names): (&LoadedTemplate, &Names),
    ) -> Option<()> {
        let stand_ins = names.waiting.iter();
        let stand_ins = stand_ins.map(|(name, of)| Some((name.clone(), stand_in(of.as_ref()?)?)));
        let Some(stand_ins) = stand_ins.collect::<Option<BTreeMap<String, Value>>>() else {
            return Some(());
        };
        if self.templates.failed_trials >= MOST_FAILED_TRIALS {
            return Some(());
        }
        let mut with = names.with.clone();
        with.extend(stand_ins);
        let work = self.cache.work.get();
        let rendered = with_values(&context.scope, (context.is_module(), &self.cache), |scope| {
            loaded.template.render(&with, &names.marks, scope)
        });
        if let Err(error) = rendered {
            if error.is_of_any_value() {
                self.report_template(context, node, &error);
                return None;
            }
            // Another value may be right.
            self.templates.failed_trials += 1;
            self.cache.work.set(work);
        }
        self.count_work(context, context.tree().span(node), 1).then_some(())
    }

    /// Reports a problem of a template with its own place.
    pub(super) fn report_template(
        &mut self,
        context: &Context,
        node: usize,
        error: &TemplateError,
    ) {
        let at = if error.line == 0 {
            error.template.clone()
        } else {
            format!("{}:{}:{}", error.template, error.line, error.column)
        };
        let what = format!("{}: {at}", error.message);
        self.report(
            context,
            node,
            Problem::new(Code::Expression, what).hint_if(error.hint.as_ref()),
        );
    }
}

/// Returns a value of a type; none for a type with unknown parts.
fn stand_in(of: &ValueType) -> Option<Value> {
    Some(match of {
        ValueType::Bool => Value::Bool(true),
        ValueType::Int => Value::Int(1),
        ValueType::Float => Value::Float(1.0),
        ValueType::Text => Value::Text("x".to_owned()),
        ValueType::List(items) => Value::List(vec![stand_in(items)?].into()),
        _ => return None,
    })
}

/// Replaces the placeholders by references, and escapes what looks like a reference.
fn with_references(text: &str, marks: &BTreeMap<String, String>) -> String {
    let mut text = text.replace("${", "$${");
    for (name, mark) in marks {
        text = text.replace(mark.as_str(), &format!("${{{name}}}"));
    }
    text
}
