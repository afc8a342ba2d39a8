//! Messages about text that is not YAML.

use crate::config::problem::Problem;
use crate::config::problem::code::Code;
use crate::config::source_file::{SourceFile, Span};
use granit_parser::ScanError;

/// Returns the problem of a parser error.
pub(in crate::config) fn problem(source: &SourceFile, error: &ScanError) -> Problem {
    let at = error.marker().byte_offset().unwrap_or_default().min(source.text.len());
    let span = Span::new(at, at + 1);
    let (line, start) = source.line_text(span.start);
    let place = source.place(span);
    let info = error.info();
    if info.contains("nesting") || info.contains("recursion") {
        return Problem::new(
            Code::Depth,
            format!(
                "the text is nested deeper than {} levels",
                crate::config::document::parse::DEEPEST
            ),
        )
        .at(Some(place));
    }
    if info.contains("unknown anchor") {
        return Problem::new(Code::Aliases, "the alias refers to no earlier anchor")
            .hint("quote the value if the * is part of a string")
            .at(Some(place));
    }
    if let Some((what, hint)) = mistaken_expression(line) {
        return Problem::new(Code::Syntax, what).hint_if(hint).at(Some(place));
    }
    let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
    if let Some(tab) = line.get(..indentation).and_then(|lead| lead.find('\t')) {
        let tab = Span::new(start + tab, start + tab + 1);
        return Problem::new(Code::Tab, "expected spaces, found a tab in the indentation")
            .hint("replace the tab by spaces")
            .at(Some(source.place(tab)));
    }
    let open_quote = "check the lines above for an unclosed quote";
    let hint = advice(line).or_else(|| info.contains("quoted scalar").then_some(open_quote));
    Problem::new(Code::Syntax, format!("invalid YAML: {info}")).hint_if(hint).at(Some(place))
}

/// Returns the message and the hint about an expression that is not quoted as YAML needs it.
fn mistaken_expression(line: &str) -> Option<(String, Option<&'static str>)> {
    if let Some((_, value)) = line.split_once("when:") {
        let value = value.trim_start();
        let quote = value.chars().next().filter(|it| matches!(it, '"' | '\''));
        if let Some(quote) = quote
            && let Some((first, rest)) = value.get(1..).and_then(|rest| rest.split_once(quote))
            && !rest.trim().is_empty()
        {
            let other = if quote == '"' { '\'' } else { '"' };
            let first = crate::config::problem::shorten(first, 10);
            let rest: String = rest.split_whitespace().take(1).collect();
            let what = format!(
                "YAML: an expression that begins with a quote is quoted as a whole: `when: {other}{quote}{first}{quote} {rest} …{other}`"
            );
            return Some((what, None));
        }
        let is_flow = line.split("when:").next().is_some_and(|before| before.contains('{'));
        if is_flow && value.contains('[') {
            let what = "YAML: quote expressions with `[ ]` inside `{ }`".to_owned();
            return Some((what, Some("write: when: 'vars.x in [\"a\", \"b\"]'")));
        }
    }
    let at = line.find("${")?;
    let before = line.get(..at).unwrap_or_default();
    let is_in_flow = before.contains(['[', '{']);
    let is_quoted = before.ends_with(['"', '\'']);
    let what = || "YAML: quote expressions inside `[ ]` and `{ }`".to_owned();
    (is_in_flow && !is_quoted).then(|| (what(), Some("write: [\"${vars.x}\"]")))
}

/// Returns advice for the most frequent mistakes.
fn advice(line: &str) -> Option<&'static str> {
    let value = line.split_once(": ").map(|(_, value)| value.trim_start()).unwrap_or_default();
    if let Some((_, list)) = line.split_once(": [")
        && !list.starts_with(['"', '\''])
        && list.split(']').next().is_some_and(|first| first.contains('['))
    {
        return Some("within [ ] a resource needs quotes: [\"kind[name]\"]");
    }
    if value.contains(": ") && !value.starts_with(['"', '\'', '{', '[']) {
        return Some("quote the value: a colon and a space have a meaning in YAML");
    }
    if value.starts_with(['@', '`', '%']) {
        return Some("quote the value: its first character is reserved in YAML");
    }
    if value.starts_with(['*', '&', '!']) {
        return Some("quote the value: a leading *, & or ! has a meaning in YAML");
    }
    if value.starts_with('[') && value.matches('[').count() > 1 {
        return Some("within [ ] a resource needs quotes: [\"kind[name]\"]");
    }
    if value.starts_with(['"', '\'']) {
        return Some("check the quotes and the text after the closing quote");
    }
    None
}
