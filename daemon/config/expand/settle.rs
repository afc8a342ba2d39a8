//! Expressions of which a part is not known: the known parts may decide alone.

use super::names::is_from_probe;
use super::outcome::Outcome;
use super::written::Written;
use super::{Context, Expander};
use crate::expressions::{Expression, Truth, Value};
use std::collections::{BTreeSet, HashMap};

impl Expander<'_> {
    /// Returns the value of an expression that the missing value cannot change: `vars.off and probe.on` is false, and
    /// `probe.a if vars.off else "b"` is b.
    pub(super) fn settle(
        &mut self,
        context: &Context,
        (expression, written): (&Expression, Written<'_>),
        unknown: String,
    ) -> Outcome<Value> {
        // Each condition is evaluated once, though both ways below ask for it.
        let mut known: HashMap<String, Option<Truth>> = HashMap::new();
        let (chosen, truth) = self.run_quietly(|expander| {
            let mut truth_of = |text: &str| {
                if let Some(truth) = known.get(text) {
                    return *truth;
                }
                let truth = expander.truth_of_part(context, (text, written));
                known.insert(text.to_owned(), truth);
                truth
            };
            let chosen = expression.with_choices(&mut |text| match truth_of(text) {
                Some(Truth::Known(truth)) => Some(truth),
                _ => None,
            });
            let truth = match &chosen {
                Some(_) => None,
                None => expression.truth_of_parts(&mut truth_of),
            };
            (chosen, truth)
        });
        if let Some(text) = chosen {
            let chosen = Written { text: &text, start: None, span: written.span };
            return self.evaluate(context, chosen);
        }
        match truth {
            Some(Truth::Known(truth)) => Outcome::Known(Value::Bool(truth)),
            _ if self.used.is_over => Outcome::Failed,
            _ => Outcome::Unknown(unknown),
        }
    }

    fn truth_of_part(
        &mut self,
        context: &Context,
        (text, written): (&str, Written<'_>),
    ) -> Option<Truth> {
        let part = Written { text, start: None, span: written.span };
        match self.evaluate(context, part) {
            Outcome::Known(Value::Bool(truth)) => Some(Truth::Known(truth)),
            Outcome::Unknown(_) => Some(Truth::Unknown),
            // The answer may guard a part that fails.
            Outcome::Known(_) | Outcome::Failed => None,
        }
    }

    /// Returns the truth of an expression of which a part with an answer fails, if the other parts decide: before the
    /// answer they did.
    pub(super) fn settle_failed(
        &mut self,
        context: &Context,
        (expression, written): (&Expression, Written<'_>),
        names: &BTreeSet<String>,
    ) -> Option<bool> {
        if !names.iter().any(|name| is_from_probe(&context.scope, name)) {
            return None;
        }
        let truth = self.run_quietly(|expander| {
            expression.truth_of_parts(&mut |text| {
                Some(expander.truth_of_part(context, (text, written)).unwrap_or(Truth::Unknown))
            })
        });
        match truth {
            Some(Truth::Known(truth)) => Some(truth),
            _ => None,
        }
    }
}
