//! Templates of files: `template` with `with` becomes the content. With `values`, the text is finished at run time: it
//! becomes a received value, so that no secret is part of the expansion.

use crate::config::document::tree::{Node, Tree};
use crate::config::expand::evaluate::Outcome;
use crate::config::expand::names::{environment, has_failed, is_from_probe, with_values};
use crate::config::expand::resources::fields::Target;
use crate::config::expand::{Context, Expander, copy_nodes};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::{LONGEST_TEMPLATE, Template, TemplateError, TemplateLoader, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::KindSpec;

/// The keys of a template.
pub(in crate::config::expand) const KEYS: [&str; 3] = ["template", "with", "values"];
/// The mark around the name of a value in a rendered template. No template can contain this character.
const MARK: char = '\u{fdd0}';
/// The maximum number of templates that one template includes.
const MOST_INCLUDED: usize = 100;

/// A template with the texts that it includes.
struct Loaded {
    name: String,
    text: String,
    included: BTreeMap<String, String>,
}

/// The names that a template gets from its resource.
#[derive(Default)]
struct Names {
    with: BTreeMap<String, Value>,
    /// The placeholder of each value that is known at run time.
    marks: BTreeMap<String, String>,
    /// The map of these values.
    values: Option<usize>,
}

/// Returns true for a key that belongs to a template in a kind that has templates.
pub(in crate::config::expand) fn is_template_key(spec: &KindSpec, name: &str) -> bool {
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
        let loaded = self.load_template(context, value)?;
        let names = match self.template_names(context, target.item, into) {
            Outcome::Known(names) => names,
            Outcome::Unknown(until) => {
                target.unknown = Some(until);
                return Some(());
            }
            Outcome::Failed => return None,
        };
        for mark in names.marks.keys() {
            self.refuse_filters(context, value, (&loaded, mark))?;
        }
        let text = self.render(context, value, (&loaded, &names))?;
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

    /// Reads `template`: a path, or a map with `text`.
    fn load_template(&mut self, context: &Context, node: usize) -> Option<Loaded> {
        if let Some((_, text)) = context.tree().entry(node, "text") {
            let text = context.text_of(text).unwrap_or_default().to_owned();
            let included = self.load_included(context, node, &text)?;
            return Some(Loaded { name: "template".to_owned(), text, included });
        }
        let path = self.static_path(context, node)?;
        let text = match self.read_template(context, &path) {
            Ok(Some(text)) => text,
            Ok(None) => {
                let problem = crate::config::expand::sources::inputs::missing_file(&path);
                self.report(context, node, problem);
                return None;
            }
            Err(problem) => {
                self.report(context, node, problem);
                return None;
            }
        };
        let included = self.load_included(context, node, &text)?;
        Some(Loaded { name: path, text, included })
    }

    fn read_template(&mut self, context: &Context, path: &str) -> Result<Option<String>, Problem> {
        let file = context.parsed.file.base.join(path);
        let display = crate::config::expand::sources::include::display_beside(
            &context.parsed.file.display,
            path,
            &file,
        );
        let Some(number) = self.inputs.read(&file, &display)? else { return Ok(None) };
        Ok(self.inputs.sources.get(number).map(|source| source.text.clone()))
    }

    /// Reads the templates that a template includes, by their names as written.
    fn load_included(
        &mut self,
        context: &Context,
        node: usize,
        text: &str,
    ) -> Option<BTreeMap<String, String>> {
        let mut included = BTreeMap::new();
        let mut length = text.len();
        let mut open = included_names(text);
        while let Some(name) = open.pop() {
            if included.contains_key(&name) {
                continue;
            }
            let path: PathBuf = crate::config::expand::sources::inputs::normal(
                &context.parsed.file.base.join(&name),
            );
            if !path.starts_with(&context.parsed.file.base) || Path::new(&name).is_absolute() {
                let what = format!("the included template `{}` lies outside", quoted(&name));
                let hint = "a template includes only files below the folder of the graph or module";
                self.report(context, node, Problem::new(Code::Include, what).hint(hint));
                return None;
            }
            match self.read_template(context, &name) {
                Ok(Some(text)) => {
                    length += text.len();
                    open.extend(included_names(&text));
                    included.insert(name, text);
                }
                // The engine reports a missing template where it is used.
                Ok(None) => {}
                Err(problem) => {
                    self.report(context, node, problem);
                    return None;
                }
            }
            let is_long = length > LONGEST_TEMPLATE;
            if included.len() > MOST_INCLUDED || is_long {
                let what = if is_long {
                    format!("the template and its includes exceed {} KiB", LONGEST_TEMPLATE >> 10)
                } else {
                    format!("the template includes more than {MOST_INCLUDED} others")
                };
                self.report(context, node, Problem::new(Code::Budget, what));
                return None;
            }
        }
        Some(included)
    }

    /// Evaluates `with`, and names the values of `values`.
    fn template_names(
        &mut self,
        context: &Context,
        item: usize,
        into: &mut Tree<'static>,
    ) -> Outcome<Names> {
        let mut names = Names::default();
        let (mut is_wrong, mut unknown) = (false, None);
        if let Some((_, with)) = context.tree().entry(item, "with") {
            for (key, value) in context.tree().entries(with).to_vec() {
                let name = context.text_of(key).unwrap_or_default().to_owned();
                let value = match context.tree().node(value) {
                    Some(Node::Scalar(scalar)) if scalar.text.contains("${") => {
                        self.evaluate_scalar(context, value)
                    }
                    _ => self.node_value(context, value).map_or(Outcome::Failed, Outcome::Known),
                };
                match value {
                    Outcome::Known(value) => drop(names.with.insert(name, value)),
                    Outcome::Unknown(until) => unknown = unknown.or(Some(until)),
                    // The other values may have problems too.
                    Outcome::Failed => is_wrong = true,
                }
            }
        }
        if is_wrong {
            return Outcome::Failed;
        }
        if let Some(until) = unknown {
            return Outcome::Unknown(until);
        }
        let Some((_, values)) = context.tree().entry(item, "values") else {
            return Outcome::Known(names);
        };
        let mut pairs = Vec::new();
        for (key, value) in context.tree().entries(values).to_vec() {
            let name = context.text_of(key).unwrap_or_default().to_owned();
            let Some(copied) = self.expand_source(context, value, into) else {
                return Outcome::Failed;
            };
            pairs.push((copy_nodes(context.tree(), key, into), copied));
            names.marks.insert(name.clone(), format!("{MARK}{name}{MARK}"));
        }
        if !pairs.is_empty() {
            names.values = Some(into.push(Node::Map(pairs), context.tree().span(values)));
        }
        Outcome::Known(names)
    }

    /// Refuses each use of a run-time value except `{{ name }}`: a filter would see the placeholder, not the value.
    fn refuse_filters(
        &mut self,
        context: &Context,
        node: usize,
        (loaded, name): (&Loaded, &str),
    ) -> Option<()> {
        let texts = std::iter::once(&loaded.text).chain(loaded.included.values());
        let is_wrong = texts.into_iter().any(|text| is_processed(text, name));
        if is_wrong {
            let name = quoted(name);
            let what = format!("the template may print `{name}` only as {{{{ {name} }}}}");
            let hint =
                "a received value or secret is known at run time; filters and conditions are not";
            self.report(context, node, Problem::new(Code::Expression, what).hint(hint));
            return None;
        }
        Some(())
    }

    fn render(
        &mut self,
        context: &Context,
        node: usize,
        (loaded, names): (&Loaded, &Names),
    ) -> Option<String> {
        let included = loaded.included.clone();
        let read_included: TemplateLoader =
            Arc::new(move |name: &str| Ok(included.get(name).cloned()));
        let template = match Template::parse(&loaded.name, &loaded.text, Some(read_included)) {
            Ok(template) => template,
            Err(error) => {
                self.report_template(context, node, &error);
                return None;
            }
        };
        let names_used = template.names();
        self.uses.note_names(&names_used, &context.origin.instance);
        let uses_facts = loaded.text.contains("facts")
            || loaded.included.values().any(|text| text.contains("facts"));
        if uses_facts {
            context.scope.facts.use_root();
        }
        if let Some(name) = names_used.iter().find(|name| is_from_probe(&context.scope, name)) {
            let what = format!("the template uses `{}`: pass it by `with:`", quoted(name));
            self.report(context, node, Problem::new(Code::Expression, what));
            return None;
        }
        if has_failed(&context.scope, &names_used) {
            return None;
        }
        let known: Vec<&str> =
            names.with.keys().chain(names.marks.keys()).map(String::as_str).collect();
        let mut types = environment(&context.scope, context.is_module(), uses_facts);
        for (name, value) in &names.with {
            types = types.with_root(name, value.value_type());
        }
        let problems = template.check(&types, &known);
        if !problems.is_empty() {
            for problem in &problems {
                self.report_template(context, node, problem);
            }
            return None;
        }
        let is_open = !loaded.included.is_empty();
        let roots = ["vars", "params", "item"].map(str::to_owned);
        let read = roots.iter().filter(|root| {
            is_open || names_used.iter().any(|name| name.split('.').next() == Some(root.as_str()))
        });
        if !self.count_read(context, read, false) {
            let what = "the templates of the graph read more than 256 MiB of values";
            self.exceed(context, context.tree().span(node), (what, "a value"));
            return None;
        }
        let rendered = with_values(
            &context.scope,
            (context.is_module(), &self.cache.engine_values),
            |scope| template.render(&names.with, &names.marks, scope),
        );
        match rendered {
            Ok(text) => Some(text),
            Err(error) => {
                self.report_template(context, node, &error);
                None
            }
        }
    }

    fn report_template(&mut self, context: &Context, node: usize, error: &TemplateError) {
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

/// Replaces the placeholders by references, and escapes what looks like a reference.
fn with_references(text: &str, marks: &BTreeMap<String, String>) -> String {
    let mut text = text.replace("${", "$${");
    for (name, mark) in marks {
        text = text.replace(mark.as_str(), &format!("${{{name}}}"));
    }
    text
}

/// Returns the names in `include`, `import`, `from` and `extends`.
fn included_names(text: &str) -> Vec<String> {
    let Ok(pattern) = regex_lite::Regex::new(
        "\\{%[-+]?\\s*(?:include|import|from|extends)\\s+(?:\"([^\"]+)\"|'([^']+)')",
    ) else {
        return Vec::new();
    };
    let name = |found: regex_lite::Captures<'_>| {
        found.get(1).or_else(|| found.get(2)).map(|name| name.as_str().to_owned())
    };
    pattern.captures_iter(text).filter_map(name).collect()
}

/// Returns true if a template uses a name otherwise than `{{ name }}`.
fn is_processed(text: &str, name: &str) -> bool {
    let escaped = regex_lite::escape(name);
    let print = regex_lite::Regex::new(&format!("\\{{\\{{[-+]?\\s*{escaped}\\s*[-+]?\\}}\\}}"));
    let other = regex_lite::Regex::new(&format!("\\{{[{{%][^}}]*\\b{escaped}\\b"));
    match (print, other) {
        (Ok(print), Ok(other)) => other.is_match(&print.replace_all(text, "")),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{included_names, is_processed};

    #[test]
    fn uses_of_run_time_values_are_recognised() {
        for text in ["a {{ key }} b", "{{key}}", "{{- key -}}", "key {{ other }}", "{{ keyed }}"] {
            assert!(!is_processed(text, "key"), "{text}");
        }
        for text in ["{{ key | sh }}", "{% if key %}x{% endif %}", "{{ f(key) }}"] {
            assert!(is_processed(text, "key"), "{text}");
        }
        assert_eq!(included_names("{% include \"a.j2\" %}{%- from 'b' import c %}"), ["a.j2", "b"]);
    }
}
