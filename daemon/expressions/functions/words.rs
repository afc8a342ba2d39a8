//! The words of expressions besides the functions, and the filters and tests that only templates have.

use crate::expressions::functions::table::function_names;

/// The words of expressions, each with its meaning.
pub const WORDS: &[(&str, &str)] = &[
    ("and", "a and b: true if both conditions hold; both sides are bool."),
    ("or", "a or b: true if one of the conditions holds; both sides are bool."),
    ("not", "not a: true if the condition does not hold; `a not in b`: the opposite of `in`."),
    ("in", "a in b: true if a list has the item, a map the key, or a string the part."),
    ("if", "x if condition else y: x if the condition holds, else y; both have one type."),
    ("else", "x if condition else y: x if the condition holds, else y; both have one type."),
    (
        "is",
        "x is TEST: only in templates. An expression compares with `==`, and writes `| default(…)` for an absent value.",
    ),
    ("true", "A bool."),
    ("false", "A bool."),
];

/// The filters that only templates have, each with its meaning. Templates have the functions of expressions, too.
pub const TEMPLATE_FILTERS: &[(&str, &str)] = &[
    ("sh", "The value as one word of a shell; a list as several words."),
    ("json", "The value as JSON."),
    ("ini", "The value as a value of an INI file."),
    ("attr", "One attribute of a value: x | attr(\"name\")."),
    ("batch", "The items in groups of a size: list | batch(3)."),
    ("chain", "Several lists as one: a | chain(b)."),
    ("float", "The value as a number with a fraction."),
    ("format", "A text with values: \"%s\" | format(x)."),
    ("items", "The pairs of key and value of a map."),
    ("lines", "The lines of a text, as a list."),
    ("list", "The items or keys of a value, as a list."),
    ("reject", "The items for which a test is false: list | reject(\"odd\")."),
    ("slice", "The items in a number of columns: list | slice(3)."),
    ("sum", "The sum of the items."),
    ("title", "The text with each word in a capital letter."),
    ("zip", "The items of several lists, in pairs."),
];

/// The tests of templates, as in `{% if x is TEST %}`, each with its meaning.
pub const TEMPLATE_TESTS: &[(&str, &str)] = &[
    ("defined", "True if the name has a value."),
    ("none", "True for an empty value."),
    ("boolean", "True for a bool."),
    ("odd", "True for an odd number."),
    ("even", "True for an even number."),
    ("number", "True for a number."),
    ("integer", "True for a number without a fraction."),
    ("sequence", "True for a list."),
    ("iterable", "True for a list or a map."),
    ("mapping", "True for a map."),
    ("sameas", "True if both values are the same: x is sameas y."),
    ("eq", "True if both values are equal: x is eq y; also ne, lt, le, gt, ge."),
];

/// Returns the words of expressions: the functions and the operators that are words.
pub fn words() -> impl Iterator<Item = &'static str> {
    function_names().chain(WORDS.iter().map(|(word, _)| *word))
}

#[cfg(test)]
mod tests {
    use super::{TEMPLATE_FILTERS, TEMPLATE_TESTS, WORDS};
    use crate::expressions::syntax::parse::RESERVED;
    use crate::expressions::{Scope, Template};
    use std::collections::BTreeMap;

    #[test]
    fn each_reserved_word_has_a_meaning() {
        for word in RESERVED {
            assert!(WORDS.iter().any(|(known, _)| known == word), "{word}");
        }
    }

    #[test]
    fn templates_have_each_filter_and_test() {
        let render = |text: &str| {
            let template = Template::parse("t", text, None).expect("a template");
            match template.render(&BTreeMap::new(), &BTreeMap::new(), &Scope::new()) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            }
        };
        assert!(render("{{ 1 | nothing_such }}").contains("unknown filter"));
        for (name, _) in TEMPLATE_FILTERS {
            assert!(!render(&format!("{{{{ 1 | {name} }}}}")).contains("unknown filter"), "{name}");
        }
        for (name, _) in TEMPLATE_TESTS {
            assert!(!render(&format!("{{{{ 1 is {name} }}}}")).contains("unknown test"), "{name}");
        }
    }
}
