//! Problems as text: place, message and hint; on a terminal also the source line and a caret.
//!
//! Stored, logged and sent problems have no source line, because a line may hold a secret (M4).

use super::{Place, Problem, Problems, Severity};
use serde_json::{Value, json};
use std::fmt;
use std::path::PathBuf;

/// A rejected graph, with all its problems sorted by place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// The errors, and the warnings found with them.
    pub problems: Vec<Problem>,
    /// The number of further problems that are not listed.
    pub more: usize,
    /// The files and folders that the expansion looked for besides the graph files: a change of one may correct the
    /// graph.
    pub sought: Vec<PathBuf>,
}

impl Rejected {
    /// Creates the rejection with these problems.
    pub(in crate::config) fn of(problems: Problems) -> Self {
        Self { problems: problems.list, more: problems.more, sought: Vec::new() }
    }

    /// Returns the rejection as JSON: `problems`, `more`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let problems: Vec<Value> = self.problems.iter().map(Problem::to_json).collect();
        json!({ "problems": problems, "omitted": self.more })
    }

    /// Returns the text for a terminal, with source lines in which possible secrets are masked.
    #[must_use]
    pub fn with_source(&self) -> String {
        With(self, Shown::Lines).to_string()
    }

    /// Returns the text that a daemon logs, stores and sends: without values of the file (M4).
    #[must_use]
    pub fn without_values(&self) -> String {
        With(self, Shown::NoValues).to_string()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, shown: Shown) -> fmt::Result {
        for problem in &self.problems {
            problem.write(f, shown)?;
            writeln!(f)?;
        }
        let errors = self.problems.iter().filter(|p| p.severity == Severity::Error).count();
        let plural = if errors + self.more == 1 { "" } else { "s" };
        write!(f, "the graph was rejected: {} problem{plural}", errors + self.more)?;
        if self.more > 0 {
            write!(f, ", {} of them not shown", self.more)?;
        }
        match self.problems.iter().find(|problem| problem.severity == Severity::Error) {
            Some(problem) => writeln!(f, " (more: steadfast explain {})", problem.code),
            None => writeln!(f),
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, Shown::Values)
    }
}

impl std::error::Error for Rejected {}

/// The parts of the source that a text shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Source lines, and advice that repeats values.
    Lines,
    /// Advice that repeats values.
    Values,
    /// Neither.
    NoValues,
}

/// A wrapper that displays these parts.
struct With<T>(T, Shown);

impl fmt::Display for With<&Rejected> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, self.1)
    }
}

impl fmt::Display for With<&Problem> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, self.1)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, Shown::Values)
    }
}

impl Problem {
    /// Returns the text for a terminal, with the source lines.
    #[must_use]
    pub fn with_source(&self) -> String {
        With(self, Shown::Lines).to_string()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, shown: Shown) -> fmt::Result {
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
            if shown == Shown::Lines {
                snippet(f, place)?;
            }
            for used in &place.chain {
                writeln!(f, "  {used}")?;
            }
        }
        match self.hint.as_ref().filter(|_| shown != Shown::NoValues || !self.quotes_source) {
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
