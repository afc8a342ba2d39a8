//! `replace`: every match of a regular expression in a text file is replaced.
//!
//! The replaced text is not kept: a removal from the graph changes nothing, and `undo` restores the whole file.
//!
//! Reading order: this file, `template.rs` (the replacement).

use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place};
use crate::kind::KindSpec;
use crate::parts::edit_fields::{
    EDIT_SENDS, EditFields, FILE, IN_PLACE, PATH, SENSITIVE, VALIDATE,
};
use crate::parts::text_lines::{compile_lines_pattern, unsafe_edit};
use crate::parts::{Edited, Editor, FieldReader};
use crate::resource::Resource;
use crate::secrets::escape::short;
use crate::secrets::secret_text::Secret;
use regex_lite::Regex;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

mod template;

use template::Template;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "replace",
    collectible: true,
    doc: "Replaces every match of a regular expression in a text file of at most 512 KiB; every other byte stays. The replacement must not match again in a way that changes the file once more. The text stays when the resource leaves the graph.",
    fields: &[
        PATH,
        FILE,
        FieldSpec::new(
            "match",
            FieldType::Text,
            "Regular expression of the text to replace. ^ and $ match at each line; (?s) lets a dot match line ends.",
        ).required().known_at_load()
        .example("^#?(GRUB_TIMEOUT)=.*$"),
        FieldSpec::new(
            "replacement",
            FieldType::Text,
            "The new text of each match: \\1 to \\9 stand for the groups of `match`, \\0 for the whole match, \\\\ for a backslash. A secret is taken as it is. Default: nothing, so that each match is deleted.",
        ).listable_at_own_place().mode(FieldMode::Value)
            .receives(Receives::Secrets)
            .default("\"\"")
            .example("GRUB_TIMEOUT=2"),
        FieldSpec::new(
            "only_after",
            FieldType::Text,
            "Regular expression: only the text behind its first match is searched. Without a match nothing is replaced.",
        ).known_at_load()
        .example("^\\[server\\]"),
        FieldSpec::new(
            "only_before",
            FieldType::Text,
            "Regular expression: only the text before its first match is searched, behind `only_after`. Without a match nothing is replaced.",
        ).known_at_load()
        .example("^\\["),
        VALIDATE, IN_PLACE,
        SENSITIVE,
    ],
    sends: EDIT_SENDS,
    example: "replace:\n  - name: short boot menu\n    path: /etc/default/grub\n    match: ^#?(GRUB_TIMEOUT)=.*$\n    replacement: '\\1=2'\n",
    restore: None,
    build,
};

/// The size limit of a file: some expressions need time in the square of it.
const LARGEST: usize = 512 << 10;

/// The time limit of a search. The text can belong to another user.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug)]
struct Replace {
    matching: Regex,
    replacement: Template,
    after: Option<Regex>,
    before: Option<Regex>,
    is_secret: bool,
}

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let mut shared = EditFields::read(&mut reader, name);
    let is_sensitive = std::mem::take(&mut shared.is_sensitive);
    let text = shared.secret_text(&mut reader, "replacement");
    let is_literal = shared.is_sensitive;
    shared.is_sensitive |= is_sensitive;
    let pattern = reader.required_text("match");
    let limits = [reader.text("only_after"), reader.text("only_before")];
    let mut compiled = |field: &'static str, text: &str| match compile_lines_pattern(field, text) {
        Ok(pattern) => Some(pattern),
        Err(problem) => {
            reader.reject(problem);
            None
        }
    };
    let matching = compiled("match", &pattern);
    let [after, before] = &limits;
    let after = after.as_deref().and_then(|text| compiled("only_after", text));
    let before = before.as_deref().and_then(|text| compiled("only_before", text));
    let text = text.unwrap_or_else(|| Secret::from(String::new()));
    let template = if is_literal { Template::literal(text) } else { Template::read(text) };
    if let Some(matching) = &matching {
        let (most, used) = (matching.captures_len() - 1, template.highest_group());
        let what = format!("`replacement` names group {used}, and `match` has {most}");
        reader.require(used <= most, "replacement", (&what, "write the group in ( )"));
    }
    let limits = limits.into_iter().flatten();
    let all: Vec<String> = std::iter::once(pattern).chain(limits).collect();
    let part = format!("the text that matches {}", all.join(" beside "));
    let is_secret = shared.is_sensitive;
    reader.finish(()).map(|()| {
        let matching = matching.unwrap_or_else(template::matches_nothing);
        let editor = Replace { matching, replacement: template, after, before, is_secret };
        shared.into_resource(part, editor, None)
    })
}

impl Replace {
    /// Returns the searched part of a text; none if a limit is not in the text.
    fn searched(&self, text: &str) -> Option<Range<usize>> {
        let start = match &self.after {
            Some(after) => after.find(text)?.end(),
            None => 0,
        };
        let end = match &self.before {
            Some(before) => before.find(text.get(start..)?)?.start() + start,
            None => text.len(),
        };
        Some(start..end)
    }

    /// Replaces all matches.
    fn replace(&self, text: &str) -> Result<Edited, Failure> {
        let unchanged = || Edited { text: text.to_owned(), from: String::new(), to: String::new() };
        if text.len() > LARGEST {
            return Err(unsafe_edit("the file exceeds 512 KiB, the limit of replacements"));
        }
        let began = Instant::now();
        let Some(range) = self.searched(text) else { return Ok(unchanged()) };
        let (head, rest) = text.split_at(range.start);
        let (searched, tail) = rest.split_at(range.len());
        let mut edited = Edited { text: head.to_owned(), from: String::new(), to: String::new() };
        let mut done = 0;
        for found in self.matching.captures_iter(searched) {
            let Some(whole) = found.get(0) else { continue };
            edited.text.push_str(searched.get(done..whole.start()).unwrap_or_default());
            let start = edited.text.len();
            self.replacement.write(&found, &mut edited.text);
            let new = edited.text.get(start..).unwrap_or_default();
            if new != whole.as_str() {
                add_line(&mut edited.from, whole.as_str());
                add_line(&mut edited.to, new);
            }
            done = whole.end();
            if edited.text.len() > LARGEST {
                let what = "the file would exceed 512 KiB with all matches replaced";
                return Err(unsafe_edit(what));
            }
            if began.elapsed() > PATIENCE {
                let what = "the search for `match` takes more than three seconds";
                let hint = "write a simpler expression, without `.*` behind an optional part";
                return Err(Failure::new(what).hint(hint));
            }
        }
        edited.text.push_str(searched.get(done..).unwrap_or_default());
        edited.text.push_str(tail);
        Ok(edited)
    }
}

/// Adds one text to a list of texts, one in each line.
fn add_line(list: &mut String, text: &str) {
    if !list.is_empty() {
        list.push('\n');
    }
    list.push_str(text);
}

impl Editor for Replace {
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        let edited = self.replace(text)?;
        if edited.text == text {
            return Ok(Edited { from: String::new(), to: String::new(), ..edited });
        }
        if self.replace(&edited.text)?.text != edited.text {
            let again = if self.is_secret { String::new() } else { short(&edited.to, 40) };
            let what = format!("`match` matches the replaced text again and changes it: {again}");
            let hint = "write a `match` that does not fit the new text, for example with ^ and $";
            return Err(Failure::new(crate::parts::field_reader::bounded(what)).hint(hint));
        }
        Ok(edited)
    }

    fn aspect(&self) -> &'static str {
        "text"
    }

    fn is_secret(&self) -> bool {
        self.is_secret
    }
}

#[cfg(test)]
mod tests;
