//! A parsed expression.

use crate::expressions::check::{check_condition, type_of};
use crate::expressions::environment::Environment;
use crate::expressions::error::{Cause, ExpressionError};
use crate::expressions::evaluation::program::{Program, absent_message};
use crate::expressions::scope::Scope;
use crate::expressions::syntax::node::{Node, NodeKind, Operator};
use crate::expressions::syntax::parse::parse_expression;
use crate::expressions::value::Value;
use crate::expressions::value_type::ValueType;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// A parsed expression; a copy is cheap.
#[derive(Clone, Debug)]
pub struct Expression {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    text: String,
    may_use_facts: bool,
    node: Node,
    program: OnceLock<Result<Program, ExpressionError>>,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.inner.text == other.inner.text
    }
}

impl Eq for Expression {}

impl Expression {
    /// Parses an expression.
    ///
    /// ```
    /// use steadfast::expressions::{Expression, Scope, Value};
    /// let expression = Expression::parse("2 * 3 + 1").expect("an expression");
    /// assert_eq!(expression.evaluate(&Scope::new()), Ok(Value::Int(7)));
    /// ```
    ///
    /// # Errors
    /// An [`ExpressionError`] with offsets from the start of `text`.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let node = parse_expression(text)?;
        Ok(Self {
            inner: Arc::new(Inner {
                text: text.to_owned(),
                may_use_facts: text.contains("facts"),
                node,
                program: OnceLock::new(),
            }),
        })
    }

    /// Parses the expression of a condition, which has no `${ }` around it.
    ///
    /// # Errors
    /// An [`ExpressionError`] with offsets from the start of `text`.
    pub fn parse_condition(text: &str) -> Result<Self, ExpressionError> {
        if let Some(inner) = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'))
        {
            let inner = crate::expressions::syntax::parse::shortened(inner.trim());
            let message = format!("a condition has no `${{ }}`: write `when: {inner}`");
            return Err(ExpressionError::new(Cause::Syntax, (0, text.len()), message));
        }
        Self::parse(text)
    }

    /// Returns the tree.
    pub(super) fn node(&self) -> &Node {
        &self.inner.node
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.inner.text
    }

    /// Returns false if the expression uses no facts.
    #[must_use]
    pub fn may_use_facts(&self) -> bool {
        self.inner.may_use_facts
    }

    /// Returns the address of the expression, which its copies share.
    #[must_use]
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.inner).addr()
    }

    /// Returns the dotted names that the expression uses, in alphabetic order: `facts.cpu.count`, `vars.sites`.
    #[must_use]
    pub fn dependencies(&self) -> BTreeSet<String> {
        self.mentions().into_iter().collect()
    }

    /// Returns each mention of a name, also repeated ones: an operator can copy the value for each.
    #[must_use]
    pub fn mentions(&self) -> Vec<String> {
        let mut mentions = Vec::new();
        collect_mentions(&self.inner.node, &mut mentions);
        mentions
    }

    /// Returns true if the expression calls a function: its arguments are copied.
    #[must_use]
    pub fn calls_function(&self) -> bool {
        has_call(&self.inner.node)
    }

    /// Returns the name, if the expression is nothing but a name.
    #[must_use]
    pub fn as_name(&self) -> Option<String> {
        match &self.inner.node.kind {
            NodeKind::Path(path) => Some(path.join(".")),
            _ => None,
        }
    }

    /// Returns the truth of `and`, `or`, `not` and a choice of which some parts are not known yet: a known part may
    /// decide alone. `truth_of` gets the text of each part that it needs; none if such a part fails, and for any other
    /// expression.
    pub fn truth_of_parts(&self, truth_of: &mut dyn FnMut(&str) -> Option<Truth>) -> Option<Truth> {
        let node = &self.inner.node;
        match &node.kind {
            NodeKind::Not(_)
            | NodeKind::If(..)
            | NodeKind::Binary(Operator::And | Operator::Or, ..) => {
                truth_of_node(node, &mut |part| {
                    truth_of(self.inner.text.get(part.start..part.end)?)
                })
            }
            _ => None,
        }
    }

    /// Returns the text with the selected value in place of each choice: `(b) == "a"` of `(a if c else b) == "a"` where
    /// `c` is false. `truth_of` gets the text of a condition. Returns none without a choice, with an unknown condition,
    /// and for `and`, `or` and `not`.
    pub fn with_choices(&self, truth_of: &mut dyn FnMut(&str) -> Option<bool>) -> Option<String> {
        let node = &self.inner.node;
        let is_connective = matches!(
            &node.kind,
            NodeKind::Not(_) | NodeKind::Binary(Operator::And | Operator::Or, ..)
        );
        if is_connective {
            return None;
        }
        let (text, has_choice) = rewrite_choices(node, &self.inner.text, truth_of)?;
        has_choice.then_some(text)
    }

    /// Returns the type of the result.
    ///
    /// # Errors
    /// The first reason to refuse the expression: an unknown or forbidden name, or types that do not fit.
    pub fn check(&self, environment: &Environment) -> Result<ValueType, ExpressionError> {
        type_of(&self.inner.node, environment)
    }

    /// Returns the problem of each name that the environment does not have.
    #[must_use]
    pub fn unknown_names(&self, environment: &Environment) -> Vec<ExpressionError> {
        let mut problems = Vec::new();
        collect_unknown_names(&self.inner.node, environment, &mut problems);
        problems
    }

    /// Checks that the expression is a condition.
    ///
    /// # Errors
    /// As [`Self::check`], and a result that is not bool.
    pub fn check_condition(&self, environment: &Environment) -> Result<(), ExpressionError> {
        check_condition(&self.inner.node, environment)
    }

    /// Evaluates the expression. A checked expression fails only for a value: a division by zero, an overflow, an
    /// absent value, an index beyond a list, a text that is no number.
    ///
    /// # Errors
    /// An [`ExpressionError`] with the failed part.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<Value, ExpressionError> {
        // Most expressions are a name or a literal, which need no engine.
        match &self.inner.node.kind {
            NodeKind::Path(path) => {
                return scope.value_at(path).cloned().ok_or_else(|| {
                    let range = self.inner.node.range();
                    ExpressionError::new(Cause::Value, range, absent_message(path))
                });
            }
            NodeKind::Bool(truth) => return Ok(Value::Bool(*truth)),
            NodeKind::Int(number) => return Ok(Value::Int(*number)),
            NodeKind::Text(text) => return Ok(Value::Text(text.clone())),
            _ => {}
        }
        let program = self.inner.program.get_or_init(|| Program::compile(&self.inner.node));
        program.as_ref().map_err(Clone::clone)?.run(scope)
    }
}

/// The truth of a condition, some values of which may not be known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// True or false, whatever the missing values are.
    Known(bool),
    /// It depends on a missing value.
    Unknown,
}

/// Returns the text of a node without its choices, and whether it had one; none if a condition is not known.
fn rewrite_choices(
    node: &Node,
    source: &str,
    truth_of: &mut dyn FnMut(&str) -> Option<bool>,
) -> Option<(String, bool)> {
    let mut choices = Vec::new();
    collect_choices(node, &mut choices);
    let (mut text, mut at) = (String::new(), node.start);
    for choice in &choices {
        let NodeKind::If(value, condition, other) = &choice.kind else { continue };
        let condition = source.get(condition.start..condition.end)?;
        let chosen = if truth_of(condition)? { value } else { other };
        let (chosen, _) = rewrite_choices(chosen, source, truth_of)?;
        text.push_str(source.get(at..choice.start)?);
        text.push_str(&format!("({chosen})"));
        at = choice.end;
    }
    text.push_str(source.get(at..node.end)?);
    Some((text, !choices.is_empty()))
}

/// Adds the outermost choices of a node, in the order of the text.
fn collect_choices<'node>(node: &'node Node, choices: &mut Vec<&'node Node>) {
    if let NodeKind::If(..) = &node.kind {
        choices.push(node);
        return;
    }
    node.visit_children(&mut |child| collect_choices(child, choices));
}

/// Returns the truth of a node; none if a part that it needs fails.
fn truth_of_node(node: &Node, truth_of: &mut dyn FnMut(&Node) -> Option<Truth>) -> Option<Truth> {
    let is_and = match &node.kind {
        NodeKind::Not(inner) => {
            return Some(match truth_of_node(inner, truth_of)? {
                Truth::Known(truth) => Truth::Known(!truth),
                Truth::Unknown => Truth::Unknown,
            });
        }
        NodeKind::If(value, condition, other) => {
            return match truth_of_node(condition, truth_of)? {
                Truth::Known(true) => truth_of_node(value, truth_of),
                Truth::Known(false) => truth_of_node(other, truth_of),
                Truth::Unknown => {
                    let value = truth_of_node(value, truth_of)?;
                    let is_same = truth_of_node(other, truth_of)? == value;
                    Some(if is_same { value } else { Truth::Unknown })
                }
            };
        }
        NodeKind::Binary(Operator::And, ..) => true,
        NodeKind::Binary(Operator::Or, ..) => false,
        _ => return truth_of(node),
    };
    let NodeKind::Binary(_, left, right) = &node.kind else { return None };
    // A false part decides `and`, a true one `or`.
    let decisive = Truth::Known(!is_and);
    let left = truth_of_node(left, truth_of)?;
    if left == decisive {
        return Some(left);
    }
    let right = truth_of_node(right, truth_of)?;
    Some(if right == decisive || left != Truth::Unknown { right } else { Truth::Unknown })
}

/// Adds each mention of a name in a node.
fn collect_mentions(node: &Node, mentions: &mut Vec<String>) {
    if let NodeKind::Path(path) = &node.kind {
        mentions.push(path.join("."));
    }
    node.visit_children(&mut |child| collect_mentions(child, mentions));
}

/// Returns true if a node or a part of it calls a function.
fn has_call(node: &Node) -> bool {
    let mut found = matches!(node.kind, NodeKind::Call(..));
    node.visit_children(&mut |child| found |= has_call(child));
    found
}

/// Adds the problems of the unknown names in a node.
fn collect_unknown_names(
    node: &Node,
    environment: &Environment,
    problems: &mut Vec<ExpressionError>,
) {
    match &node.kind {
        NodeKind::Path(path) => problems.extend(environment.resolve(path, node.range()).err()),
        NodeKind::Default(value, other) => {
            let is_absent = |path: &[String]| environment.is_absent(path);
            if matches!(&value.kind, NodeKind::Path(path) if is_absent(path)) {
                return collect_unknown_names(other, environment, problems);
            }
        }
        _ => {}
    }
    node.visit_children(&mut |child| collect_unknown_names(child, environment, problems));
}
