//! Inspection of the parts of a text file: blocks, keys of an ini file, values of JSON, YAML and TOML.
//!
//! Each part is printed only if its own kind finds nothing to change, so a value that a declaration cannot express is
//! left out.

use super::contained::NamedFile;
use super::{ContainerInspector, Field, Inspected, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::kinds::toml;
use crate::parts::data::Format;
use crate::parts::data::scalars::{parse_value, to_json};
use crate::parts::data::tree::{Tree, written_path};
use std::collections::BTreeMap;

const FILE: &str = "file";

pub(super) const BLOCKS: ContainerInspector =
    ContainerInspector { kind: "block", container: FILE, read: blocks, all: None };

pub(super) const INI: ContainerInspector =
    ContainerInspector { kind: "ini", container: FILE, read: ini, all: None };

pub(super) const JSON: ContainerInspector =
    ContainerInspector { kind: "json", container: FILE, read: json, all: None };

pub(super) const YAML: ContainerInspector =
    ContainerInspector { kind: "yaml", container: FILE, read: yaml, all: None };

pub(super) const TOML: ContainerInspector =
    ContainerInspector { kind: "toml", container: FILE, read: toml, all: None };

type Objects<'a> = Answer<'a, Result<Option<Vec<Inspected>>, Failure>>;

/// The beginning of the first line of a block with the usual marker.
const BEGIN: &str = "# BEGIN steadfast: ";

fn blocks<'a>(host: &'a Host, name: &'a str) -> Objects<'a> {
    Box::pin(async move {
        let Some(file) = NamedFile::read(host, name)? else { return Ok(None) };
        let mut all = Vec::new();
        let mut lines = file.text.lines();
        while let Some(line) = lines.next() {
            let Some(name) = line.trim_end().strip_prefix(BEGIN) else { continue };
            let end = format!("# END steadfast: {name}");
            let inner = lines.by_ref().take_while(|line| line.trim_end() != end);
            let content: String = inner.flat_map(|line| [line, "\n"]).collect();
            let fields = vec![text("path", file.shown()), text("content", content)];
            all.push(Inspected::new(name.to_owned(), fields));
        }
        Ok(Some(file.proven(host, ("block", "content"), all).await))
    })
}

/// A line of an ini file.
struct Entry<'t> {
    section: Option<&'t str>,
    key: &'t str,
    value: Option<&'t str>,
    separator: char,
}

/// Returns the entries of an ini file: the last one of each key.
fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut section = None;
    let mut all: BTreeMap<(Option<&str>, &str), (usize, Entry<'_>)> = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some((name, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            section = Some(name.trim());
            continue;
        }
        let separator = if line.contains('=') { '=' } else { ':' };
        let (key, value) = match line.split_once(separator) {
            Some((key, value)) => (key.trim_end(), Some(value.trim_start())),
            None => (line, None),
        };
        all.insert((section, key), (at, Entry { section, key, value, separator }));
    }
    let mut all: Vec<(usize, Entry<'_>)> = all.into_values().collect();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, entry)| entry).collect()
}

fn ini<'a>(host: &'a Host, name: &'a str) -> Objects<'a> {
    Box::pin(async move {
        let Some(file) = NamedFile::read(host, name)? else { return Ok(None) };
        let path = file.shown();
        let object = |entry: Entry<'_>| {
            let section = entry.section.map_or_else(String::new, |name| format!("[{name}] "));
            let mut fields = vec![text("path", &*path)];
            fields.extend(entry.section.map(|name| text("section", name)));
            fields.push(text("key", entry.key));
            fields.extend(entry.value.map(|value| text("value", value)));
            if entry.value.is_some() && entry.separator == ':' {
                fields.push(text("separator", ": "));
            }
            Inspected::new(format!("{path} {section}{}", entry.key), fields)
        };
        let all = entries(&file.text).into_iter().map(object).collect();
        Ok(Some(file.proven(host, ("ini", "value"), all).await))
    })
}

fn json<'a>(host: &'a Host, name: &'a str) -> Objects<'a> {
    Box::pin(values(host, name, "json", |text| Format::Json.read_tree(text)))
}

fn yaml<'a>(host: &'a Host, name: &'a str) -> Objects<'a> {
    Box::pin(values(host, name, "yaml", |text| Format::Yaml.read_tree(text)))
}

fn toml<'a>(host: &'a Host, name: &'a str) -> Objects<'a> {
    Box::pin(values(host, name, "toml", toml::read_tree))
}

async fn values(
    host: &Host,
    name: &str,
    kind: &'static str,
    read: fn(&str) -> Result<Tree, String>,
) -> Result<Option<Vec<Inspected>>, Failure> {
    let Some(file) = NamedFile::read(host, name)? else { return Ok(None) };
    let path = file.shown();
    let tree = read(&file.text)
        .map_err(|why| Failure::new(format!("{path} cannot be read as {kind}: {why}")))?;
    let mut leaves = Vec::new();
    collect_leaves(&tree, &mut Vec::new(), &mut leaves);
    let object = |(keys, tree): (Vec<String>, &Tree)| {
        let key = written_path(&keys);
        let name = format!("{path} {key}");
        let mut fields = vec![text("path", &*path), text("key", key)];
        fields.extend(value_fields(tree, file.is_private));
        Inspected::new(name, fields)
    };
    let all = leaves.into_iter().map(object).collect();
    Ok(Some(file.proven(host, (kind, "value"), all).await))
}

/// Collects the values below maps; a list is one value.
fn collect_leaves<'t>(
    tree: &'t Tree,
    keys: &mut Vec<String>,
    all: &mut Vec<(Vec<String>, &'t Tree)>,
) {
    match tree {
        Tree::Map(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                keys.push(key.clone());
                collect_leaves(value, keys, all);
                keys.pop();
            }
        }
        _ if !keys.is_empty() => all.push((keys.clone(), tree)),
        _ => {}
    }
}

/// Returns the fields of a value. A text is declared as a string where the kind would read something else, or where the
/// value becomes a secret, which is a string unless its type is declared.
fn value_fields(tree: &Tree, is_secret: bool) -> Vec<(&'static str, Field)> {
    let (value, kind) = match tree {
        Tree::Text(value) => {
            let is_plain = parse_value(value).is_ok_and(|read| read == *tree);
            (value.clone(), (!is_plain).then_some("string"))
        }
        Tree::Other(written) => (written.clone(), None),
        _ => (to_json(tree, None), is_secret.then_some("tree")),
    };
    let mut fields = vec![("value", Field::Shown(Value::Text(value)))];
    fields.extend(kind.map(|kind| text("type", kind)));
    fields
}

#[cfg(test)]
mod tests {
    use super::entries;

    #[test]
    fn the_last_entry_of_each_key_counts() {
        let found = entries("a = 1\n[s]\n# c\nb=2\nb = 3 # x\nalone\n[t]\nk: v\n");
        let found: Vec<_> =
            found.iter().map(|it| (it.section, it.key, it.value, it.separator)).collect();
        assert_eq!(
            found,
            [
                (None, "a", Some("1"), '='),
                (Some("s"), "b", Some("3 # x"), '='),
                (Some("s"), "alone", None, ':'),
                (Some("t"), "k", Some("v"), ':'),
            ]
        );
    }
}
