//! The sources of the repository, as the tidy tests read them.
#![expect(clippy::string_slice, reason = "each index is one at which something was found")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A file of the repository.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path from the top of the repository, with slashes.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
}

/// Returns all files with this ending below these folders; an empty folder name is the whole repository.
pub(crate) fn files(folders: &[&str], ending: &str) -> Vec<Source> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for folder in folders {
        collect(top, &top.join(folder), ending, &mut found);
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn collect(top: &Path, folder: &Path, ending: &str, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().into_string().expect("names in the repository are UTF-8");
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            collect(top, &path, ending, found);
        } else if name.ends_with(ending) {
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            let path = path.strip_prefix(top).expect("below the top").to_str().expect("UTF-8");
            found.push(Source { path: path.to_owned(), text });
        }
    }
}

impl Source {
    /// Returns the shipped code: without comments and without the unit tests at the end.
    pub(crate) fn code(&self) -> String {
        let shipped = self.text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        shipped.lines().map(without_comment).collect::<Vec<_>>().join("\n")
    }

    /// Returns the unit tests at the end of the file.
    pub(crate) fn unit_tests(&self) -> &str {
        self.text.split_once("#[cfg(test)]\nmod ").map_or("", |(_, tests)| tests)
    }

    /// Returns true if the file lies in this module's folder or is its single file.
    pub(crate) fn is_in(&self, room: &str) -> bool {
        self.path.strip_prefix(room).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
    }
}

fn without_comment(line: &str) -> &str {
    // A `//` after a colon is part of an address in a text.
    let comment = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':'));
    comment.map_or(line, |(at, _)| &line[..at])
}

/// Returns the names that follow `path::` in the code, also within braces: `crate::{a, b::c}` names `a` and `b`.
pub(crate) fn named_after(code: &str, path: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(path) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|letter| is_word(letter) || letter == ':') {
            continue;
        }
        let rest = &code[at + path.len()..];
        match rest.strip_prefix('{') {
            Some(list) => names.extend(top_level_names(list)),
            None => names.extend(leading_word(rest)),
        }
    }
    names
}

fn top_level_names(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                names.extend(leading_word(list[start..at].trim_start()));
                start = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    names
}

fn leading_word(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|letter| is_word(*letter)).collect();
    (!word.is_empty()).then_some(word)
}

/// Returns true if the text contains this word as a whole word.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns the identifiers and keywords of a source, without those of comments and of texts.
pub(crate) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start =
                rest.find(|letter| is_word(letter) || matches!(letter, '/' | '"' | '\''))?;
            rest = &rest[start..];
            let length = match rest.as_bytes()[0] {
                b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                b'/' => 1,
                b'"' => text_length(rest),
                b'\'' => character_length(rest),
                _ => {
                    let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
                    let (word, after) = rest.split_at(end);
                    let hashes = after.len() - after.trim_start_matches('#').len();
                    rest = after;
                    if matches!(word, "r" | "br") && after[hashes..].starts_with('"') {
                        rest = &after[hashes + raw_text_length(&after[hashes..], hashes)..];
                        continue;
                    }
                    return Some(word);
                }
            };
            rest = &rest[length..];
        }
    })
}

/// Returns the length of a text in quotes with escapes, at the start of these letters.
fn text_length(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a raw text with this many hashes, from its opening quote.
fn raw_text_length(text: &str, hashes: usize) -> usize {
    let end = format!("\"{}", "#".repeat(hashes));
    text[1..].find(&end).map_or(text.len(), |at| 1 + at + end.len())
}

/// Returns the length of a character in quotes; 1 for the quote of a lifetime.
fn character_length(text: &str) -> usize {
    let inner = &text[1..];
    let end = if inner.starts_with('\\') {
        inner.char_indices().skip(2).find(|(_, letter)| *letter == '\'').map(|(at, _)| at)
    } else {
        let end = inner.chars().next().map_or(0, char::len_utf8);
        inner[end..].starts_with('\'').then_some(end)
    };
    end.map_or(1, |end| end + 2)
}

/// Fails with the list of all violations.
#[track_caller]
pub(crate) fn assert_none(rule: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{rule}\n  {}", wrong.join("\n  "));
}

#[test]
fn names_are_found_in_lists_and_paths() {
    let code = "use crate::{store::{A, b}, events, self};\nlet a = crate::config::X; my_crate::no";
    let names: Vec<_> = named_after(code, "crate::").into_iter().collect();
    assert_eq!(names, ["config", "events", "self", "store"]);
}

#[test]
fn words_end_where_they_end() {
    assert!(has_word("/// E-1: order", "E-1"));
    assert!(has_word("E-2, E-1", "E-1"));
    assert!(!has_word("E-12", "E-1"));
    assert!(!has_word("RE-1", "E-1"));
}

#[test]
fn comments_and_unit_tests_do_not_ship() {
    let text = "a(); // b\nlet c = \"http://d\";\n#[cfg(test)]\nmod tests { e }".to_owned();
    let source = Source { path: "x.rs".to_owned(), text };
    assert_eq!(source.code(), "a(); \nlet c = \"http://d\";");
    assert_eq!(source.unit_tests(), "tests { e }");
}

#[test]
fn texts_and_comments_have_no_identifiers() {
    let code = "use a::{B as Kept}; // c\nKept(\"d \\\" e\", 'f', '\\'', '\\u{1F600}', &'g str), r#\"h \" i\"#);";
    let names: Vec<_> = identifiers(code).collect();
    assert_eq!(names, ["use", "a", "B", "as", "Kept", "Kept", "g", "str"]);
}
