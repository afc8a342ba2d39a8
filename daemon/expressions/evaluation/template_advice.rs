//! Advice for the messages of the template engine.

use super::template::TemplateError;
use crate::expressions::error::ExpressionError;
use crate::expressions::functions::table::function_names;
use crate::expressions::functions::words::{TEMPLATE_FILTERS, TEMPLATE_TESTS};
use crate::nearest_name::nearest;

/// Returns the hint for a name that a template does not get. `known` are the names of `with` and `values`.
pub(super) fn hint_for_unknown_name(name: &str, known: &[&str], error: &ExpressionError) -> String {
    let is_secret = error.message.contains(" is a secret");
    let near = nearest(name, known.iter().copied());
    if let Some(near) = near.filter(|_| !is_secret) {
        return format!("nearest: `{near}`");
    }
    match &error.hint {
        // In a template, a word without quotes is seldom meant as a text.
        Some(hint) if hint.starts_with("a text stands in quotes") => {
            let root = name.split('.').next().unwrap_or(name);
            format!("give it a value: with: {{{root}: …}}; a variable is `vars.{root}`")
        }
        Some(hint) => hint.clone(),
        None => "a value of the graph comes in by `with: {name: value}`".to_owned(),
    }
}

/// The tags of templates.
const TAGS: [&str; 17] = [
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "endfor",
    "set",
    "endset",
    "with",
    "endwith",
    "include",
    "macro",
    "endmacro",
    "filter",
    "endfilter",
    "raw",
    "endraw",
];

/// Returns the advice for a message of the engine.
pub(super) fn hint_for_template(detail: &str) -> Option<String> {
    let word = |before: &str, after: &str| {
        Some(detail.strip_prefix(before)?.strip_suffix(after)?.to_owned())
    };
    if let Some(filter) = word("filter ", " is unknown") {
        let known = function_names().chain(TEMPLATE_FILTERS.iter().map(|(name, _)| *name));
        let near = nearest(&filter, known).map(|near| format!("nearest: `{near}`"));
        let usual = || "`steadfast explain expressions` lists the filters".to_owned();
        return Some(near.unwrap_or_else(usual));
    }
    if let Some(test) = word("test ", " is unknown") {
        let known = TEMPLATE_TESTS.iter().map(|(name, _)| *name);
        return nearest(&test, known).map(|near| format!("nearest: `{near}`"));
    }
    if let Some(tag) = word("unknown statement ", "") {
        return Some(match (tag.as_str(), nearest(&tag, TAGS)) {
            ("end" | "fi" | "done", _) => {
                "a block ends with its own word: {% endif %}, {% endfor %}".to_owned()
            }
            ("elsif" | "elseif", _) => "write {% elif … %}".to_owned(),
            (_, Some(near)) => format!("nearest: `{near}`"),
            (_, None) => "a value is printed by {{ … }}; tags are if, for, set, include".to_owned(),
        });
    }
    let hint = if detail.contains("unexpected end of input, expected end of block") {
        "an open block has no end: add {% endif %} or {% endfor %}"
    } else if detail.contains("expected end of variable block") {
        "close the value by }}"
    } else if detail.contains("expected end of block") {
        "close the tag by %}"
    } else {
        return None;
    };
    Some(hint.to_owned())
}

/// The beginnings of the messages about names of the engine, which no value makes right.
const FIXED: [&str; 3] = ["unknown filter", "unknown test", "unknown function"];

impl TemplateError {
    /// Returns true for a problem of the template that no value makes right.
    #[must_use]
    pub fn is_of_any_value(&self) -> bool {
        FIXED.iter().any(|kind| self.message.starts_with(kind))
    }
}
