//! Loops (`for_each:`): the items with their keys and types.

use crate::config::document::tree::Node;
use crate::config::expand::evaluate::{LoopItem, Root};
use crate::config::expand::modules::params::Declaration;
use crate::config::expand::outcome::Outcome;
use crate::config::expand::values::kind_of;
use crate::config::expand::written::Written;
use crate::config::expand::{Context, Expander};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::{Expression, Value, ValueType};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The keys of a loop in its long form.
pub(in crate::config::expand) const KEYS: [&str; 3] = ["in", "key", "item"];

/// A loop as written.
struct Loop {
    /// The list or map.
    list: usize,
    /// The field of each item that is its key.
    key: Option<String>,
    /// The declared keys of the items.
    declared: Option<BTreeMap<String, Declaration>>,
}

impl Expander<'_> {
    /// Returns the items of a loop; problems are reported.
    pub(in crate::config::expand) fn loop_items(
        &mut self,
        context: &Context,
        node: usize,
    ) -> Option<Vec<Arc<LoopItem>>> {
        let written = self.read_loop(context, node)?;
        let (of, value) = self.loop_value(context, written.list)?;
        let items = self.keyed_items(context, node, (&written, &of, value))?;
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (number, (key, _)) in items.iter().enumerate() {
            if let Some(first) = seen.insert(key.clone(), number) {
                let shown_key = quoted(key);
                let what = format!(
                    "two instances would be `{shown_key}`: items {} and {} of `{}`",
                    first + 1,
                    number + 1,
                    quoted(&of)
                );
                let hint = "each item needs a key of its own";
                self.report(context, node, Problem::new(Code::Loop, what).hint(hint));
                return None;
            }
        }
        let joined = self.item_type(context, node, (&written, &of), &items)?;
        let (shared, joined) = match joined {
            ItemType::Declared(shared) => (shared, None),
            ItemType::Joined(joined) => (required_keys(&joined), Some(joined)),
        };
        let (list_context, list) = self.written_list(context, written.list);
        let mut made = Vec::with_capacity(items.len());
        let mut is_wrong = false;
        for (number, (key, value)) in items.into_iter().enumerate() {
            let value = match &written.declared {
                Some(declared) => {
                    let at = item_node(&list_context, list, (number, &key));
                    self.complete_item(&list_context, at, (&key, value), declared)
                }
                None => Some(value),
            };
            // All problems are reported in one run.
            let Some(value) = value else {
                if self.used.is_over {
                    return None;
                }
                is_wrong = true;
                continue;
            };
            let root = Root { value: Arc::new(value), value_type: Arc::clone(&shared) };
            let (key, of, joined) = (key.into(), of.clone(), joined.clone());
            made.push(Arc::new(LoopItem { key, root, of, joined }));
        }
        (!is_wrong).then_some(made)
    }

    /// Reads the short form (an expression or a list) or the long form (a map with `in`).
    fn read_loop(&mut self, context: &Context, node: usize) -> Option<Loop> {
        let Some(Node::Map(pairs)) = context.tree().node(node) else {
            return Some(Loop { list: node, key: None, declared: None });
        };
        let (mut list, mut key, mut declared) = (None, None, None);
        // All problems are reported in one run.
        let mut is_wrong = false;
        for (at, value) in pairs.clone() {
            match context.text_of(at) {
                Some("in") => list = Some(value),
                Some("key") => key = context.text_of(value).map(str::to_owned),
                Some("item") => {
                    declared = self.read_declarations(context, value);
                    is_wrong |= declared.is_none();
                }
                other => {
                    let what =
                        format!("unknown key `{}` in `for_each`", quoted(other.unwrap_or("")));
                    let keys = KEYS.join(", ");
                    let hint = format!("valid keys: {keys}; a map of items stands below `in`");
                    self.report(context, at, Problem::new(Code::UnknownKey, what).hint(hint));
                    is_wrong = true;
                }
            }
        }
        if is_wrong {
            return None;
        }
        let Some(list) = list else {
            let what = "`for_each` needs `in`: a list or a map";
            self.report(context, node, Problem::new(Code::Loop, what));
            return None;
        };
        Some(Loop { list, key, declared })
    }

    /// Returns the list or map of a loop, and its text for messages.
    fn loop_value(&mut self, context: &Context, node: usize) -> Option<(String, Value)> {
        let Some(text) = context.text_of(node).map(str::to_owned) else {
            if context.is_null(node) {
                let what = "`for_each` needs a list or a map";
                self.report(context, node, Problem::new(Code::Loop, what));
                return None;
            }
            let mut names = Vec::new();
            self.names_below(context, node, &mut names);
            if !self.names_are_static(context, node, ("for_each", &names))
                || !self.items_are_values(context, node)
            {
                return None;
            }
            return Some((list_text(context, node), self.node_value(&context.at_load(), node)?));
        };
        if text.trim_start().starts_with("${") {
            let inner =
                text.trim().trim_start_matches("${").trim_end_matches('}').trim().to_owned();
            let what = format!("a loop has no `${{ }}`: write `for_each: {}`", quoted(&inner));
            self.report(context, node, Problem::new(Code::Loop, what));
            return None;
        }
        let written = Written::find(context, &text, context.tree().span(node));
        if text.contains(',') && Expression::parse(&text).is_err() {
            let what =
                format!("a list of items stands in brackets: write `[{}]`", quoted(text.trim()));
            self.report(context, node, Problem::new(Code::Loop, what));
            return None;
        }
        if !self.is_static(context, written, "`for_each`", node) {
            return None;
        }
        match self.evaluate(&context.at_load(), written) {
            Outcome::Known(value) => Some((text.trim().to_owned(), value)),
            _ => None,
        }
    }

    /// Returns the items with their keys.
    fn keyed_items(
        &mut self,
        context: &Context,
        node: usize,
        (written, of, value): (&Loop, &str, Value),
    ) -> Option<Vec<(String, Value)>> {
        let count = match &value {
            Value::Map(entries) => entries.len(),
            Value::List(items) => items.len(),
            _ => 0,
        };
        if !self.may_loop(context, node, (count, of)) {
            return None;
        }
        let list = match value {
            Value::Map(entries) => {
                let item = |(key, value): (String, Value)| {
                    let entries = [("key", Value::Text(key.clone())), ("value", value)];
                    let entries = entries.map(|(name, value)| (name.to_owned(), value));
                    (key, Value::Map(entries.into_iter().collect()))
                };
                return Some(entries.into_inner().into_iter().map(item).collect());
            }
            Value::List(items) => items.into_inner(),
            other => {
                let what = format!("`for_each` needs a list or a map, found {}", kind_of(&other));
                let problem = Problem::new(Code::Loop, what);
                self.report(context, node, problem.hint("for example: for_each: vars.users"));
                return None;
            }
        };
        let (list_context, list_node) = self.written_list(context, written.list);
        let mut items = Vec::with_capacity(list.len());
        let mut is_wrong = false;
        for (number, item) in list.into_iter().enumerate() {
            match key_of_item(&item, written.key.as_deref()) {
                Ok(key) => items.push((key, item)),
                Err((what, hint)) => {
                    let at = item_node(&list_context, list_node, (number, ""));
                    let problem = Problem::new(Code::Loop, what).hint(hint);
                    self.report(&list_context, at, problem);
                    is_wrong = true;
                    if written.key.is_none() {
                        // The other items need the same correction.
                        break;
                    }
                }
            }
        }
        (!is_wrong).then_some(items)
    }

    /// Returns the declared type of the items, or their common type.
    fn item_type(
        &mut self,
        context: &Context,
        node: usize,
        (written, of): (&Loop, &str),
        items: &[(String, Value)],
    ) -> Option<ItemType> {
        let types: Vec<ValueType> = items.iter().map(|(_, item)| item.value_type()).collect();
        let joined = ValueType::join_all(&types);
        let Some(declared) = &written.declared else {
            if joined == ValueType::Unknown && items.len() > 1 {
                let what = format!("the items of `{}` have different types", quoted(of));
                self.report(context, node, Problem::new(Code::Loop, what));
                return None;
            }
            return Some(ItemType::Joined(Arc::new(joined)));
        };
        let own = crate::config::expand::modules::params::type_of(declared);
        let is_of_map = items.iter().all(|(_, item)| {
            matches!(item, Value::Map(it) if it.len() == 2 && it.contains_key("key") && it.contains_key("value"))
        }) && written.key.is_none();
        Some(ItemType::Declared(Arc::new(if is_of_map {
            let key = crate::expressions::MapKey::required(ValueType::Text);
            let value = crate::expressions::MapKey::required(own);
            ValueType::Map(Arc::new([("key".to_owned(), key), ("value".to_owned(), value)].into()))
        } else {
            own
        })))
    }

    /// Checks an item against the declaration, and adds its defaults.
    fn complete_item(
        &mut self,
        context: &Context,
        node: usize,
        (key, item): (&str, Value),
        declared: &BTreeMap<String, Declaration>,
    ) -> Option<Value> {
        let what = format!("item `{}`", quoted(key));
        match item {
            Value::Map(mut entries) if entries.len() == 2 && entries.contains_key("value") => {
                let Some(Value::Map(fields)) = entries.remove("value") else {
                    let problem = format!("{what} should be a map");
                    self.report(context, node, Problem::new(Code::Loop, problem));
                    return None;
                };
                // In a list of maps, the key `value` stands one level deeper.
                let is_deeper = context.tree().entries(node).len() == 2;
                let inner = context.tree().entry(node, "value").filter(|_| is_deeper);
                let at = inner.map_or(node, |(_, inner)| inner);
                let fields =
                    self.complete_fields(context, at, (&what, fields.into_inner()), declared)?;
                entries.insert("value".to_owned(), Value::Map(fields.into()));
                Some(Value::Map(entries))
            }
            Value::Map(fields) => {
                let fields = fields.into_inner();
                let fields = self.complete_fields(context, node, (&what, fields), declared)?;
                Some(Value::Map(fields.into()))
            }
            _ => {
                let problem = format!("{what} should be a map");
                self.report(context, node, Problem::new(Code::Loop, problem));
                None
            }
        }
    }
}

/// Returns the key of an item of a list, or the reason and the advice if it has none.
fn key_of_item(item: &Value, field: Option<&str>) -> Result<String, (String, &'static str)> {
    match (item, field) {
        (Value::Map(entries), Some(field)) => {
            entries.get(field).and_then(Value::embedded_text).ok_or_else(|| {
                let what = format!("an item of the loop has no key `{}`", quoted(field));
                (what, "each item needs this field, as a string")
            })
        }
        (Value::Map(_), None) => {
            let what = "a loop over a list of maps needs `key`".to_owned();
            Err((what, "write: for_each: {in: LIST, key: FIELD}, where FIELD names each item"))
        }
        (other, _) => other.embedded_text().ok_or_else(|| {
            let what = format!("an item of the loop is {}", kind_of(other));
            (what, "items are strings, or maps with a key")
        }),
    }
}

/// Returns the node of an item of a list, by its number, or of a map, by its key; else the list itself.
fn item_node(context: &Context, list: usize, (number, key): (usize, &str)) -> usize {
    match context.tree().node(list) {
        Some(Node::List(items)) => items.get(number).copied().unwrap_or(list),
        Some(Node::Map(_)) => context.tree().entry(list, key).map_or(list, |(_, value)| value),
        _ => list,
    }
}

/// Names a list or map: by its text, if it is short, else by its line.
fn list_text(context: &Context, node: usize) -> String {
    const LONGEST: usize = 40;
    let span = context.tree().span(node);
    let text = context.parsed.file.bracketed(span.start);
    match text.filter(|text| text.chars().count() <= LONGEST) {
        Some(text) => text.to_owned(),
        None => format!("the list in line {}", context.parsed.file.line(span.start)),
    }
}

/// The type of the items of a loop.
enum ItemType {
    Declared(Arc<ValueType>),
    Joined(Arc<ValueType>),
}

/// Returns a type without optional keys: the use of a key that an item lacks is reported before the types are checked.
fn required_keys(of: &ValueType) -> Arc<ValueType> {
    fn strict(of: &ValueType) -> ValueType {
        match of {
            ValueType::Map(keys) => ValueType::Map(Arc::new(
                keys.iter()
                    .map(|(name, key)| {
                        (
                            name.clone(),
                            crate::expressions::MapKey::required(strict(&key.value_type)),
                        )
                    })
                    .collect(),
            )),
            other => other.clone(),
        }
    }
    Arc::new(strict(of))
}
