//! Advice about comparisons with facts that are hardly ever true.

use super::{File, Findings};
use crate::config::document::tree::Node;
use crate::config::problem::quoted;

/// The facts whose values are mostly words in lower case. `check` itself warns about the facts that have no other
/// values.
const LOWER_CASE: [&str; 2] = ["os.codename", "init"];

/// Adds the advice about the expressions of a file.
pub(super) fn advise(file: &File, findings: &mut Findings) {
    if !file.source.text.contains("facts.") {
        return;
    }
    for (_, item, _) in file.resources() {
        advise_below(file, (item, item), findings);
    }
    let Some(root) = file.tree.root() else { return };
    for name in ["vars", "assert", "modules", "include"] {
        if let Some((_, node)) = file.tree.entry(root, name) {
            advise_below(file, (node, node), findings);
        }
    }
}

fn advise_below(file: &File, (node, item): (usize, usize), findings: &mut Findings) {
    match file.tree.node(node) {
        Some(Node::Scalar(scalar)) => {
            for (fact, literal) in compared_literals(&scalar.text) {
                let lower = literal.to_lowercase();
                let what = format!("`facts.{fact}` is hardly ever \"{}\"", quoted(literal));
                let hint =
                    format!("the values are words in lower case: write \"{}\"", quoted(&lower));
                findings.add("fact-case", (file, node, item), what, hint);
            }
        }
        Some(Node::List(items)) => {
            for inner in items {
                advise_below(file, (*inner, item), findings);
            }
        }
        Some(Node::Map(pairs)) => {
            for (_, inner) in pairs {
                advise_below(file, (*inner, item), findings);
            }
        }
        _ => {}
    }
}

/// Returns the facts of lower-case words in an expression that are compared with a text in another case.
fn compared_literals(text: &str) -> Vec<(&'static str, &str)> {
    let mut found = Vec::new();
    for fact in LOWER_CASE {
        for (at, name) in text.match_indices(&format!("facts.{fact}")) {
            let rest = text.get(at + name.len()..).unwrap_or_default().trim_start();
            let compared = ["==", "!=", "in"].into_iter().find_map(|sign| rest.strip_prefix(sign));
            let Some(rest) = compared.map(|rest| rest.trim_start().trim_start_matches('[')) else {
                continue;
            };
            let Some(quote) = rest.chars().next().filter(|it| matches!(it, '"' | '\'')) else {
                continue;
            };
            let literal = rest.split(quote).nth(1).unwrap_or_default();
            if literal.chars().any(char::is_uppercase) {
                found.push((fact, literal));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::compared_literals;

    #[test]
    fn comparisons_in_another_case_are_found() {
        for (text, wanted) in [
            ("facts.os.codename == \"Trixie\"", 1),
            ("facts.os.codename in ['Trixie', 'Noble']", 1),
            ("${facts.init != 'Systemd'}", 1),
            ("facts.os.codename == \"trixie\" and facts.os.name == \"Debian\"", 0),
            ("facts.os.codenames == \"Trixie\"", 0),
            ("facts.os.codename ~ \"Trixie\"", 0),
        ] {
            assert_eq!(compared_literals(text).len(), wanted, "{text}");
        }
    }
}
