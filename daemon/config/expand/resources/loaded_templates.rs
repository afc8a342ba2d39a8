//! The templates of resources: each is read and parsed once, with the templates that it includes.

use crate::config::expand::sources::include::display_beside;
use crate::config::expand::sources::inputs::{missing_file, normal};
use crate::config::expand::{Context, Expander};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::{LONGEST_TEMPLATE, Template, TemplateLoader};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The maximum number of templates that one template includes.
const MOST_INCLUDED: usize = 100;
/// The bytes of templates above which the cache is emptied: a parsed template takes about ten times its text.
const LARGEST_CACHE: usize = 1 << 20;
/// The bytes that each parsed template takes besides.
const BYTES_OF_TEMPLATE: usize = 8 << 10;
/// The work of parsing a template besides that for its bytes.
const WORK_OF_PARSE: u64 = 200;
/// The work of parsing a tag of a template.
const WORK_OF_TAG: u64 = 60;

/// A parsed template.
pub(super) struct LoadedTemplate {
    pub(super) template: Template,
    pub(super) has_includes: bool,
    /// True if the template or an included one may use facts.
    pub(super) uses_facts: bool,
    /// The text, and those of the included templates.
    texts: Vec<String>,
    /// The names that were looked for; true for a name that is used otherwise than `{{ name }}`.
    processed: RefCell<HashMap<String, bool>>,
}

/// A template as it is written: the file that names it, and the path or the node of its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TemplateKey {
    File(usize, String),
    Text(usize, usize),
}

/// The parsed templates; emptied when they become large.
#[derive(Default)]
pub(in crate::config::expand) struct TemplateCache {
    known: HashMap<TemplateKey, Rc<LoadedTemplate>>,
    bytes: usize,
    /// The number of trials with stand-ins that failed: each can take long.
    pub(super) failed_trials: usize,
}

impl Expander<'_> {
    /// Reads and parses `template`: a path, or a map with `text`.
    pub(super) fn load_template(
        &mut self,
        context: &Context,
        node: usize,
    ) -> Option<Rc<LoadedTemplate>> {
        let own = context.tree().entry(node, "text").map(|(_, text)| text);
        let key = match own {
            Some(text) => TemplateKey::Text(context.parsed.source, text),
            None => TemplateKey::File(context.parsed.source, self.static_path(context, node)?),
        };
        if let Some(known) = self.templates.known.get(&key) {
            return Some(Rc::clone(known));
        }
        let (name, text) = match &key {
            TemplateKey::Text(_, text) => {
                ("template".to_owned(), context.text_of(*text).unwrap_or_default().to_owned())
            }
            TemplateKey::File(_, path) if path.contains("{{") => {
                let what = "`template` names a file; this is the text of a template";
                let hint = "write template: {text: \"…\"}";
                self.report(context, node, Problem::new(Code::Field, what).hint(hint));
                return None;
            }
            TemplateKey::File(_, path) => (path.clone(), self.template_text(context, node, path)?),
        };
        self.doubt_expression(context, node, &text);
        let loaded = Rc::new(self.parse_template(context, node, (&name, text))?);
        let bytes = loaded.texts.iter().map(String::len).sum::<usize>() + BYTES_OF_TEMPLATE;
        self.templates.bytes += bytes;
        if self.templates.bytes > LARGEST_CACHE {
            self.templates.known.clear();
            self.templates.bytes = bytes;
        }
        self.templates.known.insert(key, Rc::clone(&loaded));
        Some(loaded)
    }

    /// Parses a template, and reads those that it includes.
    fn parse_template(
        &mut self,
        context: &Context,
        node: usize,
        (name, text): (&str, String),
    ) -> Option<LoadedTemplate> {
        let included = self.read_included(context, node, &text)?;
        let has_includes = !included.is_empty();
        let texts: Vec<String> =
            std::iter::once(text.clone()).chain(included.values().cloned()).collect();
        let work = texts.iter().map(|text| work_of_parsing(text)).sum();
        if !self.count_work(context, context.tree().span(node), work) {
            return None;
        }
        let loader: TemplateLoader = Arc::new(move |name: &str| Ok(included.get(name).cloned()));
        match Template::parse(name, &text, Some(loader)) {
            Ok(template) => Some(LoadedTemplate {
                template,
                has_includes,
                uses_facts: texts.iter().any(|text| text.contains("facts")),
                texts,
                processed: RefCell::default(),
            }),
            Err(error) => {
                self.report_template(context, node, &error);
                None
            }
        }
    }

    /// Returns the text of a template file; reports a missing one.
    fn template_text(&mut self, context: &Context, node: usize, path: &str) -> Option<String> {
        match self.read_template(context, path) {
            Ok(Some(text)) => Some(text),
            Ok(None) => {
                self.report(context, node, missing_file(path));
                None
            }
            Err(problem) => {
                self.report(context, node, problem);
                None
            }
        }
    }

    fn read_template(&mut self, context: &Context, path: &str) -> Result<Option<String>, Problem> {
        let file = context.parsed.file.base.join(path);
        let display = display_beside(&context.parsed.file.display, path, &file);
        let Some(number) = self.inputs.read(&file, &display)? else { return Ok(None) };
        Ok(self.inputs.sources.get(number).map(|source| source.text.clone()))
    }

    /// Reads the templates that a template includes, by their names as written.
    fn read_included(
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
            let path: PathBuf = normal(&context.parsed.file.base.join(&name));
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

    /// Refuses each use of a run-time value except `{{ name }}`: a filter would see the placeholder, not the value.
    pub(super) fn refuse_filters(
        &mut self,
        context: &Context,
        node: usize,
        (loaded, name): (&LoadedTemplate, &str),
    ) -> Option<()> {
        let known = loaded.processed.borrow().get(name).copied();
        let is_wrong = if let Some(known) = known {
            known
        } else {
            let work = loaded.texts.iter().map(|text| text.len() as u64).sum();
            if !self.count_work(context, context.tree().span(node), work) {
                return None;
            }
            let found = loaded.texts.iter().any(|text| is_processed(text, name));
            loaded.processed.borrow_mut().insert(name.to_owned(), found);
            found
        };
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
}

/// Returns the work of parsing a template: a byte of text takes little time, and a tag much.
fn work_of_parsing(text: &str) -> u64 {
    let tags = text.matches("{{").count() + text.matches("{%").count();
    let bytes = (text.len() / 2) as u64;
    WORK_OF_PARSE.saturating_add(bytes).saturating_add((tags as u64).saturating_mul(WORK_OF_TAG))
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
