//! One job in a file with jobs of others: a marker line with the name, and the line of the job.

use crate::failure::Failure;
use crate::parts::{Edited, Editor};

/// An editor of the two lines of a job.
#[derive(Clone, Debug)]
pub(super) struct BlockEditor {
    pub(super) name: String,
    /// The line of the job; none to remove the job.
    pub(super) line: Option<String>,
}

impl BlockEditor {
    fn marker(&self) -> String {
        format!("# steadfast: {}", self.name)
    }
}

impl Editor for BlockEditor {
    /// Keeps the first marker of the name; a line that follows a marker and is no comment is the job.
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        let marker = self.marker();
        let (mut new, mut from, mut is_placed) = (String::new(), String::new(), false);
        let mut lines = text.split_inclusive('\n').peekable();
        while let Some(line) = lines.next() {
            if line.trim_end() != marker {
                new.push_str(line);
                continue;
            }
            let job = lines.next_if(|next| !next.trim().is_empty() && !next.starts_with('#'));
            if !is_placed {
                job.unwrap_or_default().trim_end().clone_into(&mut from);
                self.place(&mut new);
                is_placed = true;
            }
        }
        if !is_placed && let Some((before, found, after)) = self.unmarked(&new) {
            found.trim_end().clone_into(&mut from);
            let mut text = before.to_owned();
            self.place(&mut text);
            text.push_str(after);
            return Ok(Edited { text, from, to: self.line.clone().unwrap_or_default() });
        }
        if !is_placed && self.line.is_some() {
            if !new.is_empty() && !new.ends_with('\n') {
                new.push('\n');
            }
            self.place(&mut new);
        }
        Ok(Edited { text: new, from, to: self.line.clone().unwrap_or_default() })
    }

    fn aspect(&self) -> &'static str {
        "job"
    }
}

impl BlockEditor {
    /// Finds the line of the job without a marker, as another program wrote it: the text before, the line, the text
    /// behind. A second line of the job would run it twice.
    fn unmarked<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str, &'t str)> {
        let own = words(self.line.as_deref()?);
        let (mut at, mut is_marked) = (0, false);
        for line in text.split_inclusive('\n') {
            let end = at + line.len();
            if !is_marked && words(line) == own {
                return Some((text.get(..at)?, line, text.get(end..)?));
            }
            is_marked = line.starts_with("# steadfast: ");
            at = end;
        }
        None
    }

    fn place(&self, text: &mut String) {
        if let Some(line) = &self.line {
            text.push_str(&format!("{}\n{line}\n", self.marker()));
        }
    }
}

/// Splits a job into its time, its user and its command.
fn words(line: &str) -> (Vec<&str>, &str) {
    let mut rest = line.trim();
    let count = if rest.starts_with('@') { 2 } else { 6 };
    let mut words = Vec::with_capacity(count);
    while words.len() < count {
        let Some((word, others)) = rest.split_once(char::is_whitespace) else { break };
        words.push(word);
        rest = others.trim_start();
    }
    (words, rest)
}

#[cfg(test)]
mod tests {
    use super::BlockEditor;
    use crate::parts::Editor as _;
    use proptest::prelude::*;

    fn editor(line: Option<&str>) -> BlockEditor {
        BlockEditor { name: "backup".to_owned(), line: line.map(ToOwned::to_owned) }
    }

    #[test]
    fn a_job_is_added_replaced_and_removed() {
        let edit = editor(Some("0 1 * * * root a"));
        let foreign = "MAILTO=x\n# steadfast: other\n* * * * * root b";
        let added = edit.edit(foreign).unwrap();
        let own = "# steadfast: backup\n0 1 * * * root a\n";
        assert_eq!(added.text, format!("{foreign}\n{own}"));
        assert_eq!(edit.edit(&added.text).unwrap().text, added.text);
        for broken in [
            added.text.replace("0 1", "0 2"),
            added.text.replace("0 1 * * * root a\n", ""),
            format!("{}{own}", added.text),
        ] {
            assert_eq!(edit.edit(&broken).unwrap().text, added.text);
        }
        let alone = format!("# steadfast: backup\n# note\n\n{own}");
        assert_eq!(edit.edit(&alone).unwrap().text, format!("{own}# note\n\n"));
        assert_eq!(editor(None).edit(&added.text).unwrap().text, format!("{foreign}\n"));
        assert_eq!(editor(None).edit(foreign).unwrap().text, foreign);
    }

    #[test]
    fn the_line_of_another_program_gets_the_marker() {
        let edit = editor(Some("0 1 * * * root a  b"));
        let edited = edit.edit("A=1\n0  1 * * *\troot  a  b\n# end\n").unwrap();
        assert_eq!(edited.text, "A=1\n# steadfast: backup\n0 1 * * * root a  b\n# end\n");
        assert_eq!(edited.from, "0  1 * * *\troot  a  b");
        let of_other = "# steadfast: other\n0 1 * * * root a  b\n";
        let added = edit.edit(of_other).unwrap().text;
        assert_eq!(added, format!("{of_other}# steadfast: backup\n0 1 * * * root a  b\n"));
        assert!(edit.edit("0 1 * * * root a b\n").unwrap().from.is_empty(), "another command");
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn foreign_lines_survive_byte_for_byte(
            before in "([ -~]{0,20}\n){0,5}",
            after in "([ -~]{0,20}\n){0,5}",
        ) {
            let edit = editor(Some("@daily root a"));
            let own = "# steadfast: backup\n@daily root a\n";
            let edited = edit.edit(&format!("{before}# steadfast: backup\nx\n{after}")).unwrap().text;
            prop_assert_eq!(&edited, &format!("{before}{own}{after}"));
            prop_assert_eq!(editor(None).edit(&edited).unwrap().text, before + &after);
        }
    }
}
