//! `ini`: one key of a file with sections, as in systemd units, desktop files and my.cnf.

use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::kind::KindSpec;
use crate::parts::edit_fields::{
    CREATE, EDIT_SENDS, EditFields, FILE, IN_PLACE, PATH, SENSITIVE, STATE, VALIDATE,
};
use crate::parts::text_lines::{TextLines, unsafe_edit};
use crate::parts::{Edited, Editor, FieldReader};
use crate::resource::Resource;
use crate::secrets::secret_text::Secret;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "ini",
    collectible: true,
    doc: "Manages one key of a file with [sections]; every other byte stays.",
    fields: &[
        PATH,
        FILE,
        FieldSpec::new(
            "section",
            FieldType::Text,
            "The section, without brackets. Default: the lines before the first section. A missing section is added at the end.",
        ).mode(FieldMode::Static)
        .example("mysqld"),
        FieldSpec::new(
            "key",
            FieldType::Text,
            "The key. The last one counts if the section has several of this name; state absent removes all.",
        ).mode(FieldMode::Static)
        .required()
        .example("bind-address"),
        FieldSpec::new(
            "value",
            FieldType::Text,
            "The value, one line as it stands in the file. Default: the key stands alone, without a separator.",
        ).listable_at_own_place().mode(FieldMode::Value)
        .receives(Receives::Secrets)
        .example("127.0.0.1"),
        FieldSpec::new(
            "separator",
            FieldType::Text,
            "The text between key and value of a new line: =, : or blanks around one of them. Default: as in the line before, or \" = \".",
        ).receives(Receives::Shown).mode(FieldMode::Value)
        .example("="),
        FieldSpec::new(
            "comments",
            FieldType::Text,
            "The letters that start a comment behind a value, after a blank: \";\", \"#\" or \"#;\". Default: none; such a text belongs to the value.",
        ).receives(Receives::Shown).mode(FieldMode::Value)
        .example(";"),
        STATE,
        CREATE,
        VALIDATE, IN_PLACE,
        SENSITIVE,
    ],
    sends: EDIT_SENDS,
    example: "ini:\n  - name: database address\n    path: /etc/mysql/my.cnf\n    section: mysqld\n    key: bind-address\n    value: 127.0.0.1\n",
    restore: None,
    build,
};

#[derive(Debug)]
struct Ini {
    section: Option<String>,
    key: String,
    value: Option<Secret>,
    separator: Option<String>,
    delimiter: char,
    comments: String,
    is_present: bool,
    is_secret: bool,
}

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let mut shared = EditFields::read(&mut reader, name);
    let section = reader.text("section");
    let is_section = section.as_ref().is_none_or(|it| !it.contains(['[', ']']) && it.trim() == it);
    let hint = "for example Service";
    reader.require(is_section, "section", ("expected a name without brackets", hint));
    let key = reader.required_text("key");
    let value = shared.secret_text(&mut reader, "value");
    let separator = reader.text("separator");
    let comments = reader.text("comments").unwrap_or_default();
    let is_mark = comments.chars().all(|letter| matches!(letter, ';' | '#'));
    reader.require(is_mark, "comments", ("expected ; and #", "for example \";\""));
    let trimmed = separator.as_deref().map(str::trim);
    let is_separator = trimmed.is_none_or(|it| matches!(it, "=" | ":"));
    reader.require(is_separator, "separator", ("expected = or :", "for example \" = \""));
    let delimiter = if trimmed == Some(":") { ':' } else { '=' };
    let is_key = key.trim() == key && !key.starts_with(['[', '#', ';']) && !key.contains(delimiter);
    let hint = "for example bind-address";
    reader.require(is_key, "key", ("expected a name without blanks around it and without =", hint));
    if let Some(value) = &value {
        let text = value.reveal();
        let is_value = text.trim() == text && !text.contains(['\n', '\r']);
        let hint = "write the value in quotes, if the program reads quotes";
        let what = "expected one line without blanks around it";
        reader.require(is_value, "value", (what, hint));
        let has_comment = comment_start(text, &comments).is_some() || text.ends_with('\\');
        let what = "the value contains the start of a comment or ends with \\";
        let hint = "such a value would be read in another way";
        reader.require(!has_comment, "value", (what, hint));
    }
    let part = match &section {
        Some(section) => format!("the key [{section}] {key}"),
        None => format!("the key {key} before all sections"),
    };
    let removal = shared.removal().map(|removal| {
        let text = |text: &str| Value::Text(text.to_owned());
        let removal = removal.with("key", text(&key));
        let optional = [
            ("section", &section),
            ("separator", &separator),
            ("comments", &Some(comments.clone())),
        ];
        let given = optional.into_iter().filter_map(|(field, it)| Some((field, it.as_ref()?)));
        given
            .filter(|(_, it)| !it.is_empty())
            .fold(removal, |removal, (field, it)| removal.with(field, text(it)))
    });
    let (is_present, is_secret) = (shared.is_present, shared.is_sensitive);
    let editor = Ini { section, key, value, separator, delimiter, comments, is_present, is_secret };
    reader.finish(()).map(|()| shared.into_resource(part, editor, removal))
}

/// Returns the position of a comment behind a value, with the blanks before it.
fn comment_start(text: &str, marks: &str) -> Option<usize> {
    let is_mark = |at: usize, letter: char| {
        marks.contains(letter) && text.get(..at).is_some_and(|before| before.ends_with([' ', '\t']))
    };
    let at = text.char_indices().find(|(at, letter)| is_mark(*at, *letter))?.0;
    text.get(..at).map(|before| before.trim_end().len())
}

/// A line with a key.
struct Entry {
    line: usize,
    /// The bytes of the value in the line; none for a key that stands alone.
    value: Option<Range<usize>>,
    /// The end of the key in the line.
    key_end: usize,
}

impl Ini {
    /// Returns the lines of each part of the section; the header is excluded.
    fn regions(&self, lines: &TextLines<'_>) -> Vec<Range<usize>> {
        let headers = lines.iter().enumerate().filter_map(|(at, line)| {
            let name = line.trim().strip_prefix('[')?;
            // A comment may stand behind the header.
            Some((at, name.split_once(']')?.0.trim().to_owned()))
        });
        let headers: Vec<(usize, String)> = headers.collect();
        let end_of =
            |number: usize| headers.get(number).map_or_else(|| lines.count(), |(at, _)| *at);
        match &self.section {
            None => std::iter::once(0..end_of(0)).collect(),
            Some(section) => {
                let own = headers.iter().enumerate().filter(|(_, (_, name))| name == section);
                own.map(|(number, (at, _))| at + 1..end_of(number + 1)).collect()
            }
        }
    }

    /// Reads a line with the key.
    fn entry(&self, at: usize, line: &str) -> Option<Entry> {
        let start = line.len() - line.trim_start().len();
        let rest = line.trim_start().strip_prefix(self.key.as_str())?;
        let key_end = start + self.key.len();
        let Some(value) = rest.trim_start().strip_prefix(self.delimiter) else {
            let end = comment_start(rest, &self.comments).unwrap_or(rest.len());
            let is_alone = rest.get(..end)?.trim().is_empty();
            return is_alone.then_some(Entry { line: at, value: None, key_end });
        };
        let length = value.trim_start().len();
        let value = value.trim_start();
        // An empty value before a comment: the blank before the mark was trimmed.
        let end = if value.starts_with(|letter| self.comments.contains(letter)) {
            0
        } else {
            comment_start(value, &self.comments).unwrap_or_else(|| value.trim_end().len())
        };
        let start = line.len() - length;
        Some(Entry { line: at, value: Some(start..start + end), key_end })
    }

    fn entries(&self, lines: &TextLines<'_>) -> Vec<Entry> {
        let regions = self.regions(lines).into_iter();
        let all = regions.flat_map(|region| {
            region.filter_map(|at| self.entry(at, lines.line(at))).collect::<Vec<_>>()
        });
        all.collect()
    }

    /// Fails if the value of an entry goes on in the next line.
    fn ends_in_its_line(&self, lines: &TextLines<'_>, entry: &Entry) -> Result<(), Failure> {
        let next = lines.line(entry.line + 1);
        let indent = |line: &str| line.len() - line.trim_start().len();
        let is_comment = next.trim_start().starts_with(['#', ';']);
        let goes_on = lines.line(entry.line).ends_with('\\')
            || (entry.value.is_some()
                && indent(next) > indent(lines.line(entry.line))
                && !next.trim().is_empty()
                && !is_comment
                && !next.contains(self.delimiter));
        if goes_on {
            return Err(unsafe_edit(format!(
                "line {}: the value of {} goes on in the next line",
                entry.line + 1,
                self.key
            )));
        }
        Ok(())
    }

    fn add(&self, text: &str) -> Result<Edited, Failure> {
        let mut lines = TextLines::new(text);
        let wanted = self.value.as_ref().map(Secret::reveal);
        let to = self.shown(wanted);
        let Some(entry) = self.entries(&lines).pop() else {
            self.insert(&mut lines, wanted);
            return Ok(Edited { text: lines.to_text(), from: String::new(), to });
        };
        self.ends_in_its_line(&lines, &entry)?;
        let line = lines.line(entry.line).to_owned();
        let found = entry.value.clone().and_then(|value| line.get(value));
        let from = self.shown(found);
        if found != wanted {
            let (end, new) = match (&entry.value, wanted) {
                (Some(value), Some(wanted)) => (value.end, (value.start, wanted.to_owned())),
                (Some(value), None) => (value.end, (entry.key_end, String::new())),
                (None, _) => {
                    let with =
                        format!("{}{}", self.separator_near(&lines, entry.line), to_value(wanted));
                    (entry.key_end, (entry.key_end, with))
                }
            };
            let (start, new) = new;
            let before = line.get(..start).unwrap_or_default();
            let after = line.get(end..).unwrap_or_default();
            let gap = if needs_gap(before, after, self.delimiter, &new) { " " } else { "" };
            lines.replace(entry.line, Cow::Owned(format!("{before}{new}{gap}{after}")));
        }
        Ok(Edited { text: lines.to_text(), from, to })
    }

    /// Inserts a new line, and its section if that is missing.
    fn insert(&self, lines: &mut TextLines<'_>, wanted: Option<&str>) {
        let regions = self.regions(lines);
        let is_content =
            |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with(['#', ';']);
        let region = regions.last().cloned();
        let last = region.clone().and_then(|mut all| all.rfind(|at| is_content(lines.line(*at))));
        let indent = last.map_or("", |at| {
            let line = lines.line(at);
            let goes_on = !line.contains(self.delimiter);
            let blank = line.len() - line.trim_start().len();
            if goes_on { "" } else { line.get(..blank).unwrap_or_default() }
        });
        let near = last.unwrap_or_else(|| lines.count());
        let rest = wanted.map_or_else(String::new, |value| {
            format!("{}{value}", self.separator_near(lines, near))
        });
        let new = Cow::Owned(format!("{indent}{}{rest}", self.key));
        match (region, last, &self.section) {
            (_, Some(last), _) => lines.insert(last + 1, [new]),
            (Some(region), None, Some(_)) => lines.insert(region.start, [new]),
            (_, None, None) => {
                let header = self.regions(lines).first().map_or(0, |region| region.end);
                lines.insert(header, [new]);
            }
            (None, None, Some(section)) => {
                let header = Cow::Owned(format!("[{section}]"));
                lines.insert(lines.count(), [header, new]);
            }
        }
    }

    /// Returns the separator of a new value: the declared one, or that of the nearest line before, or of any line.
    fn separator_near(&self, lines: &TextLines<'_>, near: usize) -> String {
        if let Some(separator) = &self.separator {
            return separator.clone();
        }
        let separator = |at: usize| {
            let line = lines.line(at);
            if line.trim_start().starts_with(['#', ';', '[']) {
                return None;
            }
            let (key, value) = line.split_once(self.delimiter)?;
            let before = if key.ends_with(' ') { " " } else { "" };
            let after = if value.starts_with(' ') { " " } else { "" };
            Some(format!("{before}{}{after}", self.delimiter))
        };
        let positions =
            (0..near.saturating_add(1).min(lines.count())).rev().chain(0..lines.count());
        positions.into_iter().find_map(separator).unwrap_or_else(|| format!(" {} ", self.delimiter))
    }

    fn remove(&self, text: &str) -> Result<Edited, Failure> {
        let mut lines = TextLines::new(text);
        let entries = self.entries(&lines);
        let mut from = String::new();
        for entry in entries.iter().rev() {
            self.ends_in_its_line(&lines, entry)?;
            let value = entry.value.clone().and_then(|it| lines.line(entry.line).get(it));
            from = self.shown(value);
        }
        let positions: Vec<usize> = entries.iter().map(|entry| entry.line).collect();
        lines.remove_all(&positions);
        Ok(Edited { text: lines.to_text(), from, to: String::new() })
    }

    fn shown(&self, value: Option<&str>) -> String {
        match value {
            Some(value) => format!("{} = {value}", self.key),
            None => self.key.clone(),
        }
    }
}

fn to_value(wanted: Option<&str>) -> &str {
    wanted.unwrap_or_default()
}

/// Returns true if a blank must separate a new value from the comment behind it.
fn needs_gap(before: &str, after: &str, delimiter: char, new: &str) -> bool {
    let is_glued = !after.is_empty() && !after.starts_with([' ', '\t']);
    is_glued && (!new.is_empty() || before.ends_with(delimiter))
}

impl Editor for Ini {
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        if self.is_present { self.add(text) } else { self.remove(text) }
    }

    fn aspect(&self) -> &'static str {
        "key"
    }

    fn is_secret(&self) -> bool {
        self.is_secret
    }
}

#[cfg(test)]
mod tests;
