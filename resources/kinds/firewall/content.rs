//! The tables that a content of nftables names, and the statements that it may contain.

use crate::fields::field_values::Invalid;
use crate::secrets::escape::short;
use std::fmt;

/// The families of tables.
const FAMILIES: [&str; 6] = ["ip", "ip6", "inet", "arp", "bridge", "netdev"];

/// A table of nftables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Table {
    pub(super) family: String,
    pub(super) name: String,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family, self.name)
    }
}

/// Returns the tables that the content defines, sorted.
///
/// # Errors
///
/// Fails for a statement that could change another table.
pub(super) fn tables_of(content: &str, whole: bool) -> Result<Vec<Table>, Invalid> {
    let mut tables = Vec::new();
    for words in statements(content)? {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["define" | "redefine" | "undefine", ..] => {}
            ["flush", "ruleset"] if whole => {}
            ["flush", "ruleset", ..] => {
                let what = "`flush ruleset` deletes the tables of other programs";
                let hint = "omit it: the content's own tables are replaced; or set `whole: true`";
                return Err(Invalid::field("content", what).hint(hint));
            }
            ["table", rest @ ..] | ["add" | "create", _, rest @ ..] => tables.push(table(rest)?),
            _ => {
                let shown = short(&words.join(" "), 40);
                let what = format!("expected table, define or add, found `{shown}`");
                let hint = "the content says what its tables contain: they are replaced as a whole";
                return Err(Invalid::field("content", what).hint(hint));
            }
        }
    }
    tables.sort();
    tables.dedup();
    Ok(tables)
}

fn table(words: &[&str]) -> Result<Table, Invalid> {
    let (family, rest) = match words {
        [family, rest @ ..] if FAMILIES.contains(family) => (*family, rest),
        rest => ("ip", rest),
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./\\".contains(&byte);
    match rest {
        [name, ..] if !name.is_empty() && name.bytes().all(allowed) => {
            Ok(Table { family: family.to_owned(), name: (*name).to_owned() })
        }
        _ => {
            let what =
                format!("expected the name of a table, found `{}`", short(&words.join(" "), 40));
            Err(Invalid::field("content", what).hint("for example table inet filter { … }"))
        }
    }
}

/// Returns the words of each statement at the top; a block counts as its opening words.
fn statements(content: &str) -> Result<Vec<Vec<String>>, Invalid> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let (mut depth, mut has_block) = (0_usize, false);
    let mut letters = content.chars().peekable();
    let end_word = |word: &mut String, words: &mut Vec<String>| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            '#' => {
                while letters.peek().is_some_and(|next| *next != '\n') {
                    letters.next();
                }
            }
            '"' => {
                let text: String = letters.by_ref().take_while(|next| *next != '"').collect();
                if depth == 0 && !has_block {
                    word.push_str(&text);
                }
            }
            '\\' if letters.peek() == Some(&'\n') => {
                letters.next();
            }
            '{' => {
                end_word(&mut word, &mut words);
                (depth, has_block) = (depth + 1, true);
            }
            '}' => {
                let what = "a closing brace has no opening one";
                depth = depth.checked_sub(1).ok_or_else(|| Invalid::field("content", what))?;
                // A statement may follow a block without a separator.
                if depth == 0 && words.first().is_some_and(|first: &String| first == "table") {
                    (all, has_block) = (pushed(all, &mut words), false);
                }
            }
            '\n' | ';' if depth == 0 => {
                end_word(&mut word, &mut words);
                (all, has_block) = (pushed(all, &mut words), false);
            }
            _ if depth > 0 || has_block => {}
            letter if letter.is_whitespace() => end_word(&mut word, &mut words),
            letter => word.push(letter),
        }
    }
    end_word(&mut word, &mut words);
    if depth > 0 {
        return Err(Invalid::field("content", "an opening brace has no closing one"));
    }
    Ok(pushed(all, &mut words))
}

fn pushed(mut all: Vec<Vec<String>>, words: &mut Vec<String>) -> Vec<Vec<String>> {
    if !words.is_empty() {
        all.push(std::mem::take(words));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::tables_of;

    fn tables(content: &str) -> Result<Vec<String>, String> {
        let tables = tables_of(content, false).map_err(|problem| problem.what)?;
        Ok(tables.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn tables_are_found_in_every_notation() {
        let content = "#!/usr/sbin/nft -f\ndefine ports = { 80,\n 443 }\n\
                       table inet filter { chain a { ct state new # }\n comment \"} flush ruleset\"\n } }\n\
                       table nat {\n}\nadd rule bridge br input accept; add table ip6 six";
        let found =
            ["bridge br", "inet filter", "ip nat", "ip6 six"].map(ToOwned::to_owned).to_vec();
        assert_eq!(tables(content), Ok(found));
        assert_eq!(tables("table inet a {} table inet b {}").map(|all| all.len()), Ok(2));
    }

    #[test]
    fn statements_about_other_tables_are_rejected() {
        for content in [
            "flush ruleset",
            "flush ruleset inet",
            "flush  \\\n ruleset",
            "delete table inet docker",
            "destroy table inet docker",
            "flush table inet docker",
            "include \"/etc/nftables.d/*\"",
            "table inet a { } delete table inet b",
            "reset counters",
            "table inet a {",
            "}",
            "table $x { }",
        ] {
            let problem = tables(content).expect_err(content);
            assert!(problem.chars().count() <= 100, "{problem}");
        }
        assert!(tables_of("flush ruleset\ntable inet a { }", true).is_ok());
    }
}
