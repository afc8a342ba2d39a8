//! The limit of the values in the files of a graph: items and keys of variables, arguments and labels.
//!
//! A resource and an edge of ordinary size count nothing, so that a graph may have any number of them.

use crate::config::problem::Problem;
use crate::config::problem::code::Code;
use crate::config::source_file::{SourceFile, Span};

/// The maximum number of values of all files: each takes up to 200 bytes while a graph is loaded.
pub(in crate::config) const MOST_VALUES: usize = 200_000;
/// The number of nodes that a resource or an edge has without being counted.
const FREE_NODES: usize = 32;

/// The part that a file plays, which decides what counts as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) enum Contents {
    /// A graph file or a file of a module.
    Graph,
    /// A file of variables: each node is a value.
    Variables,
}

/// The part of a graph file that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Values,
    Resources,
    Edges,
}

/// Counts the values of one file after another.
#[derive(Clone, Debug, Default)]
pub(in crate::config) struct ValueCount {
    values: usize,
}

/// Counts the values of one file.
#[derive(Debug)]
pub(super) struct FileCount {
    contents: Contents,
    section: Section,
    /// The nodes of the present resource or edge.
    in_entry: usize,
    count: ValueCount,
}

impl FileCount {
    pub(super) const fn new(contents: Contents, count: ValueCount) -> Self {
        Self { contents, section: Section::Values, in_entry: 0, count }
    }

    /// Returns the count with the values of this file.
    pub(super) fn into_count(self) -> ValueCount {
        self.count
    }

    /// Notes a key at the top of the file: its value comes next.
    pub(super) fn begin_section(&mut self, key: &str) {
        self.section = match (self.contents, key) {
            (Contents::Graph, "resources") => Section::Resources,
            (Contents::Graph, "edges" | "module_edges") => Section::Edges,
            _ => Section::Values,
        };
    }

    /// Counts a node below `level` collections; returns false when the limit is exceeded.
    pub(super) const fn count(&mut self, level: usize) -> bool {
        let entries_at = match self.section {
            Section::Values => usize::MAX,
            Section::Resources => 3,
            Section::Edges => 2,
        };
        if level == entries_at {
            self.in_entry = 0;
            return true;
        }
        if level > entries_at {
            self.in_entry += 1;
            if self.in_entry <= FREE_NODES {
                return true;
            }
        }
        self.count.values += 1;
        self.count.values <= MOST_VALUES
    }
}

/// Returns the problem of too many values. `span` is the collection that holds `items` of them.
pub(super) fn too_many(source: &SourceFile, span: Span, items: usize) -> Problem {
    let what =
        format!("the graph has more than {MOST_VALUES} values: this list or map has {items}");
    let hint = "shorten it, or leave the data in a file that the program reads which needs them";
    Problem::new(Code::Budget, what).hint(hint).at(Some(source.place(span)))
}
