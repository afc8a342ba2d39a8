//! The parser: a YAML text becomes a tree of nodes with positions. Merge keys (`<<`) are resolved here.

use super::tree::{Node, Tree};
use super::value_limit::{Contents, FileCount, ValueCount, too_many};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, Problems};
use crate::config::scalar::Scalar;
use crate::config::source_file::{SourceFile, Span};
use granit_parser::{Event, Parser, ScalarStyle};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum depth.
pub(in crate::config) const DEEPEST: usize = 64;
/// The maximum number of nodes and bytes of text that may come from aliases.
const FROM_ALIASES: Weight = Weight { nodes: 100_000, bytes: 4 << 20 };

/// The size of a node with its aliases followed.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    nodes: u64,
    bytes: u64,
}

impl Weight {
    fn add(&mut self, other: Self) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Parses a file and reports its problems; returns a tree only if the file has none.
pub(in crate::config) fn parse<'t>(
    source: &'t SourceFile,
    problems: &mut Problems,
) -> Option<Tree<'t>> {
    parse_counted(source, (Contents::Graph, &mut ValueCount::default()), problems)
}

/// Parses a file as [`parse`] does, and adds its values to those of other files.
pub(in crate::config) fn parse_counted<'t>(
    source: &'t SourceFile,
    (contents, count): (Contents, &mut ValueCount),
    problems: &mut Problems,
) -> Option<Tree<'t>> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: DEEPEST + 1,
        block_nesting_limit: DEEPEST + 1,
    };
    let mut builder = Builder {
        source,
        problems,
        tags: 0,
        tree: Tree::default(),
        weights: Vec::new(),
        open: Vec::new(),
        anchors: BTreeMap::new(),
        aliased: Weight::default(),
        documents: 0,
        values: FileCount::new(contents, count.clone()),
    };
    for next in Parser::new_from_str_with_options(&source.text, options) {
        let step = match next {
            Ok((event, span)) => builder.take(event, bytes(span), span.tag_span().map(bytes)),
            Err(error) => Err(crate::config::read::syntax_errors::problem(source, &error)),
        };
        if let Err(problem) = step {
            builder.problems.push(problem);
            return None;
        }
    }
    *count = builder.values.into_count();
    Some(builder.tree)
}

fn bytes(span: granit_parser::Span) -> Span {
    let range = span.byte_range().unwrap_or_default();
    Span::new(range.start, range.end)
}

/// A collection that is being read.
struct Open {
    id: usize,
    /// The key whose value comes next.
    key: Option<usize>,
}

/// The number of tags from which further ones are not reported.
const MOST_TAGS: usize = 100;

struct Builder<'t, 'p> {
    source: &'t SourceFile,
    problems: &'p mut Problems,
    /// The number of tags so far.
    tags: usize,
    tree: Tree<'t>,
    /// The size of each node, as far as read.
    weights: Vec<Weight>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, usize>,
    aliased: Weight,
    documents: usize,
    values: FileCount,
}

impl<'t> Builder<'t, '_> {
    fn take(&mut self, event: Event<'t>, span: Span, tag: Option<Span>) -> Result<(), Problem> {
        let is_node =
            matches!(event, Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..));
        if is_node && !self.values.count(self.open.len()) {
            return Err(self.too_many_values(span));
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(Problem::new(
                        Code::Documents,
                        "a second YAML document starts here",
                    )
                    .hint(
                        "put each document into a separate file; a directory of files is one graph",
                    )
                    .at(Some(self.source.place(span))));
                }
            }
            Event::Scalar(text, style, anchor, tagged) => {
                self.refuse_tag(tagged.is_some(), tag, span);
                let scalar = Scalar { text, plain: style == ScalarStyle::Plain };
                let weight = Weight { nodes: 1, bytes: scalar.text.len() as u64 };
                let id = self.add(Node::Scalar(scalar), span, weight);
                self.name(anchor, id);
                self.place(id);
            }
            Event::SequenceStart(_, anchor, tagged) => {
                self.refuse_tag(tagged.is_some(), tag, span);
                self.begin(Node::List(Vec::new()), span, anchor)?;
            }
            Event::MappingStart(_, anchor, tagged) => {
                self.refuse_tag(tagged.is_some(), tag, span);
                self.begin(Node::Map(Vec::new()), span, anchor)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    self.merge_keys(open.id)?;
                    self.place(open.id);
                }
            }
            Event::Alias(anchor) => self.alias(anchor, span)?,
            _ => {}
        }
        Ok(())
    }

    /// Returns the problem of too many values. The place is the largest collection around the present node.
    fn too_many_values(&self, span: Span) -> Problem {
        let items = |open: &Open| match self.tree.node(open.id) {
            Some(Node::List(items)) => items.len(),
            Some(Node::Map(entries)) => entries.len(),
            _ => 0,
        };
        let largest = self.open.iter().max_by_key(|open| items(open));
        let span = largest.map_or(span, |open| self.tree.span(open.id));
        too_many(self.source, span, largest.map_or(0, items))
    }

    fn refuse_tag(&mut self, tagged: bool, tag: Option<Span>, span: Span) {
        // A line of thousands of tags is searched for each of them.
        let is_shown = self.tags < MOST_TAGS;
        self.tags += usize::from(tagged);
        if tagged && is_shown {
            let tag = tag.unwrap_or(span);
            let place = self.source.place(tag);
            let (line, _) = self.source.line_text(tag.start);
            let text = self.source.text.get(tag.start as usize..tag.end as usize);
            let negated = text.and_then(|text| text.trim().strip_prefix('!'));
            let negated = negated.filter(|name| line.contains("when:") && !name.is_empty());
            let (what, hint) = match negated {
                Some(name) => (
                    format!(
                        "`!` is a YAML tag; write `not {}`",
                        crate::config::problem::quoted(name)
                    ),
                    "expressions use the words not, and, or",
                ),
                None => (
                    "YAML tags are not supported: expected a plain value".to_owned(),
                    "remove the tag (`!…`), or quote the value",
                ),
            };
            let problem = Problem::new(Code::Tag, what);
            self.problems.push(problem.hint(hint).at(Some(place)));
        }
    }

    fn add(&mut self, node: Node<'t>, span: Span, weight: Weight) -> usize {
        self.weights.push(weight);
        self.tree.push(node, span)
    }

    fn name(&mut self, anchor: usize, id: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
    }

    fn begin(&mut self, node: Node<'t>, span: Span, anchor: usize) -> Result<(), Problem> {
        if self.open.len() >= DEEPEST {
            let what = format!("the text is nested deeper than {DEEPEST} levels");
            return Err(Problem::new(Code::Depth, what).at(Some(self.source.place(span))));
        }
        let id = self.add(node, span, Weight { nodes: 1, bytes: 0 });
        self.name(anchor, id);
        self.open.push(Open { id, key: None });
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Problem> {
        let refuse = |what: &str| {
            let problem = Problem::new(Code::Aliases, what).at(Some(self.source.place(span)));
            Err(problem.hint("write the values out, or split the graph into several files"))
        };
        let Some(target) = self.anchors.get(&anchor).copied() else {
            return refuse("the alias refers to no earlier anchor");
        };
        if self.open.iter().any(|open| open.id == target) {
            return refuse("the alias is recursive");
        }
        let weight = self.weights.get(target).copied().unwrap_or_default();
        self.aliased.add(weight);
        if self.aliased.nodes > FROM_ALIASES.nodes || self.aliased.bytes > FROM_ALIASES.bytes {
            return refuse("aliases expand to more than 100 000 values or 4 MiB of text here");
        }
        let id = self.add(Node::Alias(target), span, weight);
        self.place(id);
        Ok(())
    }

    /// Adds a complete node to its parent.
    fn place(&mut self, id: usize) {
        let weight = self.weights.get(id).copied().unwrap_or_default();
        let Some(open) = self.open.last_mut() else {
            self.tree.set_root(id);
            return;
        };
        if let Some(parent) = self.weights.get_mut(open.id) {
            parent.add(weight);
        }
        match self.tree.node_mut(open.id) {
            Some(Node::List(items)) => items.push(id),
            Some(Node::Map(entries)) => match open.key.take() {
                None => open.key = Some(id),
                Some(key) => entries.push((key, id)),
            },
            _ => {}
        }
        if let [Open { key: Some(key), .. }] = *self.open
            && let Some(Node::Scalar(key)) = self.tree.node(key)
        {
            self.values.begin_section(&key.text);
        }
    }

    /// Replaces the merge keys of a complete map by the entries of the maps that they name. An entry that the map
    /// itself gives wins, and of several maps the first.
    fn merge_keys(&mut self, id: usize) -> Result<(), Problem> {
        let Some(Node::Map(pairs)) = self.tree.node(id) else { return Ok(()) };
        let is_merge = |key: usize| matches!(self.tree.node(key), Some(Node::Scalar(key)) if key.plain && key.text == "<<");
        if !pairs.iter().any(|(key, _)| is_merge(*key)) {
            return Ok(());
        }
        let (merges, mut entries): (Vec<_>, Vec<_>) =
            pairs.iter().copied().partition(|(key, _)| is_merge(*key));
        let mut known: BTreeSet<String> =
            entries.iter().filter_map(|(key, _)| self.key_text(*key)).collect();
        for (key, value) in merges {
            let sources = match self.tree.node(value) {
                Some(Node::Map(_)) => vec![value],
                Some(Node::List(items)) => items.clone(),
                _ => Vec::new(),
            };
            let maps: Option<Vec<&Vec<(usize, usize)>>> = sources
                .iter()
                .map(|source| match self.tree.node(*source) {
                    Some(Node::Map(pairs)) => Some(pairs),
                    _ => None,
                })
                .collect();
            let Some(maps) = maps.filter(|maps| !maps.is_empty()) else {
                let what = "a merge key (`<<`) needs a map, or a list of maps";
                let place = self.source.place(self.tree.span(key));
                return Err(Problem::new(Code::MergeKey, what)
                    .hint("name a map with an anchor: <<: *NAME")
                    .at(Some(place)));
            };
            for (key, value) in maps.into_iter().flatten() {
                if self.key_text(*key).is_none_or(|text| known.insert(text)) {
                    entries.push((*key, *value));
                }
            }
        }
        if let Some(Node::Map(pairs)) = self.tree.node_mut(id) {
            *pairs = entries;
        }
        Ok(())
    }

    fn key_text(&self, key: usize) -> Option<String> {
        match self.tree.node(key) {
            Some(Node::Scalar(key)) => Some(key.text.to_string()),
            _ => None,
        }
    }
}
