//! Names and definitions of resources: invalid names, two declarations of one resource, and hashes of definitions.

use crate::config::hash::Stable;
use crate::config::problem::code::Code;
use crate::config::problem::{Place as Position, Problem, quoted};
use crate::config::{Aliases, ast};
use steadfast_resources::Place;

/// Returns the problem of a name, if there is one.
pub(in crate::config) fn wrong_name(kind: &str, name: &str) -> Option<Problem> {
    if name.is_empty() {
        return Some(Problem::new(Code::Name, format!("the name of a {kind} is empty")));
    }
    if name.starts_with("@@") {
        // The names of exports lose their mark before this check.
        let what = format!("`{}` needs a name after the mark of an export", quoted(name));
        let hint = "names with @@ at the start are exported to other hosts";
        return Some(Problem::new(Code::World, what).hint(hint));
    }
    name.chars().any(char::is_control).then(|| {
        let what = format!("the name `{}` contains a control character", quoted(name));
        Problem::new(Code::Name, what).hint("a name is one line of visible characters")
    })
}

/// Returns a hash of a definition and its received values, and the hash it would have under each alias.
pub(super) fn definitions(
    given: &ast::Resource,
    (prefix, place): (&str, &Place),
    received: Option<u64>,
) -> (u64, Aliases) {
    let defined = |name: &str| {
        let hash = Stable::new().text(given.spec.kind).text(name).number(given.given.sum);
        let base = place.base.to_string_lossy();
        let hash = if given.given.relative { hash.text(&base) } else { hash };
        received.map_or(hash, |sum| hash.number(sum)).finish()
    };
    let alias =
        |name: &String| (format!("{prefix}{}[{name}]", given.spec.kind).into(), defined(name));
    (defined(&given.name), given.aliases.iter().map(alias).collect())
}

/// Returns the problem of two active declarations of one resource.
pub(super) fn declared_twice(identity: &str, again: Option<&str>, first: Option<&str>) -> Problem {
    if again.is_none() && first.is_none() {
        let what = format!("`{}` is declared twice", quoted(identity));
        return Problem::new(Code::Duplicate, what).hint("rename one of the resources");
    }
    let shown = |condition: Option<&str>| {
        condition.map_or_else(|| "no condition".to_owned(), |it| format!("`{}`", quoted(it)))
    };
    let what = format!("two declarations of `{}` are active", quoted(identity));
    let hint = format!(
        "their conditions both hold: {} and {}; make them exclude each other",
        shown(first),
        shown(again)
    );
    Problem::new(Code::Duplicate, what).hint(hint)
}

/// Adds the advice for a loop whose items all give one name, and for a file that is included twice.
pub(super) fn with_repeat_hint(
    problem: Problem,
    again: Option<&Position>,
    first: Option<&Position>,
) -> Problem {
    let at = |place: &Position| (place.file.clone(), place.line, place.column);
    let is_loop =
        again.is_some_and(|it| it.chain.iter().any(|use_of| use_of.starts_with("in the loop")));
    if again.map(at) != first.map(at) {
        return problem;
    }
    if is_loop {
        return problem.hint("give each item a name of its own: name: \"NAME-${item}\"");
    }
    let is_included =
        again.is_some_and(|it| it.chain.iter().any(|used| used.starts_with("included at")));
    if is_included {
        return problem.hint("the file is included twice: remove one of the two includes");
    }
    problem
}
