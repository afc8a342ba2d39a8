//! Suggestions: the known word that is most similar to an unknown one.

/// Returns the word of `known` that is most similar to `word`, if it is similar enough for a misspelling.
pub(in crate::config) fn nearest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word: String = word.chars().take(200).flat_map(char::to_lowercase).collect();
    let length = word.chars().count();
    let most = (length / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let limit = best.map_or(most + 1, |(distance, _)| distance);
        if let Some(distance) = distance((&word, length), candidate, limit) {
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

/// Returns the number of insertions, deletions, replacements and swaps of neighbours between two words, the first of
/// which has `length` characters; `None` from `limit` on.
fn distance((word, length): (&str, usize), candidate: &str, limit: usize) -> Option<usize> {
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
    Some(strsim::osa_distance(rest.0, rest.1)).filter(|distance| *distance < limit)
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
            ("cnoetnt", Some("content")),
            ("cxxxent", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
