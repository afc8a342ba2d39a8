//! Patterns of text: `*` stands for any characters, also none and also `/`; `?` stands for one character.

/// Returns true if a text matches a pattern as a whole. The time is at most the product of the lengths.
pub(crate) fn matches_glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    // Each character that is no star stands for one.
    if pattern.iter().filter(|letter| **letter != '*').count() > text.len() {
        return false;
    }
    let (mut at, mut seen) = (0, 0);
    // The last star, and the end of the text that it stands for.
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(one) if *one == '?' || *one == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((from, end)) = star else { return false };
                star = Some((from, end + 1));
                (at, seen) = (from + 1, end + 1);
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::matches_glob;

    #[test]
    fn stars_and_question_marks_stand_for_text() {
        for (pattern, text, is_match) in [
            ("", "", true),
            ("*", "", true),
            ("*", "a/b", true),
            ("a*c", "abbc", true),
            ("a*c", "abb", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*a*", "aa", true),
            ("*a*a*", "a", false),
            ("é?", "éa", true),
            ("a", "ab", false),
        ] {
            assert_eq!(matches_glob(pattern, text), is_match, "{pattern} {text}");
        }
        assert!(!matches_glob(&"*a".repeat(200), &"a".repeat(100)), "ends soon");
    }
}
