//! Assignments of files like `/etc/default/locale`: `KEY=value`, one a line, with the quotes of a shell.

use super::text_edit::{Edited, Editor};
use crate::failure::Failure;

/// An assignment with the declared value. Comments and other lines stay byte for byte.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) key: String,
    /// The value; none to delete the assignment.
    pub(crate) value: Option<String>,
}

impl Editor for Assignment {
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let is_own = |line: &str| assigned(line).is_some_and(|(key, _)| key == self.key);
        // The last assignment counts.
        let last = lines.iter().rposition(|line| is_own(line));
        let found = last.and_then(|at| lines.get(at)).and_then(|line| assigned(line));
        let from = found.map(|(_, value)| value).unwrap_or_default();
        let to = self.value.clone().unwrap_or_default();
        if last.is_some() == self.value.is_some() && from == to {
            return Ok(Edited { text: text.to_owned(), from, to });
        }
        let new = self.value.as_ref().map(|value| format!("{}={}\n", self.key, quoted(value)));
        let mut edited = String::with_capacity(text.len() + 40);
        for (number, line) in lines.iter().enumerate() {
            match (&new, Some(number) == last, is_own(line)) {
                (Some(new), true, _) => edited.push_str(new),
                (None, _, true) => {}
                _ => edited.push_str(line),
            }
        }
        if let (Some(new), None) = (&new, last) {
            if !edited.is_empty() && !edited.ends_with('\n') {
                edited.push('\n');
            }
            edited.push_str(new);
        }
        Ok(Edited { text: edited, from, to })
    }

    fn aspect(&self) -> &'static str {
        "value"
    }
}

/// Returns the value of a key in a text of assignments, without quotes; the last assignment counts.
pub(crate) fn value_of(text: &str, key: &str) -> Option<String> {
    let found = text.lines().rev().filter_map(assigned).find(|(name, _)| *name == key);
    found.map(|(_, value)| value)
}

/// Returns the key and the value of a line, without quotes; none for every other line.
fn assigned(line: &str) -> Option<(&str, String)> {
    let line = line.trim();
    let (key, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let key = key.trim();
    let is_key = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (!key.is_empty() && key.chars().all(is_key)).then(|| (key, unquoted(value)))
}

fn unquoted(value: &str) -> String {
    let value = value.trim();
    if let Some(inner) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return inner.to_owned();
    }
    let inner = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let mut plain = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => plain.extend(letters.next()),
            letter => plain.push(letter),
        }
    }
    plain
}

fn quoted(value: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-@:/+".contains(letter);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    let mut text = String::from("\"");
    for letter in value.chars() {
        if matches!(letter, '"' | '\\' | '$' | '`') {
            text.push('\\');
        }
        text.push(letter);
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::Assignment;
    use crate::parts::text_edit::Editor as _;

    fn edit(text: &str, key: &str, value: Option<&str>) -> String {
        let value = value.map(ToOwned::to_owned);
        let edited = Assignment { key: key.to_owned(), value }.edit(text).expect("an edit");
        edited.text
    }

    #[test]
    fn one_assignment_changes_and_the_rest_stays() {
        let text = "# LANG=no\nLANG=C\n  LC_TIME = x\nother line\nexport LANG=\"de\"\nEND=1";
        let all = "# LANG=no\nLANG=C\n  LC_TIME = x\nother line\nLANG=C.UTF-8\nEND=1";
        assert_eq!(edit(text, "LANG", Some("C.UTF-8")), all);
        assert_eq!(edit(text, "LANG", Some("de")), text, "the last assignment counts");
        assert_eq!(edit(text, "LANG", None), "# LANG=no\n  LC_TIME = x\nother line\nEND=1");
        assert_eq!(
            edit("END=1", "PRETTY", Some("a \"b\" $c")),
            "END=1\nPRETTY=\"a \\\"b\\\" \\$c\"\n"
        );
        assert_eq!(edit("", "LANG", None), "");
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn foreign_lines_survive(text in "(([A-C]=[a-z\"' ]{0,4}|# .|x y|)\n){0,8}", value in ".{0,12}") {
            let value = value.replace(char::is_control, "");
            let edited = edit(&text, "B", Some(&value));
            let foreign = |text: &str| -> Vec<String> {
                text.lines().filter(|line| !line.trim().starts_with("B=")).map(ToOwned::to_owned).collect()
            };
            proptest::prop_assert_eq!(foreign(&edited), foreign(&text));
            proptest::prop_assert_eq!(edit(&edited, "B", Some(&value)), edited);
            proptest::prop_assert_eq!(foreign(&edit(&text, "B", None)), foreign(&text));
        }
    }
}
