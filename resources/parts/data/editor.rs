//! The editor of one value in JSON and YAML.

use super::nodes::{Entry, Node, What};
use super::scalars::{Layout, quoted, to_json, to_yaml, yaml_text};
use super::splice::{Splice, apply};
use super::tree::Tree;
use super::{block, flow, read_json, read_yaml};
use crate::failure::Failure;
use crate::parts::text_lines::{split_mark, unsafe_edit};
use crate::parts::{Edited, Editor};

/// A data format that this editor knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, with comments and trailing commas if the file has them.
    Json,
    /// YAML, one document.
    Yaml,
}

impl Format {
    fn read(self, text: &str) -> Result<Option<Node>, String> {
        match self {
            Self::Json => read_json::read(text),
            Self::Yaml => read_yaml::read(text),
        }
    }

    /// Reads a whole file; a file without values is an empty map.
    ///
    /// # Errors
    ///
    /// Fails with the reason, which quotes no value.
    pub(crate) fn read_tree(self, text: &str) -> Result<Tree, String> {
        let root = self.read(text)?;
        Ok(root.as_ref().map_or(Tree::Map(Vec::new()), Node::to_tree))
    }

    /// Writes a key.
    pub(super) fn key(self, key: &str) -> String {
        match self {
            Self::Json => quoted(key),
            Self::Yaml => yaml_text(key, None),
        }
    }

    /// Writes a value.
    pub(super) fn value(self, tree: &Tree, layout: Option<Layout<'_>>) -> String {
        match self {
            Self::Json => to_json(tree, layout),
            Self::Yaml => to_yaml(tree, None),
        }
    }

    /// Returns the starts of comments.
    pub(super) fn comments(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["//", "/*"],
            Self::Yaml => &["#"],
        }
    }
}

/// An editor of one value.
#[derive(Clone, Debug)]
pub(crate) struct DataEditor {
    pub(crate) format: Format,
    /// The keys of the value.
    pub(crate) path: Vec<String>,
    /// The declared value; none if it must be absent.
    pub(crate) wanted: Option<Tree>,
    /// The string that takes the place of a string of the file, instead of the declared value.
    pub(crate) text: Option<String>,
    pub(crate) is_secret: bool,
}

impl DataEditor {
    fn change(&self, text: &str) -> Result<Edited, String> {
        let root = self.format.read(text)?;
        let before = root.as_ref().map_or(Tree::Map(Vec::new()), Node::to_tree);
        let shown = |tree: Option<&Tree>| tree.map(|it| to_json(it, None)).unwrap_or_default();
        let (found, wanted) = (before.get(&self.path), self.wanted.as_ref());
        if let (Some(Tree::Text(_)), Some(string)) = (found, &self.text) {
            let wanted = Some(Tree::Text(string.clone()));
            return Self { wanted, text: None, ..self.clone() }.change(text);
        }
        let is_same = match (found, wanted) {
            (None, None) => true,
            (Some(found), Some(wanted)) => found.is_same(wanted),
            _ => false,
        };
        let edited = |text| Edited { text, from: shown(found), to: shown(wanted) };
        if is_same {
            return Ok(edited(text.to_owned()));
        }
        let expected = before.with(&self.path, wanted)?;
        let splices = match &root {
            Some(root) => self.splices(text, root, &self.path)?,
            None => self.first(text, &expected),
        };
        let unknown = "this place of the file cannot be edited safely";
        let new = splices.and_then(|splices| apply(text, splices)).ok_or(unknown)?;
        // The proof: the new text has the declared value, and every other value as before.
        let again = self.format.read(&new).map_err(|_why| unknown)?;
        let is_empty = |tree: &Tree| matches!(tree, Tree::Map(all) if all.is_empty());
        let is_proven = match again.map(|it| it.to_tree()) {
            Some(again) => again.is_same(&expected),
            None => is_empty(&expected),
        };
        if is_proven { Ok(edited(new)) } else { Err(unknown.into()) }
    }

    /// Returns the text of a file without values.
    fn first(&self, text: &str, expected: &Tree) -> Option<Vec<Splice>> {
        match self.format {
            Format::Yaml => block::begin(text, expected),
            Format::Json if text.trim().is_empty() => {
                let layout = Layout { newline: "\n", unit: "  ", indent: "" };
                let new = format!("{}\n", to_json(expected, Some(layout)));
                Some(vec![Splice::new(0..text.len(), new)])
            }
            Format::Json => None,
        }
    }

    /// Returns the changes that set or remove the value at a path below a node.
    fn splices(
        &self,
        text: &str,
        node: &Node,
        path: &[String],
    ) -> Result<Option<Vec<Splice>>, String> {
        let Some((key, rest)) = path.split_first() else { return Ok(None) };
        refuse_locked(node, key)?;
        match &node.what {
            What::Scalar(_) => Ok(None),
            What::List { items, .. } => {
                let item = key.parse::<usize>().ok().and_then(|at| items.get(at));
                let Some(item) = item else { return Ok(None) };
                if !rest.is_empty() && !matches!(item.what, What::Scalar(_)) {
                    return self.splices(text, item, rest);
                }
                refuse_locked(item, key)?;
                Ok(self.nested(rest).map(|value| vec![self.replaced(text, item, &value)]))
            }
            What::Map { entries, is_flow } => {
                if entries.iter().any(|entry| entry.key == "<<") && self.format == Format::Yaml {
                    return Err(format!("the map with the key {key} has a merge key (<<)"));
                }
                let mut own = entries.iter().enumerate().filter(|(_, entry)| entry.key == *key);
                let found = own.next();
                if own.next().is_some() {
                    return Err(format!("the key {key} stands twice in its map"));
                }
                let value = self.nested(rest);
                match (found, value) {
                    (Some((_, entry)), _)
                        if !rest.is_empty() && !matches!(entry.value.what, What::Scalar(_)) =>
                    {
                        let only = self.wanted.is_none() && rest.len() == 1;
                        match Self::emptied(entry, rest).filter(|_| only) {
                            Some(empty) => Ok(self.set(text, (entries, entry), *is_flow, &empty)),
                            None => self.splices(text, &entry.value, rest),
                        }
                    }
                    (Some((_, entry)), Some(value)) => {
                        refuse_locked(&entry.value, key)?;
                        Ok(self.set(text, (entries, entry), *is_flow, &value))
                    }
                    (Some((at, entry)), None) => {
                        refuse_locked(&entry.value, key)?;
                        Ok(match is_flow {
                            true => flow::remove(self.format, text, (node, entries), at),
                            false if entries.len() == 1 => block_root(text, entry),
                            false => block::remove(text, entries, at),
                        })
                    }
                    (None, Some(value)) if *is_flow => {
                        let entry = (key.as_str(), &value);
                        Ok(Some(flow::insert(self.format, text, (node, entries), entry)))
                    }
                    (None, Some(value)) => Ok(block::insert(text, entries, (key, &value))),
                    (None, None) => Ok(None),
                }
            }
        }
    }

    /// Returns the declared value in maps of the remaining keys.
    fn nested(&self, rest: &[String]) -> Option<Tree> {
        let wrap = |value, key: &String| Tree::Map(vec![(key.clone(), value)]);
        self.wanted.as_ref().map(|wanted| rest.iter().rev().fold(wanted.clone(), wrap))
    }

    /// Returns an empty map if the value at a path of one key is the only one of a map in block style: without its
    /// last entry, such a map has no text.
    fn emptied(entry: &Entry, rest: &[String]) -> Option<Tree> {
        match (&entry.value.what, rest, entry.value.locked) {
            (What::Map { entries, is_flow: false }, [key], None) => {
                let is_only = matches!(entries.as_slice(), [only] if only.key == *key);
                is_only.then(|| Tree::Map(Vec::new()))
            }
            _ => None,
        }
    }

    /// Replaces the value of an entry.
    fn set(
        &self,
        text: &str,
        (entries, entry): (&[Entry], &Entry),
        is_flow: bool,
        value: &Tree,
    ) -> Option<Vec<Splice>> {
        match is_flow {
            true if entry.value.is_unwritten() => None,
            true => Some(vec![self.replaced(text, &entry.value, value)]),
            false => block::replace(text, entries, entry, value),
        }
    }

    fn replaced(&self, text: &str, old: &Node, value: &Tree) -> Splice {
        match self.format {
            Format::Yaml => block::replace_inline(text, old, value),
            Format::Json => {
                let newline = super::splice::newline_of(text);
                let indent = super::splice::indent_of(text, old.span.start);
                let layout = Layout { newline, unit: flow::unit_of(text), indent };
                let layout = text.trim().contains('\n').then_some(layout);
                Splice::new(old.span.clone(), to_json(value, layout))
            }
        }
    }
}

/// Removes the only entry of the root.
fn block_root(text: &str, entry: &Entry) -> Option<Vec<Splice>> {
    let is_root = super::splice::line_start(text, entry.key_span.start) == entry.key_span.start;
    is_root.then(|| block::remove(text, std::slice::from_ref(entry), 0)).flatten()
}

/// Fails if a node must not be changed.
fn refuse_locked(node: &Node, key: &str) -> Result<(), String> {
    match node.locked {
        None => Ok(()),
        Some(lock) => Err(format!("the value around or at the key {key} has {lock}")),
    }
}

impl Editor for DataEditor {
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
