//! Suggestions: the known word that is most similar to an unknown one.
//!
//! The comparisons of thousands of long words take minutes, so each search has a limit, and a [`Limit`] holds for all
//! searches of a thread together. A search above a limit suggests nothing.

use std::cell::Cell;
use std::marker::PhantomData;

/// The work of one search without a [`Limit`]: compared characters, and some for each word.
const MOST_ALONE: usize = 50_000_000;

/// The work for a word of `known` besides its characters.
const WORK_OF_WORD: usize = 2;

thread_local! {
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// A limit for the searches of this thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct Limit {
    before: Option<usize>,
    /// The limit belongs to the thread of its start.
    _thread: PhantomData<*const ()>,
}

impl Limit {
    /// Starts a limit of all searches together.
    pub(crate) fn start() -> Self {
        Self::of(MOST_ALONE)
    }

    /// Starts a limit of this work for all searches together.
    pub(crate) fn of(work: usize) -> Self {
        Self { before: LEFT.replace(Some(work)), _thread: PhantomData }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        LEFT.set(self.before);
    }
}

/// The work that a search may still do.
struct Work(usize);

impl Work {
    fn left() -> Self {
        Self(LEFT.get().unwrap_or(MOST_ALONE))
    }

    /// Counts work; returns false if too little is left.
    fn has(&mut self, units: usize) -> bool {
        let left = self.0.checked_sub(units);
        self.0 = left.unwrap_or_default();
        left.is_some()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if LEFT.get().is_some() {
            LEFT.set(Some(self.0));
        }
    }
}

/// Returns the word of `known` that is most similar to `word`, if it is similar enough for a misspelling.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut budget = Work::left();
    if !budget.has(WORK_OF_WORD) {
        return None;
    }
    let word: String = word.chars().take(200).flat_map(char::to_lowercase).collect();
    let length = word.chars().count();
    let most = (length / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let limit = best.map_or(most + 1, |(distance, _)| distance);
        if !budget.has(WORK_OF_WORD) {
            return None;
        }
        if let Some(distance) = distance((&word, length), candidate, limit, &mut budget) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The number of known words that a message lists at once: a resource without fields of its own has this many keys.
const LISTED: usize = 11;

/// The number of similar words of a longer list.
const FEW: usize = 3;

/// The least Jaro-Winkler similarity (0 to 1) of words that a hint calls similar.
const SIMILAR: f64 = 0.65;

/// Returns the hint for an unknown word: the word that may be meant, all known words if they are few, or a pointer to
/// the list, after the similar words if there are any.
pub(crate) fn hint_for_unknown(word: &str, known: &[&str], topic: Option<&str>) -> String {
    if let Some(near) = nearest(word, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let Some(topic) = topic.filter(|_| known.len() > LISTED) else {
        return format!("valid keys: {}", known.join(", "));
    };
    let few = similar(word, known).join("`, `");
    if few.is_empty() {
        return format!("`steadfast explain {topic}` lists the valid keys");
    }
    format!("similar keys: `{few}`; `steadfast explain {topic}` lists all")
}

/// Returns the hint for an unknown word: the word that may be meant, else the similar ones of these things and the
/// command that lists all.
pub(crate) fn hint_with_pointer(
    word: &str,
    known: &[&str],
    (things, command): (&str, &str),
) -> String {
    if let Some(near) = nearest(word, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let few = similar(word, known).join("`, `");
    if few.is_empty() {
        return format!("`{command}` lists all {things}");
    }
    format!("similar {things}: `{few}`; `{command}` lists all")
}

/// Returns the most similar words, the best first.
pub(crate) fn most_similar<'a>(word: &str, known: &[&'a str]) -> Vec<&'a str> {
    by_similarity(word, known).into_iter().take(FEW).map(|(_, known)| known).collect()
}

/// Returns the words that resemble `word`, the best first. A word of one character resembles nothing.
fn similar<'a>(word: &str, known: &[&'a str]) -> Vec<&'a str> {
    if word.chars().nth(1).is_none() {
        return Vec::new();
    }
    let mut all = by_similarity(word, known);
    all.retain(|(similarity, _)| *similarity >= SIMILAR);
    all.into_iter().take(FEW).map(|(_, known)| known).collect()
}

/// Returns the known words with their similarity (0 to 1) to `word`, the best first.
fn by_similarity<'a>(word: &str, known: &[&'a str]) -> Vec<(f64, &'a str)> {
    let word: String = word.chars().take(200).flat_map(char::to_lowercase).collect();
    let mut budget = Work::left();
    let is_short = |known: &&&str| known.len() <= 200;
    let within = |known: &&&str| budget.has(word.len().saturating_mul(known.len()));
    let compared = known.iter().filter(is_short).take_while(within);
    let mut all: Vec<(f64, &str)> =
        compared.map(|known| (strsim::jaro_winkler(&word, known), *known)).collect();
    // The order of the table decides between equally similar words.
    all.sort_by(|one, other| other.0.total_cmp(&one.0));
    all
}

/// Returns an unknown name with the suggestion of a similar one.
pub(crate) fn with_nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, known) {
        Some(near) => format!("{word} (did you mean {near}?)"),
        None => word.to_owned(),
    }
}

/// Returns the number of insertions, deletions, replacements and swaps of neighbours between two words, the first of
/// which has `length` characters; `None` from `limit` on.
fn distance(
    (word, length): (&str, usize),
    candidate: &str,
    limit: usize,
    budget: &mut Work,
) -> Option<usize> {
    // A character has at most four bytes, so that the length alone excludes most candidates.
    if candidate.len() >= (length + limit) * 4 || candidate.len() + limit <= length {
        return None;
    }
    let other: String = candidate.chars().flat_map(char::to_lowercase).collect();
    if other.chars().count().abs_diff(length) >= limit {
        return None;
    }
    // Equal beginnings do not change the distance, and identities often have long ones.
    let equal = word.char_indices().zip(other.char_indices()).find(|(a, b)| a != b);
    let from = equal.map_or_else(|| word.len().min(other.len()), |((at, _), _)| at);
    let rest = (word.get(from..)?, other.get(from..)?);
    if !budget.has(length.saturating_add(rest.0.len().saturating_mul(rest.1.len()))) {
        return None;
    }
    Some(strsim::osa_distance(rest.0, rest.1)).filter(|distance| *distance < limit)
}

#[cfg(test)]
mod tests {
    use super::{Limit, hint_for_unknown, nearest};

    #[test]
    fn long_lists_become_similar_words_and_a_pointer() {
        let few = ["name", "meta", "after"];
        assert_eq!(hint_for_unknown("xyz", &few, Some("noop")), "valid keys: name, meta, after");
        let many = [
            "cmd", "args", "shell", "cwd", "env", "user", "group", "timeout", "creates", "ifcmd",
            "nifcmd", "stdin",
        ];
        let hint = hint_for_unknown("command", &many, Some("exec"));
        assert_eq!(hint, "similar keys: `ifcmd`, `cmd`; `steadfast explain exec` lists all");
        let alike = ["abcd1111", "abcd2222", "abcd3333", "abcd4444"];
        let hint = hint_for_unknown("abcdefgh", &[&alike[..], &many].concat(), Some("exec"));
        assert!(hint.starts_with("similar keys: `abcd1111`, `abcd2222`, `abcd3333`; "), "{hint}");
        assert_eq!(hint_for_unknown("shel", &many, Some("exec")), "did you mean `shell`?");
    }

    #[test]
    fn a_word_that_resembles_nothing_gets_no_similar_words() {
        let many = [
            "name", "meta", "export", "size", "after", "state", "path", "mode", "owner", "group",
            "source", "content",
        ];
        for word in ["x", "k000", "zzz", "", "é"] {
            let hint = hint_for_unknown(word, &many, Some("file"));
            assert_eq!(hint, "`steadfast explain file` lists the valid keys", "{word}");
            let hint = hint_for_unknown(word, &many[..11], Some("file"));
            assert!(hint.starts_with("valid keys: name, meta, export, "), "{word}: {hint}");
        }
    }

    #[test]
    fn searches_among_many_long_words_end_soon() {
        let known: Vec<String> = (0..1000).map(|n| format!("{n:0>4}{}", "x".repeat(100))).collect();
        let known = || known.iter().map(String::as_str);
        let slip = format!("0007{}y", "x".repeat(99));
        {
            let _limit = Limit::start();
            assert_eq!(nearest(&slip, known()), Some(&*format!("0007{}", "x".repeat(100))));
            assert!((0..100).any(|_| nearest(&format!("y{slip}"), known()).is_none()), "no limit");
            assert_eq!(nearest(&slip, known()), None);
        }
        assert!(nearest(&slip, known()).is_some(), "another load has a limit of its own");
    }

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let known = ["content", "path", "state", "owner"];
        for (word, meant) in [
            ("contents", Some("content")),
            ("Content", Some("content")),
            ("paht", Some("path")),
            ("stat", Some("state")),
            ("ownre", Some("owner")),
            ("xyz", None),
            ("", None),
            ("groups", None),
            ("cnoetnt", Some("content")),
            ("cxxxent", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
