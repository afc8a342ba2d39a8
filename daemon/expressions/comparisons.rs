//! The comparisons of names with literal texts in an expression.

use crate::expressions::expression::Expression;
use crate::expressions::syntax::node::{Node, NodeKind, Operator};

/// A comparison of a name with a literal text: `facts.os.id == "debian"`, or one text of `facts.os.id in ["debian"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The dotted name.
    pub name: String,
    /// The change of case before the comparison: `lower` or `upper`.
    pub case: Option<&'static str>,
    /// The literal text.
    pub text: String,
    /// The first byte of the literal, counted from the start of the expression.
    pub offset: usize,
}

impl Expression {
    /// Returns the comparisons of names with literal texts by `==`, `!=`, `in` and `not in`.
    #[must_use]
    pub fn compared_texts(&self) -> Vec<Comparison> {
        let mut all = Vec::new();
        collect(self.node(), &mut all);
        all
    }
}

fn collect(node: &Node, all: &mut Vec<Comparison>) {
    if let NodeKind::Binary(operator, left, right) = &node.kind {
        match operator {
            Operator::Equal | Operator::NotEqual => {
                all.extend(compare(left, right));
                all.extend(compare(right, left));
            }
            Operator::In | Operator::NotIn => {
                if let NodeKind::List(items) = &right.kind {
                    all.extend(items.iter().filter_map(|item| compare(left, item)));
                }
            }
            _ => {}
        }
    }
    node.visit_children(&mut |child| collect(child, all));
}

/// Returns the comparison of a name with a literal text.
fn compare(name: &Node, text: &Node) -> Option<Comparison> {
    let NodeKind::Text(literal) = &text.kind else { return None };
    let (path, case) = match &name.kind {
        NodeKind::Path(path) => (path, None),
        NodeKind::Call(function, arguments) => {
            let case = ["lower", "upper"].into_iter().find(|case| *case == function.name)?;
            match arguments.as_slice() {
                [Node { kind: NodeKind::Path(path), .. }] => (path, Some(case)),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Comparison { name: path.join("."), case, text: literal.clone(), offset: text.start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compared_texts_are_found() {
        for (text, wanted) in [
            ("facts.os.id == \"a\" and \"b\" != facts.os.id", "facts.os.id=a facts.os.id=b"),
            ("vars.x in [\"a\", \"b\"]", "vars.x=a vars.x=b"),
            ("(vars.x | lower) == \"A\"", "lower(vars.x)=A"),
            ("\"a\" in vars.x or vars.x ~ \"a\" == vars.y", ""),
            ("1 if not (vars.x == \"a\") else 2", "vars.x=a"),
        ] {
            let expression = Expression::parse(text).expect(text);
            let shown = |it: &Comparison| match it.case {
                Some(case) => format!("{case}({})={}", it.name, it.text),
                None => format!("{}={}", it.name, it.text),
            };
            let found: Vec<String> = expression.compared_texts().iter().map(shown).collect();
            assert_eq!(found.join(" "), wanted, "{text}");
        }
    }
}
