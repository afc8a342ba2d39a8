//! Steps through local facts that a host need not have. The engine fails at `facts.local.role.name` if there is no
//! `role`, also before `default`: a filter behind each step but the last gives an empty map in place of nothing.
//!
//! The filters are added as text of the template, like the charges of operands.

use super::operands::{Insertion, Kind, OPEN, Token, next_token};
use super::template::{HINT_IF_ABSENT, Template, TemplateError, line_and_column};
use crate::expressions::environment::Environment;

/// The filter that gives an empty map in place of an absent value.
pub(super) const ABSENT: &str = "_sf_absent";

/// The names that begin each local fact.
const ROOT: [&str; 2] = ["facts", "local"];

impl Template {
    /// Adds the advice about a local fact that the host lacks to the problem of a name without a value.
    #[must_use]
    pub fn explain_absent(&self, environment: &Environment, error: TemplateError) -> TemplateError {
        if error.hint.as_deref() != Some(HINT_IF_ABSENT) {
            return error;
        }
        let source = self.source();
        let is_there = |name: &&String| {
            let mut places = source.match_indices(name.as_str());
            places.any(|(at, _)| line_and_column(&source, at).0 == error.line)
        };
        let mut names = self.names().iter().filter(|name| name.starts_with("facts."));
        let absent = names.find_map(|name| {
            let path: Vec<String> = name.split('.').map(str::to_owned).collect();
            let is_absent = environment.is_absent(&path) && is_there(&name);
            is_absent.then(|| environment.resolve(&path, (0, 0)).err())?
        });
        match absent {
            Some(absent) => TemplateError { message: absent.message, hint: absent.hint, ..error },
            None => error,
        }
    }
}

/// Returns the filters that the local facts in code need.
pub(super) fn absent_steps(code: &str) -> Vec<Insertion> {
    let mut insertions = Vec::new();
    if !code.contains(ROOT[1]) {
        return insertions;
    }
    let (mut at, mut before) = (0, "");
    while let Some(token) = next_token(code, at) {
        at = token.end;
        let is_root = token.kind == Kind::Word && token.text == ROOT[0] && before != ".";
        before = token.text;
        if !is_root {
            continue;
        }
        let steps = steps_behind(code, at);
        if steps.first().is_none_or(|step| step.text != ROOT[1]) {
            continue;
        }
        let end = steps.last().map_or(at, |step| step.end);
        // The value before a method stays as it is.
        let is_call = next_token(code, end).is_some_and(|next| next.text == "(");
        let last = steps.len() - 1 - usize::from(is_call && steps.len() > 1);
        for step in steps.iter().take(last) {
            insertions.push(Insertion { at: token.start, text: OPEN.to_owned() });
            insertions.push(Insertion { at: step.end, text: format!("|{ABSENT})") });
        }
        at = end;
    }
    insertions
}

/// Returns the steps `.a.b` behind an offset.
fn steps_behind(code: &str, from: usize) -> Vec<Token<'_>> {
    let (mut steps, mut at) = (Vec::new(), from);
    while let Some(dot) = next_token(code, at).filter(|dot| dot.text == ".") {
        let step = next_token(code, dot.end);
        let Some(step) = step.filter(|it| matches!(it.kind, Kind::Word | Kind::Number)) else {
            break;
        };
        at = step.end;
        steps.push(step);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::absent_steps;

    #[test]
    fn each_step_but_the_last_may_be_absent() {
        for (code, count) in [
            ("facts.local.a.b", 2),
            ("facts.local.a", 1),
            ("facts.local", 0),
            ("'facts.local.a.b'", 0),
            ("x.facts.local.a.b", 0),
            ("facts.os.local.a", 0),
            ("facts.local.a.items()", 1),
            ("facts.local.a.b.c if 'a' in facts.local", 3),
        ] {
            assert_eq!(absent_steps(code).len(), 2 * count, "{code}");
        }
    }
}
