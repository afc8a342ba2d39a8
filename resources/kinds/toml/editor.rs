//! The editor of one value in TOML: the text is changed at the bytes of the value alone, and read again as a proof.

use crate::failure::Failure;
use crate::parts::data::nodes::{Entry, Node, What};
use crate::parts::data::scalars::quoted;
use crate::parts::data::splice::{
    Splice, apply, indent_of, insert_lines, line_end, line_start, newline_of, remove_lines,
};
use crate::parts::data::tree::Tree;
use crate::parts::data::{Format, flow};
use crate::parts::text_lines::{split_mark, unsafe_edit};
use crate::parts::{Edited, Editor};
use std::ops::Range;
use toml_edit::{Document, InlineTable, Item, Table, Value};

/// The refusal of an edit that cannot be proven.
const UNKNOWN: &str = "this place of the file cannot be edited safely";

/// An editor of one value.
#[derive(Clone, Debug)]
pub(super) struct TomlEditor {
    /// The keys of the value.
    pub(super) path: Vec<String>,
    /// The declared value; none if it must be absent.
    pub(super) wanted: Option<Tree>,
    /// The string that takes the place of a string of the file, instead of the declared value.
    pub(super) text: Option<String>,
    pub(super) is_secret: bool,
}

/// The table in which a missing key belongs.
struct Base<'d> {
    table: &'d Table,
    /// The keys from the root to the table with a header, and to the present one.
    header: usize,
    /// The table stands in no header of its own, only in headers of tables below.
    is_implicit: bool,
    /// The table, or one above, is an item of an array of tables: a new header would belong to its last item.
    is_in_array: bool,
}

/// The place of a value.
enum Place<'d> {
    /// The bytes of the value.
    Value(Range<usize>),
    /// The number of keys that exist, and the table that misses the next one.
    Missing(usize, Base<'d>),
    /// The number of keys that exist, and the braces that miss the next one.
    MissingInline(usize, &'d InlineTable),
    /// A table with a header, or one of dotted keys.
    Table,
}

impl TomlEditor {
    fn change(&self, text: &str) -> Result<Edited, String> {
        let document = read(text)?;
        let before = table_tree(document.as_table());
        let shown = |tree: Option<&Tree>| tree.map(to_toml).unwrap_or_default();
        let (found, wanted) = (before.get(&self.path), self.wanted.as_ref());
        if let (Some(Tree::Text(_)), Some(string)) = (found, &self.text) {
            let wanted = Some(Tree::Text(string.clone()));
            return Self { wanted, text: None, ..self.clone() }.change(text);
        }
        let edited = |text| Edited { text, from: shown(found), to: shown(wanted) };
        let is_same = match (found, wanted) {
            (None, None) => true,
            (Some(found), Some(wanted)) => found.is_same(wanted),
            _ => false,
        };
        if is_same {
            return Ok(edited(text.to_owned()));
        }
        let expected = before.with(&self.path, wanted)?;
        let splices = match wanted {
            Some(wanted) => self.set(text, &document, wanted)?,
            None => self.remove(text, &document)?,
        };
        let new = splices.and_then(|splices| apply(text, splices)).ok_or(UNKNOWN)?;
        // The proof: the new text has the declared value, and every other value as before.
        let again = read(&new).map_err(|_why| UNKNOWN)?;
        let again = table_tree(again.as_table());
        let is_proven = again.is_same(&expected) || self.is_without_parents(&again, &expected);
        if is_proven { Ok(edited(new)) } else { Err(UNKNOWN.into()) }
    }

    /// Returns true if the tables of the removed key, which are empty now, are gone too: dotted keys have no empty
    /// tables.
    fn is_without_parents(&self, again: &Tree, expected: &Tree) -> bool {
        let mut expected = expected.clone();
        for length in (1..self.path.len()).rev().filter(|_| self.wanted.is_none()) {
            let Some(above) = self.path.get(..length) else { return false };
            let is_empty =
                matches!(expected.get(above), Some(Tree::Map(entries)) if entries.is_empty());
            match expected.with(above, None) {
                Ok(less) if is_empty => expected = less,
                _ => return false,
            }
            if again.is_same(&expected) {
                return true;
            }
        }
        false
    }

    fn set(
        &self,
        text: &str,
        document: &Document<&str>,
        wanted: &Tree,
    ) -> Result<Option<Vec<Splice>>, String> {
        let wrap = |value: Tree, key: &String| Tree::Map(vec![(key.clone(), value)]);
        match find(document.as_table(), &self.path)? {
            Place::Value(span) => Ok(Some(vec![Splice::new(span, to_toml(wanted))])),
            Place::Table => Err("a table is not replaced as a whole: declare its keys".into()),
            Place::MissingInline(known, table) => {
                let missing = self.path.get(known..).unwrap_or_default();
                let Some((key, rest)) = missing.split_first() else { return Ok(None) };
                let value = rest.iter().rev().fold(wanted.clone(), wrap);
                Ok(insert_inline(text, table, (key, &value)))
            }
            Place::Missing(known, base) => Ok(self.insert(text, (known, &base), wanted)),
        }
    }

    /// Adds a line to a table, or a table at the end of the text.
    fn insert(
        &self,
        text: &str,
        (known, base): (usize, &Base<'_>),
        wanted: &Tree,
    ) -> Option<Vec<Splice>> {
        let newline = newline_of(text);
        let (last, above) = self.path.split_last()?;
        let is_table = base.is_implicit || (known < above.len() && known == base.header);
        if is_table && !base.is_in_array {
            let line =
                format!("[{}]{newline}{} = {}{newline}", keys(above), key(last), to_toml(wanted));
            return Some(vec![insert_lines(text, text.len(), &line)]);
        }
        if base.is_implicit {
            return None;
        }
        let dotted = keys(self.path.get(base.header..)?);
        let values = base.table.get_values();
        let end = values.iter().filter_map(|(_, value)| value.span()).map(|it| it.end).max();
        let header = base.table.span().filter(|_| base.header > 0).map(|it| it.end);
        let (at, indent) = match end.or(header) {
            Some(end) => (line_end(text, end), indent_of(text, end)),
            None => (0, ""),
        };
        let line = format!("{indent}{dotted} = {}{newline}", to_toml(wanted));
        Some(vec![insert_lines(text, at, &line)])
    }

    fn remove(&self, text: &str, document: &Document<&str>) -> Result<Option<Vec<Splice>>, String> {
        let Place::Value(value) = find(document.as_table(), &self.path)? else {
            return Err("a table is not removed as a whole: remove its keys".into());
        };
        let Some((last, above)) = self.path.split_last() else { return Ok(None) };
        if let Some(table) = find_inline(document.as_table(), above) {
            let (node, entries) = inline_node(table)?;
            let at = entries.iter().position(|entry| entry.key == *last);
            return Ok(at.and_then(|at| flow::remove(Format::Yaml, text, (&node, &entries), at)));
        }
        let start = value.start;
        let is_key =
            |at: usize| text.get(line_start(text, at)..at).is_some_and(|it| it.contains('='));
        let lines = line_start(text, start)..line_end(text, value.end);
        Ok(is_key(start).then(|| vec![remove_lines(text, lines)]))
    }
}

/// Reads a whole file.
///
/// # Errors
///
/// Fails with the line of the mistake, and quotes no value.
pub(crate) fn read_tree(text: &str) -> Result<Tree, String> {
    read(text).map(|document| table_tree(document.as_table()))
}

fn read(text: &str) -> Result<Document<&str>, String> {
    // The message may quote the text, which may be secret.
    Document::parse(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let before = text.get(..start).unwrap_or_default();
        format!("line {}: expected valid TOML", before.matches('\n').count() + 1)
    })
}

/// Finds the place of a value.
fn find<'d>(root: &'d Table, path: &[String]) -> Result<Place<'d>, String> {
    let mut base = Base { table: root, header: 0, is_implicit: false, is_in_array: false };
    let (mut table, mut known) = (root, 0);
    loop {
        let Some(key) = path.get(known) else { return Ok(Place::Table) };
        match table.get(key) {
            None | Some(Item::None) => return Ok(Place::Missing(known, base)),
            Some(Item::Table(next)) => {
                (table, known) = (next, known + 1);
                if !next.is_dotted() {
                    let is_implicit = next.is_implicit();
                    base = Base { table: next, header: known, is_implicit, ..base };
                }
            }
            Some(Item::ArrayOfTables(tables)) => {
                let at = path.get(known + 1).and_then(|at| at.parse::<usize>().ok());
                let Some(next) = at.and_then(|at| tables.get(at)) else { return Ok(Place::Table) };
                (table, known) = (next, known + 2);
                base = Base { table: next, header: known, is_implicit: false, is_in_array: true };
            }
            Some(Item::Value(value)) => return find_in_value(value, path, known + 1),
        }
    }
}

fn find_in_value<'d>(
    mut value: &'d Value,
    path: &[String],
    mut known: usize,
) -> Result<Place<'d>, String> {
    loop {
        let Some(key) = path.get(known) else {
            return value.span().map(Place::Value).ok_or_else(|| "a table of dotted keys".into());
        };
        let next = match value {
            Value::Array(items) => key.parse::<usize>().ok().and_then(|at| items.get(at)),
            Value::InlineTable(table) => match table.get(key) {
                None => return Ok(Place::MissingInline(known, table)),
                found => found,
            },
            _ => None,
        };
        let Some(next) = next else { return Ok(Place::Table) };
        (value, known) = (next, known + 1);
    }
}

/// Returns the braces at a path.
fn find_inline<'d>(root: &'d Table, path: &[String]) -> Option<&'d InlineTable> {
    let mut item: Option<&Item> = None;
    let mut value: Option<&Value> = None;
    let mut table = Some(root);
    for key in path {
        if let Some(here) = value {
            value = match here {
                Value::InlineTable(table) => table.get(key),
                Value::Array(items) => key.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            };
            value?;
            continue;
        }
        if let Some(Item::ArrayOfTables(tables)) = item {
            table = key.parse::<usize>().ok().and_then(|at| tables.get(at));
            item = None;
            continue;
        }
        item = table?.get(key);
        match item? {
            Item::Table(next) => table = Some(next),
            Item::Value(next) => value = Some(next),
            _ => {}
        }
    }
    value?.as_inline_table()
}

/// Returns the entries of braces with their positions.
fn inline_node(table: &InlineTable) -> Result<(Node, Vec<Entry>), String> {
    let entry = |(name, value): (&str, &Value)| {
        let key_span = table.key(name)?.span()?;
        let what = What::Scalar(Tree::Null);
        let value = Node { span: value.span()?, what, locked: None };
        Some(Entry { key: name.to_owned(), key_span, value })
    };
    let entries: Option<Vec<Entry>> = table.iter().map(entry).collect();
    let (Some(mut entries), Some(span)) = (entries, table.span()) else {
        return Err("the braces around the key have dotted keys".into());
    };
    entries.sort_by_key(|entry| entry.key_span.start);
    let what = What::Map { entries: Vec::new(), is_flow: true };
    Ok((Node { span, what, locked: None }, entries))
}

/// Adds a key between braces.
fn insert_inline(
    text: &str,
    table: &InlineTable,
    (name, value): (&str, &Tree),
) -> Option<Vec<Splice>> {
    let span = table.span()?;
    let entry = format!("{} = {}", key(name), to_toml(value));
    let ends = table.get_values().into_iter().filter_map(|(_, value)| value.span());
    Some(if let Some(end) = ends.map(|it| it.end).max() {
        vec![Splice::insert(end, format!(", {entry}"))]
    } else {
        let inner = span.start + 1..span.end.checked_sub(1)?;
        text.get(inner.clone())?.trim().is_empty().then_some(())?;
        vec![Splice::new(inner, format!(" {entry} "))]
    })
}

fn keys(path: &[String]) -> String {
    path.iter().map(|it| key(it)).collect::<Vec<_>>().join(".")
}

fn key(text: &str) -> String {
    let is_bare = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    if !text.is_empty() && text.chars().all(is_bare) { text.to_owned() } else { quoted(text) }
}

/// Writes a value on one line.
fn to_toml(tree: &Tree) -> String {
    match tree {
        // TOML has no null; a declared one is refused before.
        Tree::Null => "\"\"".to_owned(),
        Tree::Bool(truth) => truth.to_string(),
        Tree::Number(text) | Tree::Other(text) => text.clone(),
        Tree::Text(text) => quoted(text),
        Tree::List(items) => {
            format!("[{}]", items.iter().map(to_toml).collect::<Vec<_>>().join(", "))
        }
        Tree::Map(entries) if entries.is_empty() => "{}".to_owned(),
        Tree::Map(entries) => {
            let entry =
                |(name, value): &(String, Tree)| format!("{} = {}", key(name), to_toml(value));
            format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

fn table_tree(table: &Table) -> Tree {
    Tree::Map(table.iter().map(|(key, item)| (key.to_owned(), item_tree(item))).collect())
}

fn item_tree(item: &Item) -> Tree {
    match item {
        Item::None => Tree::Null,
        Item::Table(table) => table_tree(table),
        Item::ArrayOfTables(tables) => Tree::List(tables.iter().map(table_tree).collect()),
        Item::Value(value) => value_tree(value),
    }
}

fn value_tree(value: &Value) -> Tree {
    match value {
        Value::String(text) => Tree::Text(text.value().clone()),
        Value::Integer(number) => Tree::Number(number.value().to_string()),
        Value::Float(number) if number.value().is_finite() => {
            Tree::Number(format!("{:?}", number.value()))
        }
        Value::Float(number) => Tree::Other(number.value().to_string()),
        Value::Boolean(truth) => Tree::Bool(*truth.value()),
        Value::Datetime(date) => Tree::Other(date.value().to_string()),
        Value::Array(items) => Tree::List(items.iter().map(value_tree).collect()),
        Value::InlineTable(table) => {
            Tree::Map(table.iter().map(|(key, it)| (key.to_owned(), value_tree(it))).collect())
        }
    }
}

impl Editor for TomlEditor {
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        let (mark, rest) = split_mark(text);
        let mut edited = self.change(rest).map_err(unsafe_edit)?;
        edited.text.insert_str(0, mark);
        Ok(edited)
    }

    fn aspect(&self) -> &'static str {
        "value"
    }

    fn is_secret(&self) -> bool {
        self.is_secret
    }
}
