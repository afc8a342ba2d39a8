//! Each numbered promise of an issue is named by a test or by a page in docs/.

use crate::sources::{assert_none, files, has_word};
use std::ops::RangeInclusive;

/// The promises of finished issues: issue, letter, numbers.
const PROMISED: &[(u32, &str, &[RangeInclusive<u32>])] = &[
    (2, "E", &[1..=18]),
    (2, "R", &[1..=18]),
    (2, "W", &[1..=15]),
    (2, "S", &[1..=2, 4..=5, 8..=10, 15..=15, 17..=18]),
    (2, "F", &[13..=13, 15..=15]),
    (3, "S", &[1..=6, 19..=19]),
    (3, "F", &[1..=3, 5..=7, 9..=9, 11..=12, 14..=14, 17..=18]),
    (4, "E", &[19..=20]),
    (4, "F", &[10..=10, 22..=22]),
    (5, "A", &[1..=55]),
    (5, "P", &[1..=9]),
    (5, "S", &[11..=13]),
    (5, "F", &[10..=11, 19..=20]),
    (6, "C", &[1..=22]),
    (6, "B", &[1..=26]),
    (6, "S", &[7..=7]),
    (6, "F", &[1..=4, 8..=8, 16..=16, 21..=21]),
    (16, "S", &[3..=3, 8..=9, 14..=15, 18..=18]),
    (16, "F", &[22..=22]),
];

#[test]
fn every_promise_is_named_by_a_test_or_a_page() {
    let texts = tests_and_pages();
    let mut missing = Vec::new();
    for (issue, letter, numbers) in PROMISED {
        for number in numbers.iter().cloned().flatten() {
            if !texts.iter().any(|text| names(text, letter, number)) {
                missing.push(format!("{letter}-{number} (issue {issue})"));
            }
        }
    }
    assert_none("expected a test or a page in docs/ that names each of:", &missing);
}

/// Returns the text of all tests except these, and of all pages except those that name every promise.
fn tests_and_pages() -> Vec<String> {
    let tests = files(&["tests", "daemon/engine/tests", "resources/tests"], ".rs");
    let tests = tests.into_iter().filter(|source| !source.is_in("tests/tidy"));
    let shipped = files(&["daemon", "resources"], ".rs");
    let unit_tests = shipped.iter().map(|source| source.unit_tests().to_owned());
    let shape = files(&["tests/tidy"], "shape.rs");
    // The page of the gaps names missing promises, and the page of the rules names all of them.
    let silent = ["docs/gaps.md", "docs/development/rules.md"];
    let pages = files(&["docs"], ".md");
    let pages = pages.into_iter().filter(|page| !silent.contains(&page.path.as_str()));
    tests.chain(shape).chain(pages).map(|source| source.text).chain(unit_tests).collect()
}

/// Returns true if the text names a promise: `E-1` as a word, or `fn e1_…` or `fn e_1_…` as the beginning of a test's
/// name.
fn names(text: &str, letter: &str, number: u32) -> bool {
    let small = letter.to_lowercase();
    has_word(text, &format!("{letter}-{number}"))
        || text.contains(&format!("fn {small}{number}_"))
        || text.contains(&format!("fn {small}_{number}_"))
}

#[test]
fn a_promise_is_named_by_its_whole_number() {
    assert!(names("/// E-1: order", "E", 1));
    assert!(names("fn e_1_order() {}", "E", 1));
    assert!(!names("/// E-11: noop", "E", 1));
    assert!(!names("fn e_11_noop() {}", "E", 1));
    assert!(!names("E-12 to E-18", "E", 13));
}
