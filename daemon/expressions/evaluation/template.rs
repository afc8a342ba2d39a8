//! Templates of files: minijinja with `{{ }}`, strict, with bounded work and bounded output.
//!
//! The caller reads files: a template asks its loader for the templates that it includes.

use super::bindings::{find_excess, with_checks, without_checks};
use super::bounded_text::{LONGEST_TEXT, check_length, escaped_length, length_of};
use super::nested_values::{REPEATED, add_bounded_filters, charge_parts};
use super::products::{Factor, Product, products_of};
use super::template_advice::{hint_for_template, hint_for_unknown_name};
use super::text_filters::add_text_filters;
use crate::expressions::environment::Environment;
use crate::expressions::evaluation::program::{EngineValues, add_missing_functions};
use crate::expressions::evaluation::quoting;
use crate::expressions::scope::Scope;
use crate::expressions::syntax::parse::shortened;
use crate::expressions::value::Value;
use crate::expressions::value_type::ValueType;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Error, ErrorKind, State, UndefinedBehavior, escape_formatter};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// The work that one template may do; minijinja counts instructions, items and 64 bytes of data as one.
const FUEL: u64 = 500_000;

/// The work that a template counts if it fails before it has used its own: the engine does not tell how much it was.
const WORK_OF_FAILURE: u64 = FUEL / 4;

/// The bytes of a printed text that cost one more step than the engine counts.
const BYTES_OF_COPY: usize = 32;

/// The number of problems that one check of a template reports.
const MOST_PROBLEMS: usize = 20;

/// The maximum length of one template in bytes.
pub(crate) const LONGEST_TEMPLATE: usize = 512 * 1024;

/// The maximum column of a tag: minijinja counts columns in 16 bits.
const MOST_COLUMNS: usize = 65_000;

/// Reads an included template by its name relative to the folder of the graph or module: `None` if there is none.
pub type TemplateLoader = Arc<dyn Fn(&str) -> Result<Option<String>, String> + Send + Sync>;

/// The engine without a template; a copy is cheap.
static ENGINE: LazyLock<minijinja::Environment<'static>> = LazyLock::new(create_engine);

/// A parsed template.
pub struct Template {
    engine: minijinja::Environment<'static>,
    name: String,
    /// The dotted names that the template itself uses.
    names: BTreeSet<String>,
    products: Vec<Product>,
}

/// A problem of a template, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// The template, which may be an included one.
    pub template: String,
    /// The line, from 1; 0 if the place is unknown.
    pub line: usize,
    /// The column in characters, from 1; 0 if the place is unknown.
    pub column: usize,
    /// One line: the expected and the found thing.
    pub message: String,
    /// Advice for the user.
    pub hint: Option<String>,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}:{}:{}", self.message, self.template, self.line, self.column)
    }
}

impl std::error::Error for TemplateError {}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A value that a template prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The text between `{{` and `}}`.
    pub text: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Template {
    /// Parses a template. `name` is its name in messages.
    ///
    /// # Errors
    /// A [`TemplateError`] for a template that is too long or not in the language.
    pub fn parse(
        name: &str,
        text: &str,
        loader: Option<TemplateLoader>,
    ) -> Result<Self, TemplateError> {
        if text.len() > LONGEST_TEMPLATE {
            let message =
                format!("a template has at most {LONGEST_TEMPLATE} bytes, this has {}", text.len());
            return Err(error_at(name, text, None, message));
        }
        if let Some((at, message)) = find_excess(text) {
            return Err(error_at(name, text, Some(at), message));
        }
        let checked = with_checks(text);
        if let Some(at) = tag_beyond_columns(&checked) {
            let (_, at) = without_checks(&checked, at);
            return Err(error_at(name, text, Some(at), beyond_columns()));
        }
        let mut engine = ENGINE.clone();
        if let Some(loader) = loader {
            engine.set_loader(move |wanted| load_template(&loader, wanted));
        }
        engine
            .add_template_owned(name.to_owned(), checked)
            .map_err(|error| explain(name, &error, &[]))?;
        let as_written = text.contains("facts.local.").then(|| names_as_written(name, text));
        let names = as_written.flatten().unwrap_or_else(|| undeclared_names(&engine, name));
        Ok(Self { engine, name: name.to_owned(), names, products: products_of(text) })
    }

    /// Returns the dotted names that the template itself uses; included templates are not part of it.
    #[must_use]
    pub const fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Checks the names of the template itself: each begins with a name of `known` (those of `with` and `values`), or
    /// is in the environment. The names of included templates, and absent local facts, are checked when they are used.
    #[must_use]
    pub fn check(&self, environment: &Environment, known: &[&str]) -> Vec<TemplateError> {
        let given: BTreeSet<&str> = known.iter().copied().collect();
        let unknown = self.names.iter().filter(|name| !given.contains(first_part(name)));
        let unknown = unknown.filter_map(|name| {
            let path: Vec<String> = name.split('.').map(str::to_owned).collect();
            let error = environment.resolve(&path, (0, 0)).err()?;
            (!environment.is_absent(&path)).then_some((name, error))
        });
        let unknown: Vec<_> = unknown.take(MOST_PROBLEMS).collect();
        let repeated = self.products.iter().filter(|it| is_repeated(environment, it));
        let repeated: Vec<&Product> = repeated.take(MOST_PROBLEMS).collect();
        if unknown.is_empty() && repeated.is_empty() {
            return Vec::new();
        }
        let source = self.source();
        let mut problems = Vec::new();
        for (name, error) in unknown {
            let offset = find_name(&source, name);
            let hint = hint_for_unknown_name(name, known, &error);
            let mut problem = error_at(&self.name, &source, offset, error.message);
            problem.hint = Some(hint);
            problems.push(problem);
        }
        for product in repeated {
            let message = REPEATED.to_owned();
            let mut problem = error_at(&self.name, &source, Some(product.at), message);
            problem.hint = Some("repeat a text by a loop".to_owned());
            problems.push(problem);
        }
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems
    }

    /// Renders the template. The names of `with` and `values` win over those of the scope. A message never contains a
    /// text of `values`.
    ///
    /// # Errors
    /// A [`TemplateError`] with the place, in this or an included template.
    pub fn render(
        &self,
        with: &BTreeMap<String, Value>,
        values: &BTreeMap<String, String>,
        scope: &Scope<'_>,
    ) -> Result<String, TemplateError> {
        let mut context: BTreeMap<&str, minijinja::Value> = BTreeMap::new();
        let mut own = EngineValues::default();
        let mut shared = scope.engine_values();
        let converter = shared.as_deref_mut().unwrap_or(&mut own);
        let mut convert = |value| converter.convert(value);
        context.extend(scope.roots().map(|(name, value)| (name, convert(value))));
        context.extend(with.iter().map(|(name, value)| (name.as_str(), convert(value))));
        let texts = values.iter();
        context.extend(texts.map(|(name, text)| (name.as_str(), text.as_str().into())));
        drop(shared);
        let context = minijinja::Value::from_pairs(context);
        let secrets: Vec<&str> = values.values().map(String::as_str).collect();
        let mut output = BoundedOutput { bytes: Vec::new(), is_full: false };
        let template = self.engine.get_template(&self.name);
        let result =
            template.and_then(|template| template.render_captured_to(context, &mut output));
        scope.add_work(match &result {
            Ok(captured) => captured.state().fuel_levels().map_or(0, |(used, _)| used),
            Err(error) if error.kind() == ErrorKind::OutOfFuel => FUEL,
            Err(_) => WORK_OF_FAILURE,
        });
        if output.is_full {
            let message = format!("the output exceeds {LONGEST_TEXT} bytes");
            return Err(error_at(&self.name, "", None, message));
        }
        result.map_err(|error| explain(&self.name, &error, &secrets))?;
        String::from_utf8(output.bytes)
            .map_err(|error| error_at(&self.name, "", None, error.to_string()))
    }

    /// Returns the values that the template prints without the filter `sh`, for a template that a shell reads.
    #[must_use]
    pub fn printed_without_sh(&self) -> Vec<Printed> {
        let source = self.source();
        let printed = printed_values(&source).into_iter();
        printed
            .filter(|(_, text)| !ends_with_filter(text, "sh"))
            .map(|(offset, text)| {
                let (line, column) = line_and_column(&source, offset);
                Printed { text: text.trim().to_owned(), line, column }
            })
            .collect()
    }

    pub(super) fn source(&self) -> String {
        let template = self.engine.get_template(&self.name);
        let source = template.map(|template| template.source().to_owned()).unwrap_or_default();
        without_checks(&source, 0).0.into_owned()
    }
}

/// Returns the dotted names that a template uses, without those of the engine.
fn undeclared_names(engine: &minijinja::Environment<'_>, name: &str) -> BTreeSet<String> {
    let globals: BTreeSet<&str> = engine.globals().map(|(name, _)| name).collect();
    let Ok(template) = engine.get_template(name) else { return BTreeSet::new() };
    let names = template.undeclared_variables(true).into_iter();
    names.filter(|name| !globals.contains(first_part(name))).collect()
}

/// Returns the dotted names of a template without the filters that it gets: they hide steps behind an absent one.
fn names_as_written(name: &str, text: &str) -> Option<BTreeSet<String>> {
    let mut engine = ENGINE.clone();
    engine.add_template_owned(name.to_owned(), text.to_owned()).ok()?;
    Some(undeclared_names(&engine, name))
}

/// Returns true if a factor of a product is a string or a list: the engine would repeat it.
fn is_repeated(environment: &Environment, product: &Product) -> bool {
    product.factors.iter().any(|factor| match factor {
        Factor::Repeatable => true,
        Factor::Name(name) => {
            let path: Vec<String> = name.split('.').map(str::to_owned).collect();
            let found = environment.resolve(&path, (0, 0));
            let found = found.map(|found| found.value_type);
            matches!(found.as_deref(), Ok(ValueType::Text | ValueType::List(_)))
        }
        Factor::Other => false,
    })
}

/// Returns the number of bytes that `autoescape` makes of one.
fn growth(state: &State<'_, '_>) -> usize {
    if matches!(state.auto_escape(), AutoEscape::None) { 1 } else { 6 }
}

/// Creates an engine with the syntax, the filters and the limits of templates.
fn create_engine() -> minijinja::Environment<'static> {
    let mut engine = minijinja::Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| AutoEscape::None);
    engine.set_fuel(Some(FUEL));
    // The engine writes a bool as `True`; programs that read a file expect `true`.
    engine.set_formatter(|output, state, value| match value.kind() {
        ValueKind::Bool => {
            let text = if value.is_true() { "true" } else { "false" };
            output.write_str(text).map_err(Error::from)
        }
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            charge_parts(state, value)?;
            check_length(length_of(value)?.saturating_mul(growth(state)))?;
            escape_formatter(output, state, value)
        }
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            // Each of several blocks and macros can keep a copy.
            let copied = u64::try_from(text.len() / BYTES_OF_COPY).unwrap_or(u64::MAX);
            state.consume_fuel(copied)?;
            check_length(if growth(state) > 1 { escaped_length(text) } else { text.len() })?;
            escape_formatter(output, state, value)
        }
        _ => escape_formatter(output, state, value),
    });
    // It would print all values, also secret ones.
    engine.remove_global("debug");
    let syntax = SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    if let Ok(syntax) = syntax {
        engine.set_syntax(syntax);
    }
    add_missing_functions(&mut engine);
    quoting::add_filters(&mut engine);
    add_bounded_filters(&mut engine);
    add_text_filters(&mut engine);
    engine
}

/// Asks the loader for an included template; a name outside of the folder is refused.
fn load_template(loader: &TemplateLoader, wanted: &str) -> Result<Option<String>, Error> {
    let refuse = |message: String| Err(Error::new(ErrorKind::BadInclude, message));
    let leaves = wanted.starts_with('/') || wanted.split('/').any(|part| part == "..");
    if leaves || wanted.contains(['\\', '\0']) {
        let wanted = shortened(wanted);
        return refuse(format!("`{wanted}` is outside of the folder of the graph or module"));
    }
    match loader(wanted) {
        Ok(Some(text)) if text.len() > LONGEST_TEMPLATE => {
            refuse(format!("a template has at most {LONGEST_TEMPLATE} bytes"))
        }
        Ok(Some(text)) => match (find_excess(&text), with_checks(&text)) {
            (Some((_, message)), _) => refuse(message),
            (None, checked) if tag_beyond_columns(&checked).is_some() => refuse(beyond_columns()),
            (None, checked) => Ok(Some(checked)),
        },
        Ok(None) => Ok(None),
        Err(problem) => refuse(problem),
    }
}

/// An output that refuses more than the maximum length.
struct BoundedOutput {
    bytes: Vec<u8>,
    is_full: bool,
}

impl std::io::Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > LONGEST_TEXT {
            self.is_full = true;
            return Err(std::io::Error::other("the output is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The hint of a name without a value.
pub(super) const HINT_IF_ABSENT: &str = "give a value by `with`, or write `| default(…)`";

/// Turns an error of minijinja into one for users: the innermost error of included templates.
fn explain(name: &str, error: &Error, secrets: &[&str]) -> TemplateError {
    let mut innermost = error;
    while let Some(source) = innermost.source().and_then(|source| source.downcast_ref::<Error>()) {
        innermost = source;
    }
    let detail = innermost.detail().unwrap_or_default();
    let (mut message, hint) = match innermost.kind() {
        ErrorKind::OutOfFuel => ("out of fuel".to_owned(), Some("the template computes too much")),
        // A range is refused before it uses fuel.
        _ if detail.contains("range has too many elements") => (
            "out of fuel".to_owned(),
            Some("the template computes too much: its range is too long"),
        ),
        ErrorKind::UndefinedError => {
            let detail = if detail.is_empty() { "a name has no value" } else { detail };
            (detail.to_owned(), Some(HINT_IF_ABSENT))
        }
        kind if detail.is_empty() => (kind.to_string(), None),
        kind => (format!("{kind}: {detail}"), None),
    };
    let hint = hint.map(str::to_owned).or_else(|| hint_for_template(detail));
    // A message of the engine may quote a value.
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        message = message.replace(*secret, "…");
    }
    let template = innermost.name().unwrap_or(name);
    let checked = innermost.template_source().unwrap_or_default();
    let offset = innermost.range().map(|range| range.start);
    let (source, moved) = without_checks(checked, offset.unwrap_or(0));
    let offset = offset.map(|_| moved);
    let mut found = error_at(template, &source, offset, shortened_message(&message));
    if found.line == 0 {
        found.line = innermost.line().unwrap_or(0);
        found.column = usize::from(found.line > 0);
    }
    found.hint = hint;
    found
}

/// Returns the first line of a message, at most 100 characters.
fn shortened_message(message: &str) -> String {
    message.lines().next().unwrap_or_default().chars().take(100).collect()
}

fn error_at(name: &str, source: &str, offset: Option<usize>, message: String) -> TemplateError {
    let place = offset.filter(|_| !source.is_empty());
    let (line, column) = place.map_or((0, 0), |offset| line_and_column(source, offset));
    TemplateError { template: name.to_owned(), line, column, message, hint: None }
}

pub(super) fn line_and_column(source: &str, offset: usize) -> (usize, usize) {
    let before = source.get(..offset).unwrap_or(source);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

fn first_part(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// Returns the byte at which a dotted name first stands as a whole word.
fn find_name(source: &str, name: &str) -> Option<usize> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
    source.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = source.get(..*at).unwrap_or_default();
        let after = source.get(at + name.len()..).unwrap_or_default();
        !before.ends_with(is_part) && !after.starts_with(|next| is_part(next) && next != '.')
    })
}

/// Returns the texts between `{{` and `}}` with their offsets; comments and raw blocks have none.
fn printed_values(source: &str) -> Vec<(usize, &str)> {
    let mut printed = Vec::new();
    let mut at = 0;
    while let Some(rest) = source.get(at..) {
        let Some(open) = rest.find('{') else { break };
        let inner_at = at + open + 2;
        let inner = source.get(inner_at..).unwrap_or_default();
        let close = match rest.get(open..open + 2) {
            Some("{{") => inner.find("}}").inspect(|end| {
                printed.push((inner_at, inner.get(..*end).unwrap_or_default()));
            }),
            Some("{#") => inner.find("#}"),
            Some("{%") if inner.trim_start_matches(['-', '+', ' ']).starts_with("raw") => {
                inner.find("endraw")
            }
            _ => {
                at += open + 1;
                continue;
            }
        };
        let Some(close) = close else { break };
        at = inner_at + close + 2;
    }
    printed
}

/// Returns true if the last filter of a printed value is `filter`.
fn ends_with_filter(text: &str, filter: &str) -> bool {
    let text = text.trim().trim_end_matches('-').trim_end();
    text.rsplit_once('|').is_some_and(|(_, last)| last.trim() == filter)
}

/// Returns the message about a tag beyond the maximum column.
fn beyond_columns() -> String {
    format!("a tag stands beyond column {MOST_COLUMNS}: break the line")
}

/// Returns the offset at which a tag passes the maximum column of its line.
fn tag_beyond_columns(text: &str) -> Option<usize> {
    if text.len() <= MOST_COLUMNS {
        return None;
    }
    let mut start = 0;
    text.split_inclusive('\n').find_map(|line| {
        let begin = start;
        start += line.len();
        let (limit, _) = line.char_indices().nth(MOST_COLUMNS)?;
        let (before, rest) = (text.get(..begin + limit)?, line.get(limit..)?);
        let opens =
            |text: &str| ["{{", "{%", "{#"].into_iter().filter_map(|tag| text.rfind(tag)).max();
        let closes = |text: &str| ["}}", "%}", "#}"].into_iter().any(|tag| text.contains(tag));
        let is_open = opens(before).is_some_and(|at| !closes(before.get(at..).unwrap_or_default()));
        (is_open || opens(rest).is_some() || before.ends_with('{')).then_some(begin + limit)
    })
}
