//! The evaluation by minijinja.
//!
//! The tree is written again as an expression of minijinja. Each name becomes an input (`v0`), so that only used values
//! are converted and an absent value is an error; each function is one of the closed list.

use super::nested_values::charge_parts;
use crate::expressions::error::{Cause, ExpressionError};
use crate::expressions::functions::pattern_cost::work_of_match;
use crate::expressions::functions::table::{FUNCTIONS, Function};
use crate::expressions::scope::Scope;
use crate::expressions::syntax::node::{Node, NodeKind, Operator};
use crate::expressions::syntax::parse::shortened;
use crate::expressions::value::Value;
use minijinja::value::{Object, Rest};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

/// The work that one expression may do; it bounds the memory to about 64 bytes each.
const FUEL: u64 = 500_000;

/// The work that an expression counts if it fails before it has used its own.
const WORK_OF_FAILURE: u64 = FUEL / 4;

/// The name of the function that reads an item of a list.
const ITEM: &str = "item_at";

/// The name of the function that refuses an integer above 64 bits behind each calculation.
const FIT: &str = "fit_int";

/// The name of the function behind each expression that notes the work, and the name of its counter.
const NOTE: &str = "note_work";
const COUNTER: &str = "work";

/// The functions of the language and nothing else.
static ENGINE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut engine = Environment::empty();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_fuel(Some(FUEL));
    add_functions(&mut engine);
    engine.add_filter(ITEM, item_at);
    engine.add_filter(FIT, fit_int);
    engine.add_filter(NOTE, note_work);
    engine
});

/// Registers each function of the language as a filter.
fn add_functions(engine: &mut Environment<'static>) {
    for function in FUNCTIONS.iter().filter(|function| function.name != "default") {
        add_function(engine, function);
    }
}

/// Registers the functions that Jinja lacks as filters of templates.
pub(in crate::expressions) fn add_missing_functions(engine: &mut Environment<'static>) {
    for function in FUNCTIONS.iter().filter(|function| function.is_own) {
        add_function(engine, function);
    }
}

fn add_function(engine: &mut Environment<'static>, function: &'static Function) {
    engine.add_filter(
        function.name,
        move |state: &State<'_, '_>, arguments: Rest<minijinja::Value>| {
            // The length of a list or map needs no copy.
            if let ("length", [value]) = (function.name, &*arguments.0)
                && let (None, Some(length)) = (value.as_str(), value.len())
            {
                return Ok(length.into());
            }
            // Each argument is copied.
            for argument in arguments.iter() {
                charge_parts(state, argument)?;
            }
            if let ("matches", [text, pattern]) = (function.name, &*arguments.0) {
                let text = text.as_str().unwrap_or_default();
                let pattern = pattern.as_str().unwrap_or_default();
                state.consume_fuel(work_of_match(text, pattern))?;
            }
            let mut room = LARGEST_VALUE;
            let values = arguments.iter().map(|argument| convert(argument, &mut room));
            let values = values.collect::<Result<Vec<_>, _>>();
            let count = arguments.len();
            let result = match values {
                Ok(_) if count < function.least || count > function.most => {
                    Err(format!("has a wrong number of values; write {}", function.usage))
                }
                Ok(values) => (function.run)(values),
                Err(problem) => Err(problem),
            };
            let result = result.map_err(|problem| failed(format!("`{}` {problem}", function.name)));
            result.map(|value| EngineValues::default().convert(&value))
        },
    );
}

/// Returns item `index` of a list; a negative index counts from the end.
fn item_at(list: &minijinja::Value, index: i64) -> Result<minijinja::Value, Error> {
    let length = list.len().unwrap_or(0);
    let counted = i64::try_from(length).unwrap_or(i64::MAX);
    let from_start = if index < 0 { counted.saturating_add(index) } else { index };
    match usize::try_from(from_start) {
        Ok(place) if place < length => list.get_item_by_index(place),
        _ => Err(failed(format!("the list has {length} items, no item {index}"))),
    }
}

/// Returns the result of a calculation, unless it exceeds the integers of the language: minijinja has larger ones.
fn fit_int(value: minijinja::Value, sign: &str) -> Result<minijinja::Value, Error> {
    if value.is_integer() && value.as_i64().is_none() {
        return Err(failed(format!("`{sign}` gives {value}: overflow of an int of 64 bits")));
    }
    Ok(value)
}

/// The work of one evaluation.
#[derive(Debug, Default)]
struct WorkCounter(AtomicU64);

impl Object for WorkCounter {}

/// Notes the work so far, and returns the value as it is.
fn note_work(
    state: &State<'_, '_>,
    value: minijinja::Value,
    counter: &minijinja::Value,
) -> minijinja::Value {
    if let (Some(counter), Some((used, _))) =
        (counter.downcast_object_ref::<WorkCounter>(), state.fuel_levels())
    {
        counter.0.store(used, Ordering::Relaxed);
    }
    value
}

fn failed(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// A compiled expression with its inputs.
#[derive(Debug)]
pub(in crate::expressions) struct Program {
    compiled: minijinja::Expression<'static, 'static>,
    inputs: Vec<Input>,
    /// The byte ranges in the compiled text, with the byte ranges in the text of the user.
    places: Vec<(usize, usize, (usize, usize))>,
}

#[derive(Debug)]
enum Input {
    /// A value of the scope.
    Name(Vec<String>),
    /// True if the scope has the value of this name.
    IsPresent(Vec<String>),
    /// A text or a float of the expression.
    Constant(Value),
}

impl Program {
    /// Compiles a tree.
    pub(in crate::expressions) fn compile(node: &Node) -> Result<Self, ExpressionError> {
        let mut writer = Writer::default();
        writer.put("(");
        writer.write(node);
        writer.put(&format!(")|{NOTE}({COUNTER})"));
        let Writer { text, inputs, places, .. } = writer;
        match ENGINE.compile_expression_owned(text) {
            Ok(compiled) => Ok(Self { compiled, inputs, places }),
            Err(error) => {
                let message = format!("cannot be compiled: {error}");
                Err(ExpressionError::new(Cause::Syntax, node.range(), message))
            }
        }
    }

    /// Evaluates the expression.
    pub(in crate::expressions) fn run(&self, scope: &Scope<'_>) -> Result<Value, ExpressionError> {
        let mut context = BTreeMap::new();
        let mut own = EngineValues::default();
        let mut shared = scope.engine_values();
        let converter = shared.as_deref_mut().unwrap_or(&mut own);
        for (number, input) in self.inputs.iter().enumerate() {
            let value = match input {
                Input::Name(path) => match scope.value_at(path) {
                    Some(value) => converter.convert(value),
                    // The error shows up if the value is used.
                    None => failed(absent_message(path)).into(),
                },
                Input::IsPresent(path) => scope.value_at(path).is_some().into(),
                Input::Constant(value) => converter.convert(value),
            };
            context.insert(format!("v{number}"), value);
        }
        drop(shared);
        let counter = Arc::new(WorkCounter::default());
        let noted = minijinja::Value::from_dyn_object(Arc::clone(&counter));
        context.insert(COUNTER.to_owned(), noted);
        let context = minijinja::Value::from_pairs(context);
        let result = self.compiled.eval(context);
        scope.add_work(match &result {
            Ok(_) => counter.0.load(Ordering::Relaxed),
            Err(error) if error.kind() == ErrorKind::OutOfFuel => FUEL,
            Err(_) => WORK_OF_FAILURE,
        });
        let result = result.map_err(|error| self.explain(&error))?;
        from_engine(&result).map_err(|problem| {
            let range = self.places.last().map_or((0, 0), |(_, _, range)| *range);
            ExpressionError::new(Cause::Value, range, format!("the result {problem}"))
        })
    }

    /// Turns an error of minijinja into one with a place in the text of the user.
    fn explain(&self, error: &Error) -> ExpressionError {
        let range = error.range().unwrap_or(0..0);
        let around = |(start, end, _): &&(usize, usize, (usize, usize))| {
            *start <= range.start && range.end <= *end
        };
        let place = self.places.iter().filter(around).min_by_key(|(start, end, _)| end - start);
        let (_, _, place) = place.or_else(|| self.places.last()).copied().unwrap_or((0, 0, (0, 0)));
        let detail = error.detail().unwrap_or_default();
        let message = match error.kind() {
            ErrorKind::OutOfFuel => "the expression computes too much".to_owned(),
            _ if detail.starts_with("unable to calculate") => {
                let calculation = detail.trim_start_matches("unable to calculate ");
                let zero = calculation.ends_with(" 0");
                let reason = if zero { "division by zero" } else { "the result is too large" };
                format!("cannot calculate `{}`: {reason}", shortened(calculation))
            }
            _ if detail.is_empty() => error.kind().to_string(),
            _ => detail.to_owned(),
        };
        ExpressionError::new(Cause::Value, place, message)
    }
}

/// Returns the message about a value that the scope lacks.
pub(in crate::expressions) fn absent_message(path: &[String]) -> String {
    let name = shortened(&path.join("."));
    match path.first().map(String::as_str) {
        Some("facts") => format!("the fact `{}` is absent", name.trim_start_matches("facts.")),
        Some("probe") => format!("`{name}` has no value yet"),
        _ => format!("`{name}` is absent"),
    }
}

/// The bytes of values, as [`Value::size`] counts them, above which a cache of converted values is emptied.
const LARGEST_CACHE: usize = 32 << 20;

/// The values that were converted for minijinja: a list or map that several values share is converted once.
#[derive(Default)]
pub struct EngineValues {
    /// The converted values by address; the value itself keeps the address in use.
    known: HashMap<usize, (Value, minijinja::Value)>,
    bytes: usize,
}

/// Omits the values, which may be large.
impl fmt::Debug for EngineValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineValues").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl EngineValues {
    /// Converts a value.
    pub(in crate::expressions) fn convert(&mut self, value: &Value) -> minijinja::Value {
        let address = match value {
            Value::Bool(truth) => return (*truth).into(),
            Value::Int(number) => return (*number).into(),
            Value::Float(number) => return (*number).into(),
            Value::Text(text) => return text.as_str().into(),
            Value::List(items) => items.shared_address(items.len()),
            Value::Map(entries) => entries.shared_address(entries.len()),
        };
        if let Some((_, known)) = address.and_then(|address| self.known.get(&address)) {
            return known.clone();
        }
        let converted: minijinja::Value = match value {
            Value::List(items) => {
                items.iter().map(|item| self.convert(item)).collect::<Vec<_>>().into()
            }
            Value::Map(entries) => {
                let entries =
                    entries.iter().map(|(key, value)| (key.as_str(), self.convert(value)));
                minijinja::Value::from_pairs(entries)
            }
            _ => return minijinja::Value::UNDEFINED,
        };
        if let Some(address) = address {
            self.bytes = self.bytes.saturating_add(value.own_size());
            if self.bytes > LARGEST_CACHE {
                self.known.clear();
                self.bytes = value.own_size();
            }
            self.known.insert(address, (value.clone(), converted.clone()));
        }
        converted
    }
}

/// The maximum size of a value that an expression gives, in bytes; a number counts as much as 16 bytes of text.
const LARGEST_VALUE: usize = 8 << 20;
/// The bytes that a map takes besides its entries.
const BYTES_OF_MAP: usize = 600;
const TOO_LARGE: &str = "exceeds 8 MiB: a list or map is too large";

/// Converts a value of minijinja. Fails if the value exceeds 8 MiB: a list that is joined with itself doubles.
pub(in crate::expressions) fn from_engine(value: &minijinja::Value) -> Result<Value, String> {
    let mut room = LARGEST_VALUE;
    convert(value, &mut room)
}

/// Converts a value, and takes its size from the room that is left.
fn convert(value: &minijinja::Value, room: &mut usize) -> Result<Value, String> {
    use minijinja::value::ValueKind;
    let size = value.as_str().map_or(0, str::len).saturating_add(16);
    *room = room.checked_sub(size).ok_or(TOO_LARGE)?;
    match value.kind() {
        ValueKind::Bool => Ok(Value::Bool(value.is_true())),
        ValueKind::Number if value.is_integer() => match value.as_i64() {
            Some(number) => Ok(Value::Int(number)),
            None => Err(format!("is {value}: overflow of an int of 64 bits")),
        },
        ValueKind::Number => match f64::try_from(value.clone()) {
            Ok(number) if number.is_finite() => Ok(Value::Float(number)),
            _ => Err("is no finite number".to_owned()),
        },
        ValueKind::String => Ok(Value::Text(value.as_str().unwrap_or_default().to_owned())),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter().map_err(|error| error.to_string())?;
            let items = items.map(|item| convert(&item, room));
            Ok(Value::List(items.collect::<Result<Vec<_>, _>>()?.into()))
        }
        ValueKind::Map => {
            *room = room.checked_sub(BYTES_OF_MAP).ok_or(TOO_LARGE)?;
            let keys = value.try_iter().map_err(|error| error.to_string())?;
            let entries = keys.map(|key| {
                let entry = value.get_item(&key).map_err(|error| error.to_string())?;
                Ok((key.to_string(), convert(&entry, room)?))
            });
            Ok(Value::Map(entries.collect::<Result<BTreeMap<_, _>, String>>()?.into()))
        }
        ValueKind::Undefined => Err("is absent".to_owned()),
        other => Err(format!("is {other}, which is no value of the language")),
    }
}

/// Writes a tree as an expression of minijinja.
#[derive(Default)]
struct Writer {
    text: String,
    inputs: Vec<Input>,
    places: Vec<(usize, usize, (usize, usize))>,
    /// The input of each name: a name that is repeated is converted once.
    names: HashMap<Vec<String>, usize>,
    /// The name that was written last.
    last_name: Vec<String>,
}

impl Writer {
    fn write(&mut self, node: &Node) {
        let start = self.text.len();
        match &node.kind {
            NodeKind::Bool(truth) => self.put(if *truth { "true" } else { "false" }),
            NodeKind::Int(number) => self.put(&number.to_string()),
            NodeKind::Float(number) => self.put_input(Input::Constant(Value::Float(*number))),
            NodeKind::Text(text) => self.put_input(Input::Constant(Value::Text(text.clone()))),
            NodeKind::List(items) => self.put_list("[", items, "]"),
            NodeKind::Path(path) => self.put_name(path),
            NodeKind::Key(map, key) => {
                self.write(map);
                self.put("[");
                self.put_input(Input::Constant(Value::Text(key.clone())));
                self.put("]");
            }
            NodeKind::Index(list, index) => {
                self.put("(");
                self.write(list);
                self.put("|");
                self.put(ITEM);
                self.put_between(["(", "))"], [index]);
            }
            NodeKind::Not(inner) => self.put_between(["(not ", ")"], [inner]),
            NodeKind::Negate(inner) => {
                self.put_between(["(-(", &format!("))|{FIT}('-')")], [inner]);
            }
            NodeKind::Binary(Operator::NotIn, left, right) => {
                self.put_between(["(not (", " in ", "))"], [left, right]);
            }
            NodeKind::Binary(Operator::Concat, left, right) => {
                self.put("(");
                self.write_concat(left, right);
                self.put(")");
            }
            NodeKind::Binary(
                operator @ (Operator::Add
                | Operator::Subtract
                | Operator::Multiply
                | Operator::FloorDivide
                | Operator::Remainder),
                left,
                right,
            ) => {
                let sign = operator.sign();
                let end = format!(")|{FIT}('{sign}')");
                self.put_between(["(", &format!(" {sign} "), &end], [left, right]);
            }
            NodeKind::Binary(operator, left, right) => {
                let sign = format!(" {} ", operator.sign());
                self.put_between(["(", &sign, ")"], [left, right]);
            }
            NodeKind::If(value, condition, other) => {
                self.put_between(["(", " if ", " else ", ")"], [value, condition, other]);
            }
            NodeKind::Default(value, other) => {
                self.put("(");
                self.write(value);
                self.put(" if ");
                self.put_input(Input::IsPresent(self.last_name.clone()));
                self.put_between([" else ", ")"], [other]);
            }
            NodeKind::Call(function, arguments) => {
                self.put("(");
                if let Some((first, others)) = arguments.split_first() {
                    self.write(first);
                    self.put("|");
                    self.put(function.name);
                    self.put_list("(", others, ")");
                }
                self.put(")");
            }
        }
        self.places.push((start, self.text.len(), node.range()));
    }

    /// Writes a chain of `~` without brackets, because minijinja nests at most 150 of them. It writes a bool as `True`;
    /// `string` writes one as the language does.
    fn write_concat(&mut self, left: &Node, right: &Node) {
        match &left.kind {
            NodeKind::Binary(Operator::Concat, first, second) => self.write_concat(first, second),
            _ => self.put_between(["", "|string"], [left]),
        }
        self.put_between([" ~ ", "|string"], [right]);
    }

    /// Writes each node after the text with its number, and the last text at the end.
    fn put_between<const N: usize, const M: usize>(&mut self, texts: [&str; N], nodes: [&Node; M]) {
        let mut nodes = nodes.into_iter();
        for text in texts {
            self.put(text);
            if let Some(node) = nodes.next() {
                self.write(node);
            }
        }
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn put_list(&mut self, open: &str, items: &[Node], close: &str) {
        self.put(open);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            self.write(item);
        }
        self.put(close);
    }

    fn put_name(&mut self, path: &[String]) {
        self.last_name = path.to_vec();
        if let Some(number) = self.names.get(path) {
            self.text.push_str(&format!("v{number}"));
            return;
        }
        self.names.insert(path.to_vec(), self.inputs.len());
        self.put_input(Input::Name(path.to_vec()));
    }

    fn put_input(&mut self, input: Input) {
        self.text.push_str(&format!("v{}", self.inputs.len()));
        self.inputs.push(input);
    }
}
