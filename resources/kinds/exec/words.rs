//! Argument vectors: how text becomes one, and how one is shown.

use crate::printable::short;

/// The vector of a text: a shell reads it where one is asked for, else it is cut at white space and nothing reads it.
pub(super) fn vector(text: &str, shell: Option<&str>) -> Vec<String> {
    match shell {
        Some(shell) => vec![shell.to_owned(), "-c".to_owned(), text.to_owned()],
        None => text.split_whitespace().map(str::to_owned).collect(),
    }
}

/// A vector for a person: what is not plain is quoted and escaped; bounded.
pub(super) fn shown(argv: &[String], characters: usize) -> String {
    let words: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
    short(&words.join(" "), characters)
}

fn quoted(word: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "_@%+=:,./-".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{shown, vector};

    #[test]
    fn a_vector_is_shown_on_one_line() {
        let argv: Vec<String> = ["/bin/sh", "-c", "a\nb 'c'", ""].map(str::to_owned).into();
        assert_eq!(shown(&argv, 100), r"/bin/sh -c 'a\nb '\''c'\''' ''");
        assert_eq!(shown(&argv, 12), "/bin/sh -c …");
    }

    /// S-18: the text of a command stays as it was written.
    #[test]
    fn nothing_is_put_into_a_text() {
        assert_eq!(vector(" a  $HOME '{{ x }}'\t", None), ["a", "$HOME", "'{{", "x", "}}'"]);
        assert_eq!(vector("a ${b}; c", Some("sh")), ["sh", "-c", "a ${b}; c"]);
    }
}
