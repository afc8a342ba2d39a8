//! The bridge to the expressions: names and types of a place, parsed expressions, and the problems of both.

use super::budget::bytes_of_result;
use super::cache::{self, Checked};
use super::names::{environment, has_failed, has_type, missing_value, value_of, with_values};
use super::outcome::Outcome;
use super::sources::host_facts::Facts;
use super::written::Written;
use super::{Context, Expander};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted, shorten};
use crate::expressions::{Expression, ExpressionError, Shared, Value, ValueType};
use crate::nearest_name::nearest;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A root of dotted names: its value and its type.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) value: Arc<Value>,
    pub(super) value_type: Arc<ValueType>,
}

impl Root {
    /// Creates a root from its value.
    pub(super) fn of(value: Value) -> Self {
        let value_type = Arc::new(value.value_type());
        Self { value: Arc::new(value), value_type }
    }

    fn empty() -> Self {
        Self::of(Value::Map(Shared::default()))
    }
}

/// The evaluated variables.
#[derive(Debug)]
pub(super) struct Vars {
    pub(super) root: Root,
    /// The variables that wait for a probe, with the probe.
    pub(super) unknown: BTreeMap<String, String>,
    /// The waiting variables that are maps with known parts; the root has the known parts.
    pub(super) partial: BTreeSet<String>,
    /// The variables that use a probe.
    pub(super) from_probes: BTreeSet<String>,
    /// The variables whose problem is reported: their users are silent.
    pub(super) failed: BTreeSet<String>,
    /// The variables with the facts of the last load, for static fields; none if the facts are the same.
    pub(super) at_load: Option<Arc<Self>>,
}

impl Vars {
    /// Returns no variables.
    pub(super) fn none() -> Self {
        Self {
            root: Root::empty(),
            unknown: BTreeMap::new(),
            partial: BTreeSet::new(),
            from_probes: BTreeSet::new(),
            failed: BTreeSet::new(),
            at_load: None,
        }
    }
}

/// One item of a loop.
#[derive(Debug)]
pub(super) struct LoopItem {
    /// The key, which names the instance.
    pub(super) key: Arc<str>,
    /// The value of `item`.
    pub(super) root: Root,
    /// The loop as written, such as `vars.sites`.
    pub(super) of: String,
    /// The common type of all items, if the loop declares none.
    pub(super) joined: Option<Arc<ValueType>>,
}

/// The names that a part of a file may use.
#[derive(Clone)]
pub(super) struct Scope {
    pub(super) facts: Arc<Facts>,
    pub(super) vars: Arc<Vars>,
    /// The parameters; none outside of modules.
    pub(super) params: Option<Arc<Root>>,
    /// The parameters that are secrets, each with the name of its secret.
    pub(super) secrets: Arc<BTreeMap<String, Option<String>>>,
    pub(super) item: Option<Arc<LoopItem>>,
    /// The values of the probes of this instance, by name.
    pub(super) probes: Shared<BTreeMap<String, Value>>,
    /// The declared types of the probes of this instance.
    pub(super) probe_types: Arc<BTreeMap<String, ValueType>>,
    /// The parameters whose values come from probes; each with the probe that it waits for, if that has not answered.
    pub(super) probe_params: Arc<BTreeMap<String, Option<String>>>,
    /// The parameters with the facts of the last load, for static fields; none if the facts are the same.
    pub(super) params_at_load: Option<Arc<ParamsAtLoad>>,
}

/// The parameters of an instance with the facts of the last load.
#[derive(Debug)]
pub(super) struct ParamsAtLoad {
    pub(super) params: Arc<Root>,
    /// As [`Scope::probe_params`].
    pub(super) probe_params: Arc<BTreeMap<String, Option<String>>>,
}

impl Scope {
    /// Creates a scope without variables, with the probes of an instance; outside of modules its name is empty.
    pub(super) fn new(facts: &Arc<Facts>, instance: &str) -> Self {
        Self {
            facts: Arc::clone(facts),
            vars: Arc::new(Vars::none()),
            params: None,
            secrets: Arc::default(),
            item: None,
            probes: facts.probes_of(instance).into(),
            probe_types: Arc::default(),
            probe_params: Arc::default(),
            params_at_load: None,
        }
    }

    /// Returns the scope of static fields, if its facts are other ones than the present facts.
    fn at_load(&self) -> Option<Self> {
        let facts = Arc::clone(self.facts.at_load()?);
        let vars = Arc::clone(self.vars.at_load.as_ref().unwrap_or(&self.vars));
        let mut scope = Self { facts, vars, params_at_load: None, ..self.clone() };
        if let Some(at_load) = &self.params_at_load {
            scope.params = Some(Arc::clone(&at_load.params));
            scope.probe_params = Arc::clone(&at_load.probe_params);
        }
        Some(scope)
    }
}

impl Context {
    /// Returns the context of static fields: they keep the facts of the last load.
    pub(super) fn at_load(&self) -> Cow<'_, Self> {
        match self.scope.at_load() {
            Some(scope) => Cow::Owned(Self { scope, ..self.clone() }),
            None => Cow::Borrowed(self),
        }
    }
}

/// The number of comparisons of words for hints that name the nearest one: the search among thousands of names takes
/// long for thousands of problems.
const MOST_COMPARED: usize = 200_000;

/// The number of keys that a message looks at.
const LISTED: usize = 9;

/// The bytes of an expression that are looked at several times for one unit of work.
const BYTES_OF_WORK: u64 = 16;

/// The work of parsing and checking an expression and making its program, besides its length.
const WORK_OF_PARSE: u64 = 160;

impl Expander<'_> {
    /// Parses an expression; reports a problem.
    pub(super) fn parse_expression(
        &mut self,
        context: &Context,
        written: Written<'_>,
    ) -> Option<Expression> {
        let parsed = if let Some(parsed) = self.cache.parsed.get(written.text) {
            parsed.clone()
        } else {
            let parsed = Expression::parse(written.text);
            if !self.count_work(context, written.span_at(0), WORK_OF_PARSE) {
                return None;
            }
            cache::forget_if_many(&mut self.cache.parsed);
            self.cache.parsed.insert(written.text.to_owned(), parsed.clone());
            parsed
        };
        parsed.map_err(|error| self.report_expression(context, written, &error)).ok()
    }

    /// Reports a problem of an expression at its place.
    pub(super) fn report_expression(
        &mut self,
        context: &Context,
        written: Written<'_>,
        error: &ExpressionError,
    ) {
        // The file that defines the variable cannot be read.
        if self.variables.are_incomplete && error.message.starts_with("no variable ") {
            self.is_complete = false;
            return;
        }
        let mut problem =
            Problem::new(Code::Expression, &error.message).hint_if(error.hint.as_ref());
        if let Some(hint) = self.hint_for_kind(error) {
            problem = Problem::new(Code::Expression, &error.message).hint(hint);
        }
        if let Some(problem_of_yaml) = cut_by_comment(context, written, error) {
            problem = problem_of_yaml;
        }
        self.report_at(context, written.span_at(error.offset), problem);
    }

    /// Returns the hint for the name of a kind: other tools read values of resources in expressions.
    fn hint_for_kind(&self, error: &ExpressionError) -> Option<String> {
        let name = error.message.strip_prefix("unknown name `")?.strip_suffix('`')?;
        let is_unlike_others = error.hint.as_ref()?.starts_with("a text stands in quotes");
        let is_kind = is_unlike_others && self.kinds.is_known(name);
        is_kind.then(|| {
            format!("receive the value of a resource: recv: {{FIELD: \"{name}[NAME].VALUE\"}}")
        })
    }

    /// Checks and evaluates an expression. The problems are reported.
    pub(super) fn evaluate(&mut self, context: &Context, written: Written<'_>) -> Outcome<Value> {
        let Some(expression) = self.parse_expression(context, written) else {
            return Outcome::Failed;
        };
        let mentions = expression.mentions();
        let names: BTreeSet<String> = mentions.iter().cloned().collect();
        self.uses.note_names(&names, &context.origin.instance);
        if has_failed(&context.scope, &names) || !self.names_are_known(context, written, &names) {
            return Outcome::Failed;
        }
        let unknown = names.iter().find_map(|name| missing_value(&context.scope, name));
        if unknown.is_some() && !names.iter().all(|name| has_type(&context.scope, name)) {
            return unknown
                .map_or(Outcome::Failed, |it| self.settle(context, (&expression, written), it));
        }
        if names.iter().any(|name| name.starts_with("facts.")) {
            context.scope.facts.use_root();
        }
        if let Err(error) = self.check_expression(context, &expression) {
            self.report_expression(context, written, &error);
            self.report_other_names(context, written, (&expression, &error));
            return Outcome::Failed;
        }
        self.doubt_comparisons(context, (&expression, written));
        if let Some(unknown) = unknown {
            return self.settle(context, (&expression, written), unknown);
        }
        if Self::reads_too_much(context, &mentions) {
            let what = "the expression reads more than 32 MiB of values";
            let hint = "name a large text once, or read it in a template";
            let problem = Problem::new(Code::Expression, what).hint(hint);
            self.report_at(context, written.span_at(0), problem);
            return Outcome::Failed;
        }
        if !self.count_read(context, &mentions, expression.calls_function()) {
            let problem = "the expressions of the graph read more than 256 MiB of values";
            return self.exceed_at(context, written, problem);
        }
        let cache = (context.is_module(), &self.cache);
        let result = with_values(&context.scope, cache, |values| expression.evaluate(values));
        let work = 1 + written.text.len() as u64 / BYTES_OF_WORK;
        if !self.count_work(context, written.span_at(0), work) {
            return Outcome::Failed;
        }
        match result {
            Ok(value) => {
                let bytes = bytes_of_result(&value, expression.as_name().is_some());
                self.counted(context, written, (value, bytes))
            }
            Err(error) => {
                if let Some(truth) = self.settle_failed(context, (&expression, written), &names) {
                    return Outcome::Known(Value::Bool(truth));
                }
                let absent = names.iter().find(|name| {
                    name.starts_with("facts.") && value_of(&context.scope, name).is_none()
                });
                match absent {
                    Some(name) => {
                        let what = format!("the host has no value of `{}`", quoted(name));
                        let hint = "`steadfast doctor` names facts that are absent, and the reason";
                        let problem = Problem::new(Code::Expression, what).hint(hint);
                        self.report_at(context, written.span_at(0), problem);
                    }
                    None => self.report_expression(context, written, &error),
                }
                Outcome::Failed
            }
        }
    }

    /// Returns the type of an expression.
    pub(super) fn check_expression(
        &mut self,
        context: &Context,
        expression: &Expression,
    ) -> Result<ValueType, ExpressionError> {
        let scope = &context.scope;
        let with_facts = expression.may_use_facts();
        let types = [
            Some(Arc::clone(&scope.vars.root.value_type)),
            scope.params.as_ref().map(|it| Arc::clone(&it.value_type)),
            scope.item.as_ref().map(|it| Arc::clone(&it.root.value_type)),
            with_facts.then(|| Arc::clone(&scope.facts.root().value_type)),
        ];
        let address =
            |of: &Option<Arc<ValueType>>| of.as_ref().map_or(0, |it| Arc::as_ptr(it).addr());
        let [vars, params, item, facts] = [0, 1, 2, 3].map(|at| types.get(at).map_or(0, address));
        let probes = Arc::clone(&scope.probe_types);
        let of_probes = Arc::as_ptr(&probes).addr();
        let is_module = usize::from(context.is_module());
        let key = (expression.address(), [vars, params, item, facts, of_probes, is_module]);
        if let Some(checked) = self.cache.checked.get(&key) {
            return checked.result.clone();
        }
        let wants_hints = self.wants_hints();
        let names = environment(scope, (context.is_module(), with_facts), &self.cache);
        let names = names.with_hints(wants_hints);
        let mut result = expression.check(&names);
        let has_bare_name = || {
            let roots = ["vars", "params", "item", "probe"];
            let names = expression.dependencies();
            names.iter().any(|name| !roots.contains(&name.split('.').next().unwrap_or(name)))
        };
        if result.is_err() && !with_facts && wants_hints && has_bare_name() {
            // The message knows the facts too: `hostname` is a slip for `facts.hostname`.
            result =
                expression.check(&environment(scope, (context.is_module(), true), &self.cache));
        }
        if self.is_quiet && result.is_err() {
            // A later report needs the hints.
            return result;
        }
        cache::forget_if_many(&mut self.cache.checked);
        self.cache.checked.insert(
            key,
            Checked {
                result: result.clone(),
                _expression: expression.clone(),
                _types: types,
                _probes: probes,
            },
        );
        result
    }

    /// Returns true if the next problem gets a hint that names the nearest word.
    pub(super) fn wants_hints(&self) -> bool {
        let names = self.variables.count().max(100);
        !self.is_quiet && self.problems.errors().saturating_mul(names) < MOST_COMPARED
    }

    /// Reports the unknown names of an expression besides that of its first problem.
    fn report_other_names(
        &mut self,
        context: &Context,
        written: Written<'_>,
        (expression, first): (&Expression, &ExpressionError),
    ) {
        if !self.wants_hints() || expression.dependencies().len() < 2 {
            return;
        }
        let names = environment(&context.scope, (context.is_module(), true), &self.cache);
        let others = expression.unknown_names(&names);
        for error in others.iter().filter(|error| error.offset != first.offset) {
            self.report_expression(context, written, error);
        }
    }

    /// Counts the bytes of the value of an expression.
    fn counted(
        &mut self,
        context: &Context,
        written: Written<'_>,
        (value, bytes): (Value, usize),
    ) -> Outcome<Value> {
        if self.has_bytes(bytes) {
            return Outcome::Known(value);
        }
        self.exceed_at(context, written, "the values of the graph grow above 32 MiB here")
    }

    /// Reports an exceeded budget at an expression.
    fn exceed_at(&mut self, context: &Context, written: Written<'_>, what: &str) -> Outcome<Value> {
        self.exceed(context, written.span_at(0), (what, "a value"));
        Outcome::Failed
    }

    /// Returns the type of an expression whose value is not known yet; none if a probe in it has no declared type.
    pub(super) fn type_of_unknown(
        &mut self,
        context: &Context,
        written: Written<'_>,
    ) -> Option<ValueType> {
        let expression = self.parse_expression(context, written)?;
        let names = expression.dependencies();
        if !names.iter().all(|name| has_type(&context.scope, name)) {
            return None;
        }
        self.check_expression(context, &expression).ok()
    }

    /// Reports a name of a loop item that the items do not have.
    fn names_are_known(
        &mut self,
        context: &Context,
        written: Written<'_>,
        names: &BTreeSet<String>,
    ) -> bool {
        let Some(item) = context.scope.item.clone() else { return true };
        let Some(joined) = &item.joined else { return true };
        let if_hints = self.wants_hints().then_some(());
        for name in names.iter().filter(|name| name.starts_with("item.")) {
            let mut of_type: &ValueType = joined;
            let mut value: Option<&Value> = Some(&item.root.value);
            for step in name.split('.').skip(1) {
                let ValueType::Map(keys) = of_type else { break };
                let Some(key) = keys.get(step) else {
                    let known = || keys.keys().map(String::as_str);
                    let listed: Vec<&str> = known().take(LISTED).collect();
                    let (of, key) = (shorten(&item.of, 22), shorten(step, 20));
                    let listed = shorten(&listed.join(", "), 22);
                    let what = format!("items of `{of}` have no `{key}`; they have {listed}");
                    // The search among thousands of keys takes long for thousands of items.
                    let is_long =
                        self.problems.errors().saturating_mul(keys.len()) >= MOST_COMPARED;
                    let most = if_hints.filter(|()| !is_long).map_or(0, |()| keys.len());
                    let near = nearest(step, known().take(most));
                    let hint = near.map(|near| format!("did you mean `{near}`?"));
                    let at = written.text.find(step).unwrap_or_default();
                    let problem = Problem::new(Code::Loop, what).hint_if(hint);
                    self.report_at(context, written.span_at(at), problem);
                    return false;
                };
                let next = match value {
                    Some(Value::Map(entries)) => entries.get(step),
                    _ => None,
                };
                if next.is_none() && key.optional {
                    let line = context.parsed.file.line(written.span.start);
                    let key = quoted(&item.key);
                    let what = format!("item `{key}` lacks `{step}`, which line {line} uses");
                    let hint = format!(
                        "add it to the item, or declare it: for_each: {{in: {}, item: {{{step}: {{type: …, default: …}}}}}}",
                        item.of
                    );
                    let problem = Problem::new(Code::Loop, what).hint(hint);
                    self.report_at(context, written.span_at(0), problem);
                    return false;
                }
                of_type = &key.value_type;
                value = next;
            }
        }
        true
    }
}

/// Returns the problem of an expression that a YAML comment cuts.
fn cut_by_comment(
    context: &Context,
    written: Written<'_>,
    error: &ExpressionError,
) -> Option<Problem> {
    let end = written.start? + written.text.len();
    let rest = context.parsed.file.text.get(end..)?;
    let is_cut = rest.starts_with(" #") && error.offset + 1 >= written.text.len()
        || rest.starts_with(" #") && written.text.matches(['"', '\'']).count() % 2 == 1;
    is_cut.then(|| {
        Problem::new(
            Code::Expression,
            "the expression ends inside a text; YAML began a comment at ` #`: quote the whole",
        )
        .hint("put the whole expression into single quotes, as in: when: 'facts.a == \"x #y\"'")
    })
}
