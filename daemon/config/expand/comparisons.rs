//! Warnings about comparisons that never hold: a fact never has the text that it is compared with.

use super::written::Written;
use super::{Context, Expander};
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::expressions::{Comparison, Expression};
use crate::facts::find_impossible_value;
use crate::nearest_name::nearest;

impl Expander<'_> {
    /// Warns about comparisons in a valid expression that never hold, once for each place.
    pub(super) fn doubt_comparisons(
        &mut self,
        context: &Context,
        (expression, written): (&Expression, Written<'_>),
    ) {
        let can_doubt = ["facts.", "lower", "upper"].iter().any(|part| written.text.contains(part));
        if !can_doubt || !written.text.contains(['"', '\'']) {
            return;
        }
        for comparison in expression.compared_texts() {
            let Some(problem) = impossible(&comparison) else { continue };
            let span = written.span_at(comparison.offset);
            let place = (context.parsed.source, span.start, comparison.offset);
            if self.doubted.insert(place) {
                let problem = problem.at(Some(context.place(span)));
                self.problems.push_each(problem);
            }
        }
    }
}

/// Returns the warning about a comparison that never holds.
fn impossible(comparison: &Comparison) -> Option<Problem> {
    let Comparison { name, case, text, .. } = comparison;
    let what = |subject: &str| format!("{subject} is never \"{}\"", quoted(text));
    let warning = |subject: &str, hint: String| {
        Some(Problem::new(Code::Doubt, what(subject)).warning().hint(hint))
    };
    let changed = match case {
        Some("lower") => text.to_lowercase(),
        Some(_) => text.to_uppercase(),
        None => text.clone(),
    };
    if let Some(case) = case.filter(|_| changed != *text) {
        let hint = format!("write \"{}\"", quoted(&changed));
        return warning(&format!("`{} | {case}`", quoted(name)), hint);
    }
    if case.is_some() {
        return None;
    }
    let fact = name.strip_prefix("facts.")?;
    let found = find_impossible_value(fact, text)?;
    let known = if found.known.is_empty() {
        format!("`steadfast explain facts.{fact}` describes the values")
    } else {
        format!("values: {}", found.known.join(", "))
    };
    let near = || nearest(text, found.known.iter().copied()).map(str::to_owned);
    let hint = match found.meant.or_else(near) {
        Some(near) => format!("write \"{}\"; {known}", quoted(&near)),
        None => known,
    };
    warning(&format!("`{}`", quoted(name)), hint)
}
