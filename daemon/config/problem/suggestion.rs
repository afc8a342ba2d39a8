//! Suggestions: the known word that is most similar to an unknown one.

/// Returns the word of `known` that is most similar to `word`, if it is similar enough for a misspelling.
pub(in crate::config) fn nearest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(200).flat_map(char::to_lowercase).collect();
    let most = (word.len() / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let limit = best.map_or(most + 1, |(distance, _)| distance);
        if let Some(distance) = distance(&word, candidate, limit) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns an unknown name with the suggestion of a similar one.
pub(crate) fn with_nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, known) {
        Some(near) => format!("{word} (did you mean {near}?)"),
        None => word.to_owned(),
    }
}

/// Returns the number of insertions, deletions, replacements and swaps of neighbours between two words; `None` from
/// `limit` on.
fn distance(word: &[char], candidate: &str, limit: usize) -> Option<usize> {
    // A character has at most four bytes, so that the length alone excludes most candidates.
    if candidate.len() >= (word.len() + limit) * 4 || candidate.len() + limit <= word.len() {
        return None;
    }
    let other: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
    if other.len().abs_diff(word.len()) >= limit {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in word.iter().enumerate() {
        let mut here = vec![row + 1];
        for (column, b) in other.iter().enumerate() {
            let mut cost = (above[column] + usize::from(a != b))
                .min(above[column + 1] + 1)
                .min(here[column] + 1);
            let swapped = row > 0
                && column > 0
                && Some(b) == word.get(row - 1)
                && other.get(column - 1) == Some(a);
            if swapped {
                cost = cost.min(before[column - 1] + 1);
            }
            here.push(cost);
        }
        if here.iter().all(|cost| *cost >= limit) {
            return None;
        }
        before = std::mem::replace(&mut above, here);
    }
    above.last().copied().filter(|cost| *cost < limit)
}

#[cfg(test)]
mod tests {
    use super::nearest;

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
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
