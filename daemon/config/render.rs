//! Problems as text for people: place, message, source line, caret, hint.

use super::problem::{Place, Problem, Severity};
use serde_json::{Value, json};
use std::fmt;

/// A graph that was refused, with everything that is wrong with it, sorted by place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Errors, and the warnings found on the way.
    pub problems: Vec<Problem>,
    /// How many further problems were found and not kept.
    pub more: usize,
}

impl Rejected {
    /// As JSON: `problems`, `more`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let problems: Vec<Value> = self.problems.iter().map(Problem::to_json).collect();
        json!({ "problems": problems, "more": self.more })
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        let errors = self.problems.iter().filter(|p| p.severity == Severity::Error).count();
        let plural = if errors + self.more == 1 { "" } else { "s" };
        write!(f, "the graph was refused: {} problem{plural}", errors + self.more)?;
        if self.more > 0 {
            write!(f, ", {} of them not shown", self.more)?;
        }
        match self.problems.iter().find(|problem| problem.severity == Severity::Error) {
            Some(problem) => writeln!(f, " (more: steadfast explain {})", problem.code),
            None => writeln!(f),
        }
    }
}

impl std::error::Error for Rejected {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.places.first() {
            address(f, place)?;
        }
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        writeln!(f, "{} [{}]", self.what, self.code)?;
        for (at, place) in self.places.iter().enumerate() {
            if at > 0 {
                writeln!(f, "  {}:{}:{}", place.file, place.line, place.column)?;
            }
            snippet(f, place)?;
        }
        match &self.hint {
            Some(hint) => writeln!(f, "  hint: {hint}"),
            None => Ok(()),
        }
    }
}

fn address(f: &mut fmt::Formatter<'_>, place: &Place) -> fmt::Result {
    if place.line == 0 {
        write!(f, "{}: ", place.file)
    } else {
        write!(f, "{}:{}:{}: ", place.file, place.line, place.column)
    }
}

fn snippet(f: &mut fmt::Formatter<'_>, place: &Place) -> fmt::Result {
    if place.line == 0 {
        return Ok(());
    }
    let margin = place.line.to_string().len().max(4);
    writeln!(f, "{:margin$} | {}", place.line, place.text)?;
    let before = place.caret as usize;
    let carets = "^".repeat(place.width.max(1) as usize);
    match &place.label {
        Some(label) => writeln!(f, "{:margin$} | {:before$}{carets} {label}", "", ""),
        None => writeln!(f, "{:margin$} | {:before$}{carets}", "", ""),
    }
}
