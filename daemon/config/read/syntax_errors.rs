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
            format!("the text is nested deeper than {} levels", super::yaml_tree::DEEPEST),
        )
        .at(Some(place));
    }
    if info.contains("unknown anchor") {
        return Problem::new(Code::Aliases, "the alias refers to no earlier anchor")
            .hint("quote the value if the * is part of a string")
            .at(Some(place));
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

/// Returns advice for the most frequent mistakes.
fn advice(line: &str) -> Option<&'static str> {
    let value = line.split_once(": ").map(|(_, value)| value.trim_start()).unwrap_or_default();
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

/// Returns the problem of a text that only `serde_yaml` rejects.
///
/// The message of the library is left out, because it may quote a value.
pub(in crate::config) fn disagreement(source: &SourceFile, error: &serde_yaml::Error) -> Problem {
    let at = error.location().map(|location| location.index()).unwrap_or_default();
    Problem::new(Code::Readers, "YAML parsers interpret this text differently")
        .hint("simplify the YAML: quote strings, and put one key on each line")
        .at(Some(source.place(Span::new(at, at + 1))))
}
