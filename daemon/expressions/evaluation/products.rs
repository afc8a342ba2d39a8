//! The products of a template whose factor is surely a text or a list: the engine would repeat it.

use super::bindings::code_of;

/// The filters whose result is a text or a list.
const REPEATABLE: [&str; 40] = [
    "basename",
    "batch",
    "capitalize",
    "chain",
    "dictsort",
    "dirname",
    "e",
    "escape",
    "format",
    "indent",
    "ini",
    "items",
    "join",
    "json",
    "keys",
    "lines",
    "list",
    "lower",
    "map",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "select",
    "selectattr",
    "sh",
    "slice",
    "sort",
    "split",
    "string",
    "title",
    "to_json",
    "tojson",
    "trim",
    "unique",
    "upper",
    "urlencode",
    "values",
    "wordwrap",
    "zip",
];

/// The deepest nesting of parentheses that is looked into.
const DEEPEST: usize = 16;

/// A factor of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Factor {
    /// A text or a list as written, or the result of a filter that gives one.
    Repeatable,
    /// A dotted name.
    Name(String),
    /// A number, or a value whose type only the evaluation knows.
    Other,
}

/// A `*` of a template: its offset and its factors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub(super) at: usize,
    pub(super) factors: [Factor; 2],
}

/// Returns the products of a template.
pub(super) fn products_of(source: &str) -> Vec<Product> {
    let all = code_of(source).into_iter().flat_map(|code| {
        let text = source.get(code.inside.clone()).unwrap_or_default();
        let start = code.inside.start;
        let shifted = move |product: Product| Product { at: product.at + start, ..product };
        products(text).into_iter().map(shifted)
    });
    all.collect()
}

/// Returns the products of one expression.
fn products(code: &str) -> Vec<Product> {
    let mut found = Vec::new();
    for at in outside_quotes(code).filter(|(_, letter)| *letter == '*').map(|(at, _)| at) {
        let before = code.get(..at).unwrap_or_default();
        let after = code.get(at + 1..).unwrap_or_default();
        if !before.ends_with('*') && !after.starts_with('*') {
            let factors = [left_factor(before, 0), right_factor(after, 0)];
            found.push(Product { at, factors });
        }
    }
    found
}

/// Returns the letters outside of quoted texts, with their offsets.
fn outside_quotes(code: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    code.char_indices().filter(move |(_, letter)| {
        if let Some(open) = quote {
            quote = (open != *letter).then_some(open);
            return false;
        }
        let is_quote = ['"', '\''].contains(letter);
        quote = is_quote.then_some(*letter);
        !is_quote
    })
}

const fn is_part_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '.'
}

/// Returns the factor at the end of a text.
fn left_factor(before: &str, depth: usize) -> Factor {
    let before = before.trim_end();
    if before.ends_with(['"', '\'']) {
        return Factor::Repeatable;
    }
    if before.ends_with(']') {
        // A bracket behind a name is an index.
        let open = before.rfind('[').and_then(|open| before.get(..open)).unwrap_or_default();
        let is_index = open.trim_end().ends_with(|c| is_part_of_name(c) || c == ')' || c == ']');
        return if is_index { Factor::Other } else { Factor::Repeatable };
    }
    if before.ends_with(')') {
        let Some(open) = opening_parenthesis(before) else { return Factor::Other };
        let (head, inside) = (before.get(..open), before.get(open + 1..before.len() - 1));
        let (head, inside) = (head.unwrap_or_default(), inside.unwrap_or_default());
        return match filter_at_end(head) {
            Some(filter) => factor_of_filter(filter),
            None if head.trim_end().ends_with(is_part_of_name) => Factor::Other,
            None => group_factor(inside, depth),
        };
    }
    if let Some(filter) = filter_at_end(before) {
        return factor_of_filter(filter);
    }
    let rest = before.trim_end_matches(is_part_of_name);
    name_factor(before.get(rest.len()..).unwrap_or_default())
}

/// Returns the factor at the beginning of a text.
fn right_factor(after: &str, depth: usize) -> Factor {
    let after = after.trim_start();
    let (first, rest) = first_operand(after);
    // The last filter of the chain gives the value.
    let mut chain = rest.trim_start();
    let mut last = None;
    while let Some(next) = chain.strip_prefix('|') {
        let next = next.trim_start();
        let end = next.find(|c| !is_part_of_name(c)).unwrap_or(next.len());
        let (name, behind) = next.split_at(end);
        last = Some(name);
        chain = match closing_parenthesis(behind) {
            Some(close) => behind.get(close + 1..).unwrap_or_default().trim_start(),
            None => behind.trim_start(),
        };
    }
    if let Some(filter) = last {
        return factor_of_filter(filter);
    }
    if first.starts_with(['[', '"', '\'']) {
        return if rest.starts_with('[') { Factor::Other } else { Factor::Repeatable };
    }
    if first.starts_with('(') {
        let inside = first.get(1..first.len() - 1).unwrap_or_default();
        return group_factor(inside, depth);
    }
    if rest.trim_start().starts_with(['(', '[']) { Factor::Other } else { name_factor(first) }
}

/// Splits a text behind its first operand: a quoted text, a group, a list, or a name.
fn first_operand(text: &str) -> (&str, &str) {
    let end = match text.chars().next() {
        Some(open @ ('"' | '\'')) => {
            text.get(1..).and_then(|rest| rest.find(open)).map(|end| end + 2)
        }
        Some('(') => closing_parenthesis(text).map(|close| close + 1),
        Some('[') => text.find(']').map(|close| close + 1),
        _ => text.find(|c| !is_part_of_name(c)),
    };
    text.split_at_checked(end.unwrap_or(text.len())).unwrap_or((text, ""))
}

/// Returns the factor that the expression between two parentheses makes.
fn group_factor(inside: &str, depth: usize) -> Factor {
    let mut nested = 0_usize;
    let is_joined = outside_quotes(inside).any(|(_, letter)| {
        match letter {
            '(' | '[' => nested += 1,
            ')' | ']' => nested = nested.saturating_sub(1),
            _ => {}
        }
        nested == 0 && letter == '~'
    });
    if is_joined {
        return Factor::Repeatable;
    }
    if depth >= DEEPEST { Factor::Other } else { left_factor(inside, depth + 1) }
}

fn factor_of_filter(name: &str) -> Factor {
    if REPEATABLE.binary_search(&name).is_ok() { Factor::Repeatable } else { Factor::Other }
}

fn name_factor(name: &str) -> Factor {
    if name.is_empty() { Factor::Other } else { Factor::Name(name.to_owned()) }
}

/// Returns the name of the filter at the end of a text, without its values.
fn filter_at_end(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let rest = text.trim_end_matches(is_part_of_name);
    rest.trim_end().ends_with('|').then(|| text.get(rest.len()..)).flatten()
}

/// Returns the offset of the parenthesis that opens the group at the end of a text.
fn opening_parenthesis(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut last = None;
    for (at, letter) in outside_quotes(text) {
        match letter {
            '(' => open.push(at),
            ')' => last = open.pop(),
            _ => {}
        }
    }
    last
}

/// Returns the offset of the parenthesis that closes the group at the beginning of a text.
fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, letter) in outside_quotes(text) {
        match letter {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at),
            ')' => return None,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Factor, REPEATABLE, products};

    #[test]
    fn the_filters_are_sorted() {
        assert!(REPEATABLE.is_sorted());
    }

    #[test]
    fn factors_of_filters_and_groups_are_recognised() {
        let is_repeated =
            |text: &str| products(text).iter().any(|it| it.factors.contains(&Factor::Repeatable));
        for text in [
            "(a|join) * 3",
            "(a | join(', ')) * 3",
            "a|join * 3",
            "a|join(')') * 3",
            "3 * a|join('x')",
            "3 * (a|list)",
            "(a ~ b) * 3",
            "((a|sort)) * 3",
            "3 * 'x'|upper",
        ] {
            assert!(is_repeated(text), "{text}");
        }
        for text in [
            "(a|length) * 3",
            "a|join|length * 3",
            "3 * a|join('*')|length",
            "(a + b) * 3",
            "f(x) * 3",
            "3 * (a|join|length)",
            "['a', 'b'][0] ** 2",
            "'*' ~ (a|first)",
        ] {
            assert!(!is_repeated(text), "{text}");
        }
    }
}
