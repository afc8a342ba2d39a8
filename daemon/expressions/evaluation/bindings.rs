//! The work of values that a template binds to names. A name that is bound to a list of itself, again and again, stands
//! for an endless text in few bytes: each bound value is charged with all of its parts.
//!
//! The engine has no hook for a binding. A check is added behind each tag that binds names, as text of the template,
//! and taken away from the places of errors.

use super::absent_facts::{ABSENT, absent_steps};
use super::operands::{ADDED, COMPARED, FACTOR, INDEXED, JOINED, OPEN, SEARCHED, charged_operands};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

/// The filter that charges a value.
pub(super) const CHARGE: &str = "steadfast_charge";

/// A part of a template between two delimiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// The bytes between the delimiters.
    pub(super) inside: Range<usize>,
    /// True for `{% %}`, false for `{{ }}`.
    pub(super) is_tag: bool,
}

/// Returns the code of a template; comments and raw blocks have none.
pub(super) fn code_of(source: &str) -> Vec<Code> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(open) = source.get(at..).and_then(|rest| rest.find('{')).map(|open| at + open) {
        let inner = open + 2;
        let is_tag = match source.get(open..inner) {
            Some("{{") => false,
            Some("{%") => true,
            Some("{#") => {
                let rest = source.get(inner..).unwrap_or_default();
                let Some(close) = rest.find("#}") else { break };
                at = inner + close + 2;
                continue;
            }
            _ => {
                at = open + 1;
                continue;
            }
        };
        let rest = source.get(inner..).unwrap_or_default();
        let Some(length) = code_length(rest, is_tag) else {
            // The parser reads to the end before it finds that the delimiter is missing.
            all.push(Code { inside: inner..source.len(), is_tag });
            break;
        };
        let inside = inner..inner + length;
        at = inside.end + 2;
        if is_tag && words(source.get(inside.clone()).unwrap_or_default()).0 == "raw" {
            let rest = source.get(at..).unwrap_or_default();
            let Some(close) = rest.find("endraw") else { break };
            at += close;
            continue;
        }
        all.push(Code { inside, is_tag });
    }
    all
}

/// The maximum length of the code between two delimiters, in bytes. Each byte can be an operator, and the engine needs
/// stack for each.
const LONGEST_CODE: usize = 4096;

/// The maximum number of `elif` of one template: the engine needs stack for each.
const MOST_BRANCHES: usize = 500;

/// Returns the offset of code that the engine cannot parse on its stack, with the reason.
pub(super) fn find_excess(source: &str) -> Option<(usize, String)> {
    let mut branches = 0;
    for code in code_of(source) {
        let length = code.inside.len();
        if length > LONGEST_CODE {
            let what = format!("a tag has at most {LONGEST_CODE} bytes, this has {length}");
            return Some((code.inside.start, what));
        }
        let tag = source.get(code.inside.clone()).unwrap_or_default();
        if let Err((at, what)) = charged_operands(tag, code.is_tag) {
            return Some((code.inside.start + at, what));
        }
        if code.is_tag && words(tag).0 == "elif" {
            branches += 1;
            if branches > MOST_BRANCHES {
                let what = format!("a template has at most {MOST_BRANCHES} `elif`");
                return Some((code.inside.start, what));
            }
        }
    }
    None
}

/// Returns the number of bytes before the closing delimiter; quotes and braces within are skipped.
fn code_length(text: &str, is_tag: bool) -> Option<usize> {
    let close = if is_tag { "%}" } else { "}}" };
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            _ if depth == 0 && text.get(at..).is_some_and(|rest| rest.starts_with(close)) => {
                return Some(at);
            }
            (None, '"' | '\'') => quote = Some(letter),
            (None, '{') => depth += 1,
            (None, '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    None
}

/// Returns the first word of a tag, and the rest.
fn words(tag: &str) -> (&str, &str) {
    let tag = tag.trim_start_matches(['-', '+']).trim_start();
    let end = tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(tag.len());
    tag.split_at(end)
}

/// Adds the charges of operands, and a check behind each tag that binds names.
pub(super) fn with_checks(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut done = 0;
    for code in code_of(source) {
        let tag = source.get(code.inside.clone()).unwrap_or_default();
        let mut insertions = charged_operands(tag, code.is_tag).unwrap_or_default();
        insertions.extend(absent_steps(tag));
        insertions.sort_by_key(|insertion| insertion.at);
        for insertion in insertions {
            let at = code.inside.start + insertion.at;
            text.push_str(source.get(done..at).unwrap_or_default());
            text.push_str(&insertion.text);
            done = at;
        }
        let names = if code.is_tag { bound_names(tag) } else { Vec::new() };
        if names.is_empty() {
            continue;
        }
        let end = code.inside.end + 2;
        text.push_str(source.get(done..end).unwrap_or_default());
        done = end;
        // White space behind the tag is trimmed as before.
        let trim = tag.chars().last().filter(|last| ['-', '+'].contains(last));
        for (number, name) in names.iter().enumerate() {
            let trim = trim.filter(|_| number + 1 == names.len()).map(String::from);
            let trim = trim.unwrap_or_default();
            text.push_str(&format!(
                "{{% if {name} is defined %}}{{% set {name} = {name}|{CHARGE} %}}{{% endif {trim}%}}"
            ));
        }
    }
    text.push_str(source.get(done..).unwrap_or_default());
    text
}

/// A text that [`with_checks`] adds: a check of bound values, or a part of the code of an operand.
static CHECKS: LazyLock<Option<regex_lite::Regex>> = LazyLock::new(|| {
    let check = format!(
        "\\{{% if [A-Za-z0-9_.]+ is defined %\\}}\\{{% set [A-Za-z0-9_.]+ = [A-Za-z0-9_.]+\\|{CHARGE} %\\}}\\{{% endif [-+]?%\\}}"
    );
    let open = regex_lite::escape(OPEN);
    let operand = format!(
        "\\|(?:{ADDED}|{COMPARED}|{FACTOR}|{SEARCHED}|{JOINED}|(?:{INDEXED}|{ABSENT})\\))|{open}"
    );
    regex_lite::Regex::new(&format!("{check}|{operand}")).ok()
});

/// Takes the checks away again; returns the text as written, and the offset there.
pub(super) fn without_checks(text: &str, offset: usize) -> (Cow<'_, str>, usize) {
    let Some(added) = &*CHECKS else { return (Cow::Borrowed(text), offset) };
    let (mut moved, mut is_inside) = (offset, false);
    for found in added.find_iter(text).take_while(|found| found.start() < offset) {
        moved -= found.end().min(offset) - found.start();
        is_inside |= offset < found.end() && found.as_str().starts_with("{%");
    }
    let clean = added.replace_all(text, "");
    if is_inside {
        // A check fails for the tag before it: its first word is the place.
        let tags = code_of(&clean);
        if let Some(tag) = tags.iter().find(|code| code.inside.end + 2 == moved) {
            let inside = clean.get(tag.inside.clone()).unwrap_or_default();
            let start = inside.trim_start_matches(['-', '+']).trim_start();
            moved = tag.inside.end - start.len();
        }
    }
    (clean, moved)
}

/// Returns the names that a tag binds to values.
fn bound_names(tag: &str) -> Vec<String> {
    let tag = tag.trim_end().trim_end_matches(['-', '+']);
    let (word, rest) = words(tag);
    let targets = |text: &str| -> Vec<String> {
        let names = text.split([',', '(', ')']).map(str::trim);
        names.filter(|name| is_name(name)).map(str::to_owned).collect()
    };
    match word {
        "set" => parts(rest, '=')
            .first()
            .filter(|first| first.len() < rest.len())
            .map_or_else(Vec::new, |first| targets(first)),
        "with" => parts(rest, ',').iter().flat_map(|pair| targets(parts(pair, '=')[0])).collect(),
        "for" => targets(rest.get(..start_of_in(rest)).unwrap_or_default()),
        "macro" | "call" => {
            let (name, list) = rest.split_once('(').unwrap_or((rest, ""));
            if word == "call" && !name.trim().is_empty() {
                return Vec::new();
            }
            // A closing parenthesis at the outer level ends the list.
            let list = parts(list, ')')[0];
            parts(list, ',').iter().flat_map(|param| targets(parts(param, '=')[0])).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the offset of the word `in` of a loop.
fn start_of_in(text: &str) -> usize {
    let is_word = |at: &usize| {
        let before = text.get(..*at).unwrap_or_default().chars().last();
        let after = text.get(at + 2..).unwrap_or_default().chars().next();
        !before.is_none_or(is_letter) && !after.is_none_or(is_letter)
    };
    text.match_indices("in").map(|(at, _)| at).find(is_word).unwrap_or(0)
}

const fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// Splits a text at a letter outside of quotes and brackets; the list has at least one part.
fn parts(text: &str, at: char) -> Vec<&str> {
    let (mut depth, mut quote, mut start) = (0_usize, None, 0);
    let mut all = Vec::new();
    for (index, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, letter) if letter == at && depth == 0 => {
                all.push(text.get(start..index).unwrap_or_default());
                start = index + letter.len_utf8();
            }
            (None, '[' | '{' | '(') => depth += 1,
            (None, ']' | '}' | ')') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    all.push(text.get(start..).unwrap_or_default());
    all
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

#[cfg(test)]
mod tests {
    use super::{bound_names, code_of, with_checks, without_checks};

    #[test]
    fn bindings_are_found() {
        for (tag, names) in [
            (" set a = 1 ", "a"),
            ("- set n.x = [n.x, n.x] -", "n.x"),
            (" set a, b = (1, 2) ", "a b"),
            (" set a ", ""),
            (" for a in b ", "a"),
            (" for (a, b) in c | items ", "a b"),
            (" with a = [1, 2], b = 'x, y=3' ", "a b"),
            (" for in_a\nin\nb ", "in_a"),
            (" for (a)in(b) ", "a"),
            (" macro f(a, b=1) ", "a b"),
            (" macro f(a=(1, ')'), b) ", "a b"),
            (" call f(true) ", ""),
            (" call(x) f() ", "x"),
            (" if a ", ""),
            (" include 'a' ", ""),
        ] {
            assert_eq!(bound_names(tag).join(" "), names, "{tag}");
        }
    }

    #[test]
    fn checks_are_added_and_taken_away() {
        for text in [
            "{% set a = 1 -%}\n x {{ a }}",
            "{# {% set b = 1 %} #}{% raw %}{% set c = 1 %}{% endraw %}{% for d in [1] %}{{ d }}{% endfor %}",
            "{{ '{% set a = 1 %}' }}{{ {'a': {'b': 1}} }}",
            "{% set a = '%}' %}",
            "{% set",
        ] {
            let checked = with_checks(text);
            assert_eq!(without_checks(&checked, checked.len()).0, text);
            assert_eq!(without_checks(&checked, checked.len()).1, text.len());
        }
        let checked = with_checks("{% set a = 1 %}{{ b }}");
        let at = checked.rfind('b').unwrap_or_default();
        assert_eq!(without_checks(&checked, at).1, 18);
        assert_eq!(code_of("{{ '}}' }} {% raw %}{{ x }}{% endraw %}{{ y }}").len(), 2);
    }
}
