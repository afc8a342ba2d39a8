//! The words of the graph language without a page of their own: keys, from the JSON Schema; functions, operators,
//! types, filters and tests, from the tables of the expressions; and the fields of the kinds.

use crate::config::json_schema;
use crate::expressions::{TEMPLATE_FILTERS, TEMPLATE_TESTS, WORDS, all_functions};
use serde_json::Value;
use steadfast_resources::KindSet;

/// The types of parameters and of items, each with its meaning.
const TYPES: [(&str, &str); 8] = [
    ("string", "a text"),
    ("int", "a number without a fraction, of 64 bits"),
    ("float", "a number with a fraction"),
    ("bool", "true or false"),
    ("list", "a list; `list of TYPE` names the type of its items"),
    ("map", "a map with any keys"),
    ("secret", "a secret, given as {secret: NAME}; no expression sees it"),
    ("unknown", "a value whose type is not known"),
];

/// The roots of names in expressions, each with its meaning and its page.
const ROOTS: [(&str, &str, &str); 2] = [
    ("item", "The item of a loop.", "for_each"),
    ("probe", "The values of probes: `probe.NAME`.", "expressions"),
];

/// The definitions of the schema with keys of the language, each with its name for people and its page.
const PLACES: [(&str, &str, &str); 5] = [
    ("declaration", "a parameter, or an item of a loop", "params"),
    ("for_each", "a loop", "for_each"),
    ("module_use", "a use of a module", "modules"),
    ("value", "a received value", "recv"),
    ("export", "an export to other hosts", "collect"),
];

/// A meaning of a word: the place in which it is used, the text, and the page that says more.
struct Meaning {
    place: String,
    text: String,
    page: Option<&'static str>,
}

/// Returns the lines that explain a word; `None` for an unknown one.
pub(super) fn explain_word(word: &str) -> Option<Vec<String>> {
    let mut meanings = meanings_of_key(word);
    meanings.extend(meanings_in_expressions(word));
    let fields = kinds_with_field(word);
    if meanings.is_empty() && fields.is_empty() {
        return None;
    }
    let mut lines: Vec<String> =
        meanings.iter().map(|it| format!("{word} ({}): {}", it.place, it.text)).collect();
    if !fields.is_empty() {
        lines.push(format!("{word} is a field of: {}", fields.join(", ")));
    }
    let mut pages: Vec<&str> = meanings.iter().filter_map(|it| it.page).collect();
    pages.sort_unstable();
    pages.dedup();
    if !pages.is_empty() {
        lines.push(format!("More: steadfast explain {}", pages.join(", ")));
    }
    Some(lines)
}

/// Returns the lines that explain a key of a place: `use` of `modules`; `None` for an unknown one.
pub(super) fn explain_key_of(place: &str, key: &str) -> Option<Vec<String>> {
    let schema = json_schema(&KindSet::of_this_build());
    let (definition, _, page) = PLACES.iter().find(|(_, _, page)| *page == place)?;
    let about = schema["definitions"][*definition]["properties"][key]["description"].as_str()?;
    Some(vec![format!("{place}.{key}: {about}"), format!("More: steadfast explain {page}")])
}

/// Returns the names of the words of expressions, for completions.
pub(super) fn word_names() -> impl Iterator<Item = &'static str> {
    all_functions().iter().map(|function| function.name)
}

/// Returns the meanings of a key in the places of a graph.
fn meanings_of_key(word: &str) -> Vec<Meaning> {
    let schema = json_schema(&KindSet::of_this_build());
    let mut found = Vec::new();
    let mut note = |schema: &Value, (place, page): (&str, Option<&'static str>)| {
        let about = schema["description"].as_str().filter(|text| !text.is_empty());
        if let Some(text) = about {
            found.push(Meaning { place: place.to_owned(), text: text.to_owned(), page });
        }
    };
    note(&schema["properties"][word], ("a graph or module", None));
    for (definition, place, page) in PLACES {
        note(&schema["definitions"][definition]["properties"][word], (place, Some(page)));
    }
    // The keys that all kinds have.
    let file = &schema["definitions"]["kind_file"]["properties"];
    let is_field = KindSet::of_this_build()
        .find("file")
        .is_some_and(|spec| spec.fields.iter().any(|field| field.name == word));
    if !is_field {
        note(&file[word], ("a resource", None));
    }
    for (key, page) in [
        ("vars_files", Some("vars_files")),
        ("include", Some("include")),
        ("assert", Some("assert")),
        ("edges", Some("edges")),
        ("secrets", Some("secrets")),
        ("collect", Some("collect")),
    ] {
        let of_key = &schema["properties"][key];
        for entry in ["items", "additionalProperties"] {
            let found = &of_key[entry]["properties"][word];
            note(found, (&format!("an entry of {key}"), page));
        }
    }
    found
}

/// Returns the meanings of a word within expressions and templates.
fn meanings_in_expressions(word: &str) -> Vec<Meaning> {
    let mut found = Vec::new();
    let mut add = |place: &str, text: String, page: &'static str| {
        found.push(Meaning { place: place.to_owned(), text, page: Some(page) });
    };
    for function in all_functions().iter().filter(|function| function.name == word) {
        add("a function", format!("{}: {}", function.usage, function.about), "expressions");
    }
    for (_, text) in WORDS.iter().filter(|(name, _)| *name == word) {
        add("a word of expressions", (*text).to_owned(), "expressions");
    }
    for (_, text) in TEMPLATE_FILTERS.iter().filter(|(name, _)| *name == word) {
        add("a filter of templates", (*text).to_owned(), "template");
    }
    for (_, text) in TEMPLATE_TESTS.iter().filter(|(name, _)| *name == word) {
        add("a test of templates", (*text).to_owned(), "template");
    }
    for (_, text) in TYPES.iter().filter(|(name, _)| *name == word) {
        add("a type", (*text).to_owned(), "params");
    }
    for (_, text, page) in ROOTS.iter().filter(|(name, _, _)| *name == word) {
        add("a name in expressions", (*text).to_owned(), page);
    }
    found
}

/// Returns `KIND.FIELD` for each kind that has a field of this name.
fn kinds_with_field(word: &str) -> Vec<String> {
    let kinds = KindSet::of_this_build();
    let has =
        |spec: &&steadfast_resources::KindSpec| spec.fields.iter().any(|field| field.name == word);
    kinds.specs().filter(has).map(|spec| format!("{}.{word}", spec.kind)).collect()
}
