//! The words of the code: no identifier of the old dialect, and comments that can be read alone.

use crate::sources::{assert_none, files, identifiers};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The largest share of doc comments that may open with a question word, in percent.
const OPENERS_AT_MOST: f64 = 1.0;

/// The longest line of a comment, in characters.
const COMMENT_AT_MOST: usize = 120;

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Each identifier of `words.txt`, with its replacement.
fn removed_words() -> Vec<(String, String)> {
    let list = std::fs::read_to_string(top().join("tests/tidy/words.txt")).expect("words.txt");
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let pairs = lines.map(|line| line.split_once('\t').expect("a word, a tab, its replacement"));
    pairs.map(|(word, instead)| (word.to_owned(), instead.to_owned())).collect()
}

#[test]
fn removed_identifiers_do_not_come_back() {
    let removed = removed_words();
    assert!(removed.len() > 40, "words.txt has {} words", removed.len());
    let mut wrong = Vec::new();
    for source in files(&["daemon", "resources", "tests", "benches"], ".rs") {
        let used: BTreeSet<&str> = identifiers(&source.text).collect();
        for (word, instead) in removed.iter().filter(|(word, _)| used.contains(word.as_str())) {
            wrong.push(format!("{}: `{word}` is now `{instead}`", source.path));
        }
    }
    assert_none("expected the words of docs/glossary.md:", &wrong);
}

/// Each name of a log line stands in the page of the events.
#[test]
fn names_of_the_log_are_documented() {
    let page = std::fs::read_to_string(top().join("docs/reference/events.md")).expect("the page");
    let mut wrong = Vec::new();
    for source in files(&["daemon", "resources"], ".rs") {
        let code = source.code();
        for rest in code.split("event = \"").skip(1) {
            let name = rest.split('"').next().unwrap_or_default();
            if !page.contains(&format!("`{name}`")) {
                wrong.push(format!("{}: {name}", source.path));
            }
        }
    }
    assert_none("expected in docs/reference/generate, for docs/reference/events.md:", &wrong);
}

#[test]
fn few_doc_comments_open_with_a_question_word() {
    let counted = Command::new(top().join("tests/tidy/doc-openers")).output().expect("counted");
    let text = String::from_utf8_lossy(&counted.stdout).into_owned();
    let share = text.trim().rsplit(' ').nth(1).and_then(|share| share.parse::<f64>().ok());
    let share = share.unwrap_or_else(|| panic!("expected a share, found: {text}"));
    assert!(share < OPENERS_AT_MOST, "{text} (tests/tidy/doc-openers --list names them)");
}

#[test]
fn lines_of_comments_are_short() {
    let mut wrong = Vec::new();
    for source in files(&["daemon", "resources", "tests", "benches"], ".rs") {
        for (number, line) in source.text.lines().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            if is_comment && line.chars().count() > COMMENT_AT_MOST {
                wrong.push(format!("{}:{}", source.path, number + 1));
            }
        }
    }
    assert_none(&format!("expected at most {COMMENT_AT_MOST} characters:"), &wrong);
}

/// The words with which a name of a test may not begin: such a name is no sentence.
const QUESTION_WORDS: [&str; 10] =
    ["who", "what", "whose", "whom", "which", "where", "whether", "how", "why", "when"];

/// Returns the name of a test without the number of its rule, such as `c11_`.
fn sentence(name: &str) -> &str {
    let is_rule = |rule: &str| {
        let (letter, number) = rule.split_at_checked(1).unwrap_or_default();
        letter.chars().all(|letter| letter.is_ascii_lowercase())
            && !number.is_empty()
            && number.chars().all(|digit| digit.is_ascii_digit())
    };
    name.split_once('_').filter(|(rule, _)| is_rule(rule)).map_or(name, |(_, rest)| rest)
}

#[test]
fn names_of_tests_are_sentences() {
    let mut wrong = Vec::new();
    for source in files(&["daemon", "resources", "tests", "benches"], ".rs") {
        let mut is_test = false;
        for line in source.text.lines().map(str::trim_start) {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            let Some(rest) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn "))
            else {
                continue;
            };
            let name = rest.split('(').next().unwrap_or_default();
            let first = sentence(name).split('_').next().unwrap_or_default();
            if std::mem::take(&mut is_test) && QUESTION_WORDS.contains(&first) {
                wrong.push(format!("{}: {name}", source.path));
            }
        }
    }
    assert_none("expected names with a subject and a verb:", &wrong);
}

#[test]
fn rule_numbers_are_no_part_of_a_sentence() {
    assert_eq!(sentence("c11_what_was_told"), "what_was_told");
    assert_eq!(sentence("a_test_ends"), "a_test_ends");
    assert_eq!(sentence("b2_"), "");
}
