//! The answer to `steadfast eval`: an expression in the scope of a graph.

use super::{Expander, Facts, Scope, new_expander};
use crate::config::expand::names::{environment, with_values};
use crate::config::expand::sources::inputs::Inputs;
use crate::config::problem::Problems;
use crate::config::{Options, Rejected};
use crate::expressions::{Expression, ExpressionError, Value, ValueType};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

/// An evaluated expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The value.
    pub value: Value,
    /// The type that the checker predicts.
    pub value_type: ValueType,
    /// The dotted names that the expression uses.
    pub names: BTreeSet<String>,
    /// The definitions, the lowest first, if the expression is one variable.
    pub layers: Vec<Layer>,
}

/// One definition of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The place: <file:line:column>, or the option.
    pub place: String,
    /// The value as it is written.
    pub written: String,
}

/// Evaluates an expression with the variables of graph files. Without files there are no variables.
///
/// # Errors
/// [`Rejected`] for files whose variables are wrong.
pub fn evaluate_expression(
    paths: &[PathBuf],
    options: &Options,
    text: &str,
) -> Result<Result<Evaluated, ExpressionError>, Rejected> {
    let mut problems = Problems::default();
    let sources = if paths.is_empty() {
        Vec::new()
    } else {
        crate::config::read::files::read(paths, &mut problems)
    };
    let mut inputs = Inputs::new(sources, None, options);
    let facts = Arc::new(Facts::new(inputs.facts.take(), inputs.probes.take()));
    let mut expander = new_expander(inputs, facts, &options.kinds, &mut problems);
    let scope = expander.scope_of_roots();
    let evaluated = evaluate_in(&expander, &scope, text);
    if problems.errors() > 0 {
        return Err(Rejected::of(problems));
    }
    Ok(evaluated)
}

fn evaluate_in(
    expander: &Expander<'_>,
    scope: &Scope,
    text: &str,
) -> Result<Evaluated, ExpressionError> {
    let expression = Expression::parse(text)?;
    let names = expression.dependencies();
    let uses_facts = names.iter().any(|name| name == "facts" || name.starts_with("facts."));
    if uses_facts {
        scope.facts.use_root();
    }
    let checked = expression.check(&environment(scope, (false, uses_facts), &expander.cache));
    // The message of a problem knows the facts too.
    let value_type = checked
        .or_else(|_| expression.check(&environment(scope, (false, true), &expander.cache)))?;
    let cache = (false, &expander.cache);
    let value = with_values(scope, cache, |values| expression.evaluate(values))?;
    let variable = expression.as_name();
    let variable = variable.as_deref().and_then(|name| name.strip_prefix("vars."));
    let variable = variable.map(|name| name.split('.').next().unwrap_or(name));
    let layers = variable.map(|name| expander.layers_of(name)).unwrap_or_default();
    Ok(Evaluated { value, value_type, names, layers })
}

impl Expander<'_> {
    /// Evaluates the variables of all graph files, and returns the scope of a graph file.
    fn scope_of_roots(&mut self) -> Scope {
        let contexts = self.root_contexts();
        for context in &contexts {
            self.note_probes(context);
            self.define_variables(context);
        }
        let mut first = contexts.first().cloned();
        self.define_given_variables();
        let _contexts = self.follow_includes(contexts);
        let vars = self.evaluate_variables();
        if let Some(context) = &mut first {
            self.see_probes(context);
        }
        let probe_types = first.map(|context| context.scope.probe_types).unwrap_or_default();
        Scope { vars, probe_types, ..Scope::new(&self.facts, "") }
    }
}
