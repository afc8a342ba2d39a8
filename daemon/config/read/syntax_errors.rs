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
            format!("nested deeper than {} levels", super::yaml_tree::DEEPEST),
        )
        .at(Some(place));
    }
    if info.contains("unknown anchor") {
        return Problem::new(Code::Aliases, "this alias names nothing that was written before it")
            .hint("quote the value if the * is meant as text")
            .at(Some(place));
    }
    let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
    if let Some(tab) = line.get(..indentation).and_then(|lead| lead.find('\t')) {
        let tab = Span::new(start + tab, start + tab + 1);
        return Problem::new(Code::Tab, "expected spaces, found a tab in the indentation")
            .hint("replace it by spaces")
            .at(Some(source.place(tab)));
    }
    let open_quote = "look above for a quote that is not closed";
    let hint = advice(line).or_else(|| info.contains("quoted scalar").then_some(open_quote));
    Problem::new(Code::Syntax, format!("this is not YAML: {info}")).hint_if(hint).at(Some(place))
}

/// Returns advice for the most frequent mistakes.
fn advice(line: &str) -> Option<&'static str> {
    let value = line.split_once(": ").map(|(_, value)| value.trim_start()).unwrap_or_default();
    if value.contains(": ") && !value.starts_with(['"', '\'', '{', '[']) {
        return Some("quote the value: it contains a colon and a space");
    }
    if value.starts_with(['@', '`', '%']) {
        return Some("quote the value: it begins with a character that YAML reserves");
    }
    if value.starts_with(['*', '&', '!']) {
        return Some("quote the value: * & and ! have a meaning at its beginning");
    }
    if value.starts_with('[') && value.matches('[').count() > 1 {
        return Some("within [ ] a resource needs quotes: [\"kind[name]\"]");
    }
    if value.starts_with(['"', '\'']) {
        return Some("look at the quotes and at what follows the closing one");
    }
    None
}

/// Returns the problem of a text that only `serde_yaml` rejects.
///
/// The message of the library is left out, because it may quote a value.
pub(in crate::config) fn disagreement(source: &SourceFile, error: &serde_yaml::Error) -> Problem {
    let at = error.location().map(|location| location.index()).unwrap_or_default();
    Problem::new(Code::Readers, "YAML readers differ about this text")
        .hint("write it more plainly: quote texts, and put one key on each line")
        .at(Some(source.place(Span::new(at, at + 1))))
}
