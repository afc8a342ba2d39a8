//! Declarations of parameters and of loop items: types, defaults, patterns and bounds.

use crate::config::document::tree::Node;
use crate::config::expand::values::{kind_of, shown};
use crate::config::expand::{Context, Expander};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::{MapKey, Value, ValueType};
use crate::nearest_name::nearest;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A declared value.
#[derive(Clone, Debug)]
pub(in crate::config::expand) struct Declaration {
    pub(in crate::config::expand) value_type: DeclaredType,
    pub(in crate::config::expand) default: Option<Value>,
    pub(in crate::config::expand) required: bool,
    /// The description (`doc:`).
    pub(in crate::config::expand) doc: Option<String>,
    pattern: Option<String>,
    min: Option<f64>,
    max: Option<f64>,
    choices: Vec<Value>,
}

/// The type of a declared value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config::expand) enum DeclaredType {
    Bool,
    Int,
    Float,
    Text,
    List(Option<Box<Self>>),
    Map,
    Secret,
}

/// The keys of a declaration.
pub(in crate::config::expand) const KEYS: [&str; 8] =
    ["type", "default", "required", "pattern", "min", "max", "choices", "doc"];
/// The types of a declaration.
pub(in crate::config::expand) const TYPES: [&str; 7] =
    ["string", "int", "float", "bool", "list", "map", "secret"];

impl DeclaredType {
    fn parse(text: &str) -> Option<Self> {
        if let Some(items) = text.strip_prefix("list of ") {
            return Some(Self::List(Some(Box::new(Self::parse(items.trim())?))));
        }
        Some(match text {
            "string" => Self::Text,
            "int" => Self::Int,
            "float" => Self::Float,
            "bool" => Self::Bool,
            "list" => Self::List(None),
            "map" => Self::Map,
            "secret" => Self::Secret,
            _ => return None,
        })
    }

    /// Returns the word for the type.
    pub(in crate::config::expand) fn word(&self) -> String {
        match self {
            Self::Bool => "bool".to_owned(),
            Self::Int => "int".to_owned(),
            Self::Float => "float".to_owned(),
            Self::Text => "string".to_owned(),
            Self::List(Some(items)) => format!("list of {}", items.word()),
            Self::List(None) => "list".to_owned(),
            Self::Map => "map".to_owned(),
            Self::Secret => "secret".to_owned(),
        }
    }

    fn value_type(&self) -> ValueType {
        match self {
            Self::Bool => ValueType::Bool,
            Self::Int => ValueType::Int,
            Self::Float => ValueType::Float,
            Self::Text | Self::Secret => ValueType::Text,
            Self::List(Some(items)) => ValueType::List(Arc::new(items.value_type())),
            Self::List(None) => ValueType::List(Arc::new(ValueType::Unknown)),
            Self::Map => ValueType::AnyMap(Arc::new(ValueType::Unknown)),
        }
    }

    /// Returns false if no value of a type is one of this type.
    pub(in crate::config::expand) const fn may_take(&self, of: &ValueType) -> bool {
        match of {
            ValueType::Bool => matches!(self, Self::Bool),
            ValueType::Int => matches!(self, Self::Int | Self::Float),
            ValueType::Float => matches!(self, Self::Float),
            ValueType::Text => matches!(self, Self::Text),
            ValueType::List(_) => matches!(self, Self::List(_)),
            ValueType::Map(_) | ValueType::AnyMap(_) => matches!(self, Self::Map),
            ValueType::Nothing | ValueType::Unknown => true,
        }
    }

    /// Returns a value of this type; an integer is also a float.
    fn adapt(&self, value: Value) -> Result<Value, Value> {
        match (self, value) {
            (Self::Bool, Value::Bool(truth)) => Ok(Value::Bool(truth)),
            (Self::Int, Value::Int(number)) => Ok(Value::Int(number)),
            (Self::Float, Value::Float(number)) => Ok(Value::Float(number)),
            #[expect(clippy::cast_precision_loss, reason = "a number with a fraction is wanted")]
            (Self::Float, Value::Int(number)) => Ok(Value::Float(number as f64)),
            (Self::Text, Value::Text(text)) => Ok(Value::Text(text)),
            (Self::List(of), Value::List(items)) => {
                let fits =
                    |item: &Value| of.as_ref().is_none_or(|of| of.adapt(item.clone()).is_ok());
                if items.iter().all(fits) {
                    Ok(Value::List(items))
                } else {
                    Err(Value::List(items))
                }
            }
            (Self::Map, Value::Map(entries)) => Ok(Value::Map(entries)),
            (_, value) => Err(value),
        }
    }
}

impl Declaration {
    /// Returns true if an absent value is allowed.
    pub(in crate::config::expand) const fn may_be_absent(&self) -> bool {
        !self.required || self.default.is_some()
    }

    /// Describes the limits of a value: `1 to 65535`, `pattern [a-z]+`, `one of "a", "b"`.
    pub(in crate::config::expand) fn limits(&self) -> Vec<String> {
        let bounds = match (self.min, self.max) {
            (Some(min), Some(max)) => Some(format!("{min} to {max}")),
            (Some(min), None) => Some(format!("at least {min}")),
            (None, Some(max)) => Some(format!("at most {max}")),
            (None, None) => None,
        };
        let pattern = self.pattern.as_ref().map(|pattern| format!("pattern {pattern}"));
        let choices: Vec<String> = self.choices.iter().map(shown).collect();
        let choices = (!choices.is_empty()).then(|| format!("one of {}", choices.join(", ")));
        bounds.into_iter().chain(pattern).chain(choices).collect()
    }

    /// Returns the value if it fits; else the reason.
    fn check(&self, value: Value) -> Result<Value, String> {
        let value = self.value_type.adapt(value).map_err(|value| {
            format!("wants {}, got {} ({})", self.value_type.word(), kind_of(&value), shown(&value))
        })?;
        if !self.choices.is_empty() && !self.choices.contains(&value) {
            let choices: Vec<String> = self.choices.iter().map(shown).collect();
            return Err(format!("wants one of {}, got {}", choices.join(", "), shown(&value)));
        }
        if let (Some(pattern), Value::Text(text)) = (&self.pattern, &value) {
            let fits = regex_lite::Regex::new(&format!("^(?:{pattern})$"));
            if !fits.is_ok_and(|it| it.is_match(text)) {
                return Err(format!("wants the pattern {pattern}, got {}", shown(&value)));
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "bounds are small")]
        let number = match &value {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            Value::List(items) => Some(items.len() as f64),
            Value::Text(text) => Some(text.chars().count() as f64),
            _ => None,
        };
        if let Some(min) = self.min.filter(|min| number.is_some_and(|it| it < *min)) {
            return Err(format!("wants at least {min}, got {}", shown(&value)));
        }
        if let Some(max) = self.max.filter(|max| number.is_some_and(|it| it > *max)) {
            return Err(format!("wants at most {max}, got {}", shown(&value)));
        }
        Ok(value)
    }
}

/// Returns the type of a map with declared keys.
pub(in crate::config::expand) fn type_of(declared: &BTreeMap<String, Declaration>) -> ValueType {
    let plain = declared.iter().filter(|(_, it)| it.value_type != DeclaredType::Secret);
    let key = |declaration: &Declaration| MapKey {
        value_type: declaration.value_type.value_type(),
        optional: declaration.may_be_absent() && declaration.default.is_none(),
    };
    ValueType::Map(Arc::new(plain.map(|(name, it)| (name.clone(), key(it))).collect()))
}

/// Returns the type that another language names so.
fn type_for(text: &str) -> Option<&'static str> {
    Some(match text.to_ascii_lowercase().as_str() {
        "integer" | "number" | "uint" | "long" => "int",
        "str" | "text" | "char" | "path" => "string",
        "boolean" => "bool",
        "double" | "real" | "decimal" => "float",
        "array" | "seq" | "sequence" | "set" | "tuple" => "list",
        "object" | "dict" | "hash" | "mapping" => "map",
        "password" | "sensitive" => "secret",
        _ => return None,
    })
}

/// Returns the advice for a text in quotes that would have the declared type without them.
fn quotes_advice(wanted: &DeclaredType, given: &Value) -> Option<String> {
    let Value::Text(text) = given else { return None };
    let is_meant = match wanted {
        DeclaredType::Bool => matches!(text.as_str(), "true" | "false"),
        DeclaredType::Int => text.parse::<i64>().is_ok(),
        DeclaredType::Float => text.parse::<f64>().is_ok_and(f64::is_finite),
        _ => false,
    };
    is_meant.then(|| format!("remove the quotes: {}", quoted(text)))
}

/// Returns the hint for an unknown key of a declaration.
fn hint_for_key(key: &str) -> String {
    if key == "items" {
        return "the type names the items: write type: list of string".to_owned();
    }
    let near = nearest(key, KEYS).map(|near| format!("did you mean `{near}`?"));
    near.unwrap_or_else(|| format!("valid keys: {}", KEYS.join(", ")))
}

impl Expander<'_> {
    /// Reads a map of declarations.
    pub(in crate::config::expand) fn read_declarations(
        &mut self,
        context: &Context,
        node: usize,
    ) -> Option<BTreeMap<String, Declaration>> {
        if context.is_null(node) {
            return Some(BTreeMap::new());
        }
        let Some(Node::Map(pairs)) = context.tree().node(node) else {
            let what = "declarations should be a map, such as {port: {type: int}}";
            self.report(context, node, Problem::new(Code::Param, what));
            return None;
        };
        let mut all = BTreeMap::new();
        let mut is_wrong = false;
        for (key, value) in pairs.clone() {
            let name = context.text_of(key).unwrap_or_default().to_owned();
            if !crate::config::expand::sources::variables::is_name(&name) {
                let what = format!("`{}` cannot be the name of a parameter", quoted(&name));
                let hint = "use letters, digits and `_`, beginning with a letter";
                self.report(context, key, Problem::new(Code::Param, what).hint(hint));
                is_wrong = true;
                continue;
            }
            match self.read_declaration(context, (&name, key), value) {
                Some(declaration) => drop(all.insert(name, declaration)),
                None => is_wrong = true,
            }
        }
        (!is_wrong).then_some(all)
    }

    fn read_declaration(
        &mut self,
        context: &Context,
        (name, at): (&str, usize),
        node: usize,
    ) -> Option<Declaration> {
        let mut declaration = Declaration {
            value_type: DeclaredType::Text,
            default: None,
            required: true,
            doc: None,
            pattern: None,
            min: None,
            max: None,
            choices: Vec::new(),
        };
        let mut is_wrong = false;
        for entry in context.tree().entries(node).to_vec() {
            let read = self.read_declaration_key(context, name, entry, &mut declaration);
            is_wrong |= read.is_none();
        }
        if context.tree().entry(node, "type").is_none() {
            let what = format!("`{}` needs a type", quoted(name));
            let meant = context.text_of(node).filter(|text| DeclaredType::parse(text).is_some());
            let meant = meant.unwrap_or("string");
            let hint = format!("write {name}: {{type: {meant}}}; types: {}", TYPES.join(", "));
            self.report(context, at, Problem::new(Code::Param, what).hint(hint));
            is_wrong = true;
        }
        if is_wrong {
            return None;
        }
        if let Some((_, default)) = context.tree().entry(node, "default") {
            let value = self.node_value(context, default)?;
            let advice = quotes_advice(&declaration.value_type, &value);
            match declaration.check(value) {
                Ok(value) => declaration.default = Some(value),
                Err(why) => {
                    let what = format!("the default of `{}` {why}", quoted(name));
                    let problem = Problem::new(Code::Param, what).hint_if(advice);
                    self.report(context, default, problem);
                    return None;
                }
            }
        }
        Some(declaration)
    }

    /// Reads one key of a declaration, besides the default.
    fn read_declaration_key(
        &mut self,
        context: &Context,
        name: &str,
        (key, value): (usize, usize),
        declaration: &mut Declaration,
    ) -> Option<()> {
        let text = context.text_of(value).unwrap_or_default().to_owned();
        match context.text_of(key).unwrap_or_default() {
            "type" => {
                let Some(found) = DeclaredType::parse(&text) else {
                    let what = format!("`{}` is no type of a parameter", quoted(&text));
                    let near = type_for(&text).or_else(|| nearest(&text, TYPES));
                    let near = near.map(|near| format!("did you mean `{near}`? "));
                    let near = near.unwrap_or_default();
                    let hint = format!("{near}types: {}, list of TYPE", TYPES.join(", "));
                    self.report(context, value, Problem::new(Code::Param, what).hint(hint));
                    return None;
                };
                declaration.value_type = found;
            }
            "default" => {}
            "required" => {
                declaration.required = self.read_required(context, (name, &text), value)?;
            }
            "pattern" => {
                if regex_lite::Regex::new(&text).is_err() {
                    let what = format!("the pattern of `{}` is not valid", quoted(name));
                    self.report(context, value, Problem::new(Code::Param, what));
                    return None;
                }
                declaration.pattern = Some(text);
            }
            "min" => declaration.min = Some(self.read_bound(context, (name, "min"), value)?),
            "max" => declaration.max = Some(self.read_bound(context, (name, "max"), value)?),
            "choices" => match self.node_value(context, value)? {
                Value::List(choices) => declaration.choices = choices.into_inner(),
                other => declaration.choices = vec![other],
            },
            "doc" => declaration.doc = Some(text),
            other => {
                let what = format!("unknown key `{}` in `{}`", quoted(other), quoted(name));
                let hint = hint_for_key(other);
                self.report(context, key, Problem::new(Code::UnknownKey, what).hint(hint));
                return None;
            }
        }
        Some(())
    }

    /// Reads `required` of a declaration.
    fn read_required(
        &mut self,
        context: &Context,
        (name, text): (&str, &str),
        node: usize,
    ) -> Option<bool> {
        let required = text.parse().ok();
        if required.is_none() {
            let what = format!("`required` of `{}` should be true or false", quoted(name));
            self.report(context, node, Problem::new(Code::Param, what));
        }
        required
    }

    /// Reads `min` or `max` of a declaration.
    fn read_bound(
        &mut self,
        context: &Context,
        (name, key): (&str, &str),
        node: usize,
    ) -> Option<f64> {
        let scalar = context.tree().scalar(node);
        let number =
            scalar.and_then(crate::config::scalar::Scalar::float).filter(|it| it.is_finite());
        if number.is_none() {
            let what = format!("`{key}` of `{}` should be a number", quoted(name));
            let hint = "a bound limits a number, the length of a string, or the items of a list";
            self.report(context, node, Problem::new(Code::Param, what).hint(hint));
        }
        number
    }

    /// Checks values against their declarations, and adds the defaults. `node` is the map of the values.
    pub(in crate::config::expand) fn complete_fields(
        &mut self,
        context: &Context,
        node: usize,
        (what, mut given): (&str, BTreeMap<String, Value>),
        declared: &BTreeMap<String, Declaration>,
    ) -> Option<BTreeMap<String, Value>> {
        let mut values = BTreeMap::new();
        let mut is_wrong = false;
        let entry = |name: &str| context.tree().entry(node, name);
        for (name, declaration) in declared {
            if declaration.value_type == DeclaredType::Secret {
                continue;
            }
            let value = match given.remove(name) {
                Some(value) => {
                    let advice = quotes_advice(&declaration.value_type, &value);
                    match declaration.check(value) {
                        Ok(value) => Some(value),
                        Err(why) => {
                            let problem = format!("`{}` of {what} {why}", quoted(name));
                            let at = entry(name).map_or(node, |(_, value)| value);
                            let problem = Problem::new(Code::Param, problem).hint_if(advice);
                            self.report(context, at, problem);
                            is_wrong = true;
                            None
                        }
                    }
                }
                None if declaration.may_be_absent() => {
                    if let Some(default) = &declaration.default
                        && !self.count_default(context, node, (name, default))
                    {
                        return None;
                    }
                    declaration.default.clone()
                }
                None => {
                    let problem = format!("{what} lacks `{}`", quoted(name));
                    let hint =
                        format!("`{name}` is {} and has no default", declaration.value_type.word());
                    self.report(context, node, Problem::new(Code::Param, problem).hint(hint));
                    is_wrong = true;
                    None
                }
            };
            values.extend(value.map(|value| (name.clone(), value)));
        }
        for unknown in given.keys() {
            let near = nearest(unknown, declared.keys().map(String::as_str));
            let known: Vec<&str> = declared.keys().map(String::as_str).collect();
            let hint = near.map_or_else(
                || format!("declared: {}", known.join(", ")),
                |it| format!("did you mean `{it}`?"),
            );
            let problem = format!("{what} has no `{}`", quoted(unknown));
            let at = entry(unknown).map_or(node, |(key, _)| key);
            self.report(context, at, Problem::new(Code::Param, problem).hint(hint));
            is_wrong = true;
        }
        (!is_wrong).then_some(values)
    }
}
