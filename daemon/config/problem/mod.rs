//! What is wrong with a graph, as data: shown to people, sent as JSON, sorted by place.

pub(super) mod code;
pub(super) mod location;
pub(super) mod render;
pub(super) mod suggestion;

use super::source_file::clean;
use code::Code;
use serde_json::{Value, json};
use std::collections::HashSet;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The graph is refused.
    Error,
    /// The graph loads; something in it has no effect.
    Warning,
}

impl Severity {
    /// The word for it.
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
    /// The file as it was given.
    pub file: String,
    /// The line, from 1; 0 where the whole file is meant.
    pub line: u32,
    /// The column in characters, from 1; 0 where the whole file is meant.
    pub column: u32,
    /// The source line, or the part of it around the column where it is long.
    pub text: String,
    /// How many characters of `text` stand before the caret.
    pub caret: u32,
    /// How many characters are meant; at least 1.
    pub width: u32,
    /// What this place is, where there are several.
    pub label: Option<String>,
}

/// One thing wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What sort.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// What was expected and what was found.
    pub what: String,
    /// What to do.
    pub hint: Option<String>,
    /// Where; the first is the one to look at. Empty for what stands in no file.
    pub places: Vec<Place>,
}

/// The longest first line of a message, in characters.
const LONGEST: usize = 100;

impl Problem {
    /// An error that stands nowhere yet.
    pub fn new(code: Code, what: impl AsRef<str>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            what: shorten(&clean(what.as_ref()), LONGEST),
            hint: None,
            places: Vec::new(),
        }
    }

    /// The same as a warning.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl AsRef<str>) -> Self {
        self.hint = Some(clean(hint.as_ref()));
        self
    }

    /// The same with what to do about it, where that is known.
    #[must_use]
    pub fn hint_if(self, hint: Option<impl AsRef<str>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The same with one more place, where that is known.
    #[must_use]
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.places.extend(place);
        self
    }

    /// As JSON: `code`, `severity`, `what`, `hint`, `places` (`file`, `line`, `column`, `text`, `label`).
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

/// At most so many characters, cut in the middle.
pub(super) fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most.saturating_sub(most / 3 + 1)).collect();
    let tail: Vec<char> = text.chars().rev().take(most / 3).collect();
    head + "…" + &tail.into_iter().rev().collect::<String>()
}

/// Something a person wrote, short enough to stand within a message.
pub(super) fn quoted(text: &str) -> String {
    shorten(text, 40)
}

/// Problems as they are found; after many enough they are only counted.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub(super) list: Vec<Problem>,
    pub(super) more: usize,
    errors: usize,
    /// Warnings that were given: each is given once, however often its cause occurs.
    warned: HashSet<String>,
}

impl Problems {
    /// More than this nobody reads.
    const MOST: usize = 1000;

    pub(super) fn push(&mut self, problem: Problem) {
        match problem.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning if !self.warned.insert(problem.what.clone()) => return,
            Severity::Warning => {}
        }
        if self.list.len() < Self::MOST {
            self.list.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// How many errors there are by now.
    pub(super) const fn errors(&self) -> usize {
        self.errors
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// By file in the order read, then by line and column; what stands in no file comes first.
    pub(super) fn sorted(mut self, files: &[String]) -> Self {
        self.list.sort_by_key(|problem| {
            let place = problem.places.first();
            let file = place.and_then(|p| files.iter().position(|file| *file == p.file));
            (file, place.map(|p| (p.line, p.column)), problem.code)
        });
        self.list.dedup();
        self
    }
}
