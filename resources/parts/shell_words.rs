//! Words of a shell, for hints and for display.

/// Returns a text as one word of a shell, with quotes only if it needs them.
pub(crate) fn shell_word(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { single_quoted(text) }
}

/// Returns a text as one word of a shell in single quotes.
pub(crate) fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns true if a shell would read the word unchanged.
pub(crate) fn is_plain(word: &str) -> bool {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "_@%+=:,./-".contains(character);
    !word.is_empty() && word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::{shell_word, single_quoted};

    #[test]
    fn words_of_a_shell_are_quoted() {
        assert_eq!(single_quoted("it's"), r"'it'\''s'");
        for (text, word) in [("eve", "eve"), ("a=b,c", "a=b,c"), ("", "''"), ("a;b", "'a;b'")] {
            assert_eq!(shell_word(text), word);
        }
    }
}
