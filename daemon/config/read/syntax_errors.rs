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
    if let Some(problem) = wrong_indentation(source, (start, line)) {
        return problem;
    }
    let before = source.text.get(..start).unwrap_or_default();
    let (what, hint) = match info {
        _ if info.contains("quoted scalar") && unclosed_quote(before, line).is_some() => {
            ("a quote is not closed".to_owned(), unclosed_quote(before, line))
        }
        _ if info.contains("unclosed bracket") => {
            let close = if info.contains('[') { ']' } else { '}' };
            let hint = format!("close it by `{close}`, in this line or below");
            (format!("invalid YAML: {info}"), Some(hint))
        }
        _ if opens_block(before, line) => {
            let what = "the text of a block begins no deeper than its key".to_owned();
            (
                what,
                Some("indent each line of the text below `|` or `>` by two more spaces".to_owned()),
            )
        }
        _ if key_without_space(before, line, &info).is_some() => {
            let (word, place) = key_without_space(before, line, &info).unwrap_or_default();
            let hint = format!(
                "write a space behind the colon{place}: `{}: `",
                crate::config::problem::quoted(word)
            );
            ("a key has no space behind its colon".to_owned(), Some(hint))
        }
        _ if info.contains("simple key expected") && !line.contains(':') => {
            let what = "a key has no colon behind it".to_owned();
            (what, Some(format!("write `{}:`", crate::config::problem::quoted(line.trim()))))
        }
        _ if info.contains("mapping values") && bare_word_above(before).is_some() => {
            let word = bare_word_above(before).unwrap_or_default();
            let hint =
                format!("write `{}:` in the line above", crate::config::problem::quoted(word));
            ("a key has no colon behind it".to_owned(), Some(hint))
        }
        _ => {
            let misaligned = advice(line).is_none().then(|| misaligned(before, line)).flatten();
            let what = if misaligned.is_some() {
                "the indentation of this line fits no line above".to_owned()
            } else {
                format!("invalid YAML: {info}")
            };
            (what, misaligned.or_else(|| advice(line).map(str::to_owned)))
        }
    };
    Problem::new(Code::Syntax, what).hint_if(hint).at(Some(place))
}

/// Returns the problem of a tab or a no-break space in the indentation of a line or the next one.
fn wrong_indentation(source: &SourceFile, (start, line): (usize, &str)) -> Option<Problem> {
    // The parser may stop at the end of the line before.
    let next = start + line.len() + 1;
    let next = (next, source.line_text(Span::new(next, next).start).0);
    let lines = [(start, line), next];
    if let Some(tab) = lines.into_iter().find_map(|(start, line)| Some(start + tab_in(line)?)) {
        let tab = Span::new(tab, tab + 1);
        let problem = Problem::new(Code::Tab, "expected spaces, found a tab in the indentation")
            .hint("replace the tab by spaces")
            .at(Some(source.place(tab)));
        return Some(problem);
    }
    if let Some(space) =
        lines.into_iter().find_map(|(start, line)| Some(start + no_break_space_in(line)?))
    {
        let what = "expected spaces, found a no-break space in the indentation";
        let problem = Problem::new(Code::Syntax, what)
            .hint("replace the character U+00A0 by a space")
            .at(Some(source.place(Span::new(space, space + 2))));
        return Some(problem);
    }
    None
}

/// Returns the offset of a tab in the indentation of a line.
fn tab_in(line: &str) -> Option<usize> {
    let indentation = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..indentation)?.find('\t')
}

/// Returns the offset of a no-break space in the indentation of a line.
fn no_break_space_in(line: &str) -> Option<usize> {
    let indentation = line.len() - line.trim_start_matches([' ', '\u{a0}']).len();
    line.get(..indentation)?.find('\u{a0}')
}

/// Returns true if the line above announces a block of text, and this line is no deeper than its key.
fn opens_block(before: &str, line: &str) -> bool {
    let above = before.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let is_block = [": |", ": |-", ": |+", ": >", ": >-", ": >+"];
    let is_opened = is_block.iter().any(|end| above.trim_end().ends_with(end));
    let own = line.len() - line.trim_start_matches(' ').len() + 1;
    is_opened && !line.contains(':') && own <= column_of_key(above)
}

/// Returns the key whose colon nothing separates from the value, and the words for another line than that of the error.
fn key_without_space<'a>(
    before: &'a str,
    line: &'a str,
    info: &str,
) -> Option<(&'a str, &'static str)> {
    let key_in = |line: &'a str| {
        let (key, value) = line.trim_start_matches([' ', '-']).split_once(':')?;
        let is_word = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        (is_word && !value.is_empty() && !value.starts_with([' ', ':'])).then_some(key)
    };
    if info.contains("simple key expected") {
        return Some((key_in(line)?, ""));
    }
    let above = before.lines().last().filter(|_| info.contains("mapping values"))?;
    Some((key_in(above)?, " in the line above"))
}

/// Returns the column of the first key of a line: that behind the dashes of a list.
fn column_of_key(line: &str) -> usize {
    let mut rest = line.trim_start_matches(' ');
    while let Some(inner) = rest.strip_prefix("- ") {
        rest = inner.trim_start_matches(' ');
    }
    line.len() - rest.len() + 1
}

/// Returns the line above if it is one word without a colon.
fn bare_word_above(before: &str) -> Option<&str> {
    let above = before.lines().last()?.trim();
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (!above.is_empty() && above.chars().all(is_word)).then_some(above)
}

/// Returns the advice about a line whose keys begin between the columns of the lines above.
fn misaligned(before: &str, line: &str) -> Option<String> {
    let is_structure = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let own = column_of_key(line);
    let mut above = before.lines().rev().filter(is_structure);
    let nearest = column_of_key(above.next()?);
    if own == nearest || line.trim().is_empty() {
        return None;
    }
    let outer = above.find(|line| column_of_key(line) < own.min(nearest));
    let outer = outer.filter(|_| own < nearest).map(|line| {
        let key = line.trim_start_matches([' ', '-']).split(':').next().unwrap_or_default();
        let key = crate::config::problem::quoted(key);
        format!(", or in column {} for a key beside `{key}`", column_of_key(line))
    });
    Some(format!(
        "the line begins in column {own}, the keys of the entry above in column {nearest}: begin there{}",
        outer.unwrap_or_default()
    ))
}

/// Returns the advice about a quote that no line closes: the line above that opens it.
fn unclosed_quote(before: &str, line: &str) -> Option<String> {
    let is_open = |line: &&str| {
        ['"', '\''].into_iter().any(|quote| {
            line.contains(&format!(": {quote}")) && line.matches(quote).count() % 2 == 1
        })
    };
    let count = before.lines().count();
    let all = before.lines().chain([line]).zip(1..).filter(|(line, _)| is_open(line));
    let (_, number) = all.last()?;
    Some(if number <= count {
        format!("line {number} opens a quote: close it at the end of that line")
    } else {
        "close the quote at the end of the value, or remove it".to_owned()
    })
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
            let whole = value.trim_end_matches([' ', '}', ']']);
            let inner = whole.get(1..).and_then(|rest| rest.strip_suffix(quote));
            if let Some(inner) = inner.filter(|_| !rest.starts_with(' ')) {
                let inner = inner.replace(quote, &other.to_string());
                let inner = crate::config::problem::shorten(&inner, 50);
                let what = format!(
                    "YAML: the quote inside ends the value: write `when: {quote}{inner}{quote}`"
                );
                return Some((what, None));
            }
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
    // A quote that is open before the expression.
    let is_quoted = ['"', '\''].into_iter().any(|quote| before.matches(quote).count() % 2 == 1);
    let what = || "YAML: quote expressions inside `[ ]` and `{ }`".to_owned();
    (is_in_flow && !is_quoted).then(|| (what(), Some("write: [\"${vars.x}\"]")))
}

/// Returns true if a map in braces has a key such as `file[vhost]` without quotes.
fn has_bare_resource_key(line: &str) -> bool {
    let Some((_, inner)) = line.split_once('{') else { return false };
    inner.split(['{', ',']).any(|part| {
        let Some((word, rest)) = part.trim_start().split_once('[') else { return false };
        let is_kind = word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == ':');
        is_kind
            && !word.is_empty()
            && rest.split_once(']').is_some_and(|(_, after)| after.starts_with(':'))
    })
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
    if has_bare_resource_key(line) {
        return Some("within { } the name of a resource needs quotes: {\"kind[name]\": {…}}");
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
