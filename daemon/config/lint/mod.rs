//! Advice about valid graphs (`check --lint`).
//!
//! Advice must never reject a graph. A comment on the line of a finding, or directly above its line or its resource,
//! silences the finding with a reason: `# lint: allow NAME: REASON`. Reading order: this file (all advice, silences),
//! `resources` (one resource), `scripts` (its commands), `edges` (notifications), `names` (variables and parameters),
//! `facts` (comparisons with facts).

mod edges;
mod facts;
mod names;
mod resources;
mod scripts;

pub use edges::refresh_action;

use super::document::tree::{Node, Tree};
use super::problem::{Place, Problems};
use super::source_file::{SourceFile, Span};
use super::{Options, expand};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// All advice: the name and one sentence.
pub const LINTS: &[(&str, &str)] = &[
    ("unguarded-exec", "An exec without a guard runs again after each change of its text."),
    ("unused-variable", "No expression and no template uses a variable."),
    ("fact-case", "An expression compares a fact of lower-case words with another text."),
    ("unused-param", "No expression and no template of a module uses a parameter."),
    ("clear-secret", "A value in clear looks like a secret."),
    ("useless-notify", "A notification goes to a kind that does nothing on a refresh."),
    (
        "after-without-notify",
        "A service starts after its file, and no change of the file reaches the service.",
    ),
    (
        "expression-in-script",
        "A script in the arguments of a shell or an interpreter has an expression: its value becomes code.",
    ),
    ("literal-expression", "A literal text has `${`, which nothing evaluates."),
    ("template-without-sh", "A template of a script prints a value without the filter `sh`."),
    ("silence-without-reason", "A comment silences advice without a reason."),
];

/// One piece of advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the advice, one of [`LINTS`].
    pub lint: &'static str,
    /// The found thing.
    pub message: String,
    /// The correction.
    pub hint: String,
    /// The place.
    pub place: Place,
}

impl Finding {
    /// Returns the finding as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "lint": self.lint,
            "message": self.message,
            "hint": self.hint,
            "file": self.place.file,
            "line": self.place.line,
            "column": self.place.column,
        })
    }
}

/// A parsed file.
struct File {
    source: Arc<SourceFile>,
    tree: Tree<'static>,
    /// The first and the last byte of each line.
    lines: Vec<(usize, usize)>,
}

impl File {
    fn new(source: &Arc<SourceFile>, tree: Tree<'static>) -> Self {
        let mut begin = 0;
        let range = |line: &str| {
            let range = (begin, begin + line.len());
            begin = range.1;
            range
        };
        let lines = source.text.split_inclusive('\n').map(range).collect();
        Self { source: Arc::clone(source), tree, lines }
    }

    /// Returns a line, counted from 0.
    fn line(&self, index: usize) -> Option<&str> {
        let (from, to) = self.lines.get(index)?;
        self.source.text.get(*from..*to).map(str::trim_end)
    }

    fn text_of(&self, node: usize) -> Option<&str> {
        self.tree.scalar(node).filter(|scalar| !scalar.is_null()).map(|scalar| &*scalar.text)
    }

    /// Returns the texts of a list, or the only text, each with its node.
    fn texts_of(&self, node: usize) -> Vec<(usize, &str)> {
        match self.tree.node(node) {
            Some(Node::List(items)) => {
                items.iter().filter_map(|item| Some((*item, self.text_of(*item)?))).collect()
            }
            _ => self.text_of(node).map(|text| (node, text)).into_iter().collect(),
        }
    }

    /// Returns the resources: kind, node of the entry, name.
    fn resources(&self) -> Vec<(&str, usize, Option<&str>)> {
        let Some(root) = self.tree.root() else { return Vec::new() };
        let Some((_, resources)) = self.tree.entry(root, "resources") else { return Vec::new() };
        let mut all = Vec::new();
        for (kind, list) in self.tree.entries(resources) {
            let (Some(kind), Some(Node::List(items))) =
                (self.text_of(*kind), self.tree.node(*list))
            else {
                continue;
            };
            for item in items {
                let name = match self.tree.node(*item) {
                    Some(Node::Scalar(_)) => self.text_of(*item),
                    _ => self.tree.entry(*item, "name").and_then(|(_, name)| self.text_of(name)),
                };
                all.push((kind, *item, name));
            }
        }
        all
    }
}

/// The findings so far.
struct Findings {
    list: Vec<Finding>,
}

impl Findings {
    /// Adds a finding at a node, unless a comment silences it. `item` is the entry of the resource.
    fn add(
        &mut self,
        lint: &'static str,
        (file, node, item): (&File, usize, usize),
        message: String,
        hint: impl Into<String>,
    ) {
        let span = file.tree.span(node);
        let lines =
            [span, first_span(file, item)].map(|span| file.source.place(span).line as usize);
        let place = file.source.place(span);
        match silence(file, lines, lint) {
            Silence::None => {
                self.list.push(Finding { lint, message, hint: hint.into(), place });
            }
            Silence::WithReason => {}
            Silence::WithoutReason => self.list.push(Finding {
                lint: "silence-without-reason",
                message: format!("`{lint}` is silenced without a reason"),
                hint: format!("write `# lint: allow {lint}: REASON`"),
                place,
            }),
        }
    }
}

/// Returns the span of the first key of an entry.
fn first_span(file: &File, item: usize) -> Span {
    let first = file.tree.entries(item).first();
    file.tree.span(first.map_or(item, |(key, _)| *key))
}

/// The comment that speaks about a finding.
enum Silence {
    None,
    WithReason,
    WithoutReason,
}

/// Looks for a comment on one of the lines, or in the comment lines directly above one.
fn silence(file: &File, numbers: [usize; 2], lint: &str) -> Silence {
    for number in numbers {
        let mut index = number.saturating_sub(1);
        let mut shown = file.line(index).unwrap_or_default();
        loop {
            if let Some(rest) = shown.split_once("# lint: allow ").map(|(_, rest)| rest.trim())
                && let Some(reason) = rest.strip_prefix(lint)
            {
                let reason = reason.trim_start_matches([':', ' ', '—', '-']);
                return if reason.is_empty() {
                    Silence::WithoutReason
                } else {
                    Silence::WithReason
                };
            }
            let above = index.checked_sub(1).and_then(|above| file.line(above));
            match above.filter(|above| above.trim_start().starts_with('#')) {
                Some(above) => (shown, index) = (above, index - 1),
                None => break,
            }
        }
    }
    Silence::None
}

/// Returns the advice about valid graph files, with the files and modules that they use, sorted by place.
#[must_use]
pub fn find_advice(paths: &[PathBuf], options: &Options) -> Vec<Finding> {
    let mut problems = Problems::default();
    let kinds = &options.kinds;
    let sources = super::read::files::read(paths, &mut problems);
    let expansion = expand::expand(sources, None, (options, kinds), &mut problems);
    let mut files = Vec::new();
    for source in &expansion.sources {
        // Templates and lists of values are no graphs; they count as users of variables.
        let is_graph =
            ["resources:", "vars:", "params:"].iter().any(|key| source.text.contains(key));
        if !is_graph {
            continue;
        }
        let mut ignored = Problems::default();
        if let Some(tree) = super::document::parse::parse(source, &mut ignored) {
            files.push(File::new(source, tree.into_owned()));
        }
    }
    let mut findings = Findings { list: Vec::new() };
    let notifications = edges::Notifications::of(&files);
    for file in &files {
        resources::advise(file, kinds, &expansion.sources, &mut findings);
        edges::advise(file, &notifications, &mut findings);
        names::advise(file, &expansion.sources, &mut findings);
        facts::advise(file, &mut findings);
    }
    let order = |finding: &Finding| {
        (finding.place.file.clone(), finding.place.line, finding.place.column, finding.lint)
    };
    findings.list.sort_by_key(order);
    findings.list.dedup();
    findings.list
}
