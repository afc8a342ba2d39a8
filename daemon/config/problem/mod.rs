//! Problems of a graph as data: shown to people, sent as JSON, sorted by place.
//!
//! A problem must never contain a secret value. Reading order: this file, `code` (the stable codes), `location` (places
//! of parts), `render` (text).

pub(super) mod code;
pub(super) mod location;
pub(super) mod render;

use super::source_file::clean;
use code::Code;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The graph is rejected.
    Error,
    /// The graph is loaded; some part of it has no effect or is doubtful.
    Warning,
}

impl Severity {
    /// Returns the word for the severity.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A place in a file, with the source line, so that it can be shown without the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as named by the user.
    pub file: String,
    /// The line, from 1; 0 for the whole file.
    pub line: u32,
    /// The column in characters, from 1; 0 for the whole file.
    pub column: u32,
    /// The source line, or the part of a long line around the column.
    pub text: String,
    /// The number of characters of `text` before the caret.
    pub caret: u32,
    /// The number of marked characters; at least 1.
    pub width: u32,
    /// A label, if a problem has several places.
    pub label: Option<String>,
    /// The uses that led to the place, the nearest first: the loop item, the module, the includes.
    pub chain: Vec<String>,
}

/// One problem of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The sort of the problem.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// A description of what was expected and found.
    pub what: String,
    /// Advice for the user.
    pub hint: Option<String>,
    /// True if the advice repeats a value of the file: a daemon neither logs, stores nor sends it.
    pub quotes_source: bool,
    /// The places, the most important one first; empty for a problem outside of any file.
    pub places: Vec<Place>,
}

/// The maximum length of the first line of a message, in characters.
const LONGEST: usize = 100;

impl Problem {
    /// Creates an error without a place.
    pub fn new(code: Code, what: impl AsRef<str>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            what: shorten(&clean(what.as_ref()), LONGEST),
            hint: None,
            quotes_source: false,
            places: Vec::new(),
        }
    }

    /// Turns the problem into a warning.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: impl AsRef<str>) -> Self {
        self.hint = Some(clean(hint.as_ref()));
        self
    }

    /// Adds advice that repeats a value of the file. A daemon leaves it out, as it leaves out source lines.
    #[must_use]
    pub fn hint_with_value(self, hint: impl AsRef<str>) -> Self {
        Self { quotes_source: true, ..self.hint(hint) }
    }

    /// Adds advice, if there is some.
    #[must_use]
    pub fn hint_if(self, hint: Option<impl AsRef<str>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Adds a place, if it is known.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.places.extend(place);
        self
    }

    /// Returns the problem as JSON: `code`, `severity`, `what`, `hint`, `places` (`file`, `line`, `column`, `text`,
    /// `label`).
    #[must_use]
    pub fn to_json(&self) -> Value {
        let places: Vec<Value> = self
            .places
            .iter()
            .map(|place| {
                json!({
                    "file": place.file,
                    "line": place.line,
                    "column": place.column,
                    "text": place.text,
                    "label": place.label,
                    "chain": place.chain,
                })
            })
            .collect();
        json!({
            "code": self.code.id(),
            "severity": self.severity.word(),
            "what": self.what,
            "hint": self.hint,
            "places": places,
        })
    }
}

/// Shortens a text to `most` characters by cutting out its middle.
pub(super) fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most.saturating_sub(most / 3 + 1)).collect();
    let tail: Vec<char> = text.chars().rev().take(most / 3).collect();
    head + "…" + &tail.into_iter().rev().collect::<String>()
}

/// Shortens a text of a user, so that it fits in a message.
pub(super) fn quoted(text: &str) -> String {
    shorten(text, 40)
}

/// The collected problems; beyond a limit they are only counted.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub(super) list: Vec<Problem>,
    pub(super) more: usize,
    errors: usize,
    /// The number of listed warnings.
    warnings: usize,
    /// The texts of the reported warnings; each is reported once.
    warned: HashSet<String>,
}

impl Problems {
    /// The maximum number of listed problems.
    const MOST: usize = 1000;

    pub(super) fn push(&mut self, problem: Problem) {
        match problem.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning if !self.warned.insert(problem.what.clone()) => return,
            Severity::Warning => {}
        }
        self.list_one(problem);
    }

    /// Adds a warning that each of its places needs.
    pub(super) fn push_each(&mut self, problem: Problem) {
        self.errors += usize::from(problem.severity == Severity::Error);
        self.list_one(problem);
    }

    /// Lists a problem, or counts it. An error takes the place of the last warning in a full list.
    fn list_one(&mut self, problem: Problem) {
        let is_warning = problem.severity == Severity::Warning;
        if self.list.len() < Self::MOST {
            self.warnings += usize::from(is_warning);
            self.list.push(problem);
            return;
        }
        self.more += 1;
        if is_warning || self.warnings == 0 {
            return;
        }
        let last = self.list.iter_mut().rev().find(|it| it.severity == Severity::Warning);
        if let Some(last) = last {
            self.warnings -= 1;
            *last = problem;
        }
    }

    /// Returns true if further problems are only counted.
    pub(super) const fn is_full(&self) -> bool {
        self.list.len() >= Self::MOST && self.warnings == 0
    }

    /// Returns the number of errors so far.
    pub(super) const fn errors(&self) -> usize {
        self.errors
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Sorts by file in the order read, then by line and column; problems without a place come first.
    pub(super) fn sorted(mut self, files: &[String]) -> Self {
        self.list.sort_by_key(|problem| {
            let place = problem.places.first();
            let file = place.and_then(|p| files.iter().position(|file| *file == p.file));
            (file, place.map(|p| (p.line, p.column)), problem.code)
        });
        // A loop or a module may repeat a problem for each of its instances: the first one is shown.
        let same = |later: &mut Problem, first: &mut Problem| {
            later.code == first.code
                && later.what == first.what
                && later.places.len() == first.places.len()
                && later.places.iter().zip(&first.places).all(|(a, b)| {
                    (&a.file, a.line, a.column, &a.label) == (&b.file, b.line, b.column, &b.label)
                })
        };
        self.list.dedup_by(same);
        self
    }
}
