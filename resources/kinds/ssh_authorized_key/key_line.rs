//! Lines of `authorized_keys`: options, type, key, comment.

use crate::failure::Failure;
use crate::parts::text_lines::TextLines;
use crate::parts::{Edited, Editor};
use std::borrow::Cow;

/// A key of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyLine {
    options: String,
    kind: String,
    /// The key in base64.
    body: String,
    /// The comment; none if a declaration says nothing about it.
    comment: Option<String>,
}

/// The types of keys that sshd knows, without the suffixes of certificates.
fn is_kind(text: &str) -> bool {
    let text = text.strip_suffix("@openssh.com").unwrap_or(text);
    let text = text.strip_suffix("-cert-v01").unwrap_or(text);
    let text = text.strip_prefix("sk-").unwrap_or(text);
    matches!(
        text,
        "ssh-ed25519"
            | "ssh-rsa"
            | "ssh-dss"
            | "ecdsa-sha2-nistp256"
            | "ecdsa-sha2-nistp384"
            | "ecdsa-sha2-nistp521"
    )
}

/// Returns true for a key in base64: its first bytes are the length of its type.
fn is_body(text: &str) -> bool {
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'=');
    text.len() > 40 && text.starts_with("AAAA") && text.bytes().all(is_letter)
}

/// Splits the first word off, at a blank outside of quotes.
fn split_word(text: &str) -> (&str, &str) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ' ' | '\t' if !is_quoted => {
                let rest = text.get(at..).unwrap_or_default();
                return (text.get(..at).unwrap_or_default(), rest.trim_start());
            }
            _ => {}
        }
    }
    (text, "")
}

/// Returns true for options without blanks outside of quotes, with all quotes closed.
pub(super) fn are_options(text: &str) -> bool {
    let (word, rest) = split_word(text);
    let quotes = word.replace("\\\"", "").matches('"').count();
    !word.is_empty() && rest.is_empty() && word == text && quotes % 2 == 0 && !is_kind(word)
}

impl KeyLine {
    /// Reads a line of a file; none for comments, empty lines, and lines that sshd does not read.
    pub(super) fn read(line: &str) -> Option<Self> {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let (first, rest) = split_word(line);
        let (options, kind, rest) = if is_kind(first) {
            ("", first, rest)
        } else {
            let (kind, rest) = split_word(rest);
            (first, kind, rest)
        };
        let body = rest.split([' ', '\t']).next()?;
        let comment = rest.get(body.len()..).unwrap_or_default().trim();
        (is_kind(kind) && is_body(body)).then(|| Self {
            options: options.to_owned(),
            kind: kind.to_owned(),
            body: body.to_owned(),
            comment: Some(comment.to_owned()).filter(|it| !it.is_empty()),
        })
    }

    /// Reads a declared key: a line, or the key in base64 with its type.
    pub(super) fn declared(line: &str, kind: Option<&str>) -> Result<Self, &'static str> {
        let found = match kind {
            None => Self::read(line),
            Some(kind) => Self::read(line)
                .filter(|it| it.kind == kind)
                .or_else(|| Self::read(&format!("{kind} {}", line.trim()))),
        };
        found.ok_or("expected a public key with its type")
    }

    /// Sets the declared options and comment.
    pub(super) fn with(self, options: Option<&str>, comment: Option<&str>) -> Self {
        let options = options.map_or(self.options, str::to_owned);
        Self { options, comment: comment.map(str::to_owned).or(self.comment), ..self }
    }

    /// Returns the line without its comment and options.
    pub(super) fn without_comment(&self) -> String {
        format!("{} {}", self.kind, self.body)
    }

    /// Returns the end of the key, which recognises it.
    pub(super) fn fingerprint(&self) -> &str {
        let start = self.body.len().saturating_sub(20);
        self.body.get(start..).unwrap_or(&self.body)
    }

    /// Returns the comment.
    pub(super) fn comment(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// Returns true if a found key is as declared.
    fn is_satisfied_by(&self, found: &Self) -> bool {
        let comment = self.comment.is_none() || self.comment == found.comment;
        self.options == found.options && self.kind == found.kind && comment
    }

    fn to_line(&self, comment: Option<&str>) -> String {
        let comment = self.comment.as_deref().or(comment).filter(|it| !it.is_empty());
        let options = Some(self.options.as_str()).filter(|it| !it.is_empty());
        let words = [options, Some(&self.kind), Some(&self.body), comment];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// The editor of the keys of a file.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) wanted: Vec<KeyLine>,
    pub(super) is_exclusive: bool,
    pub(super) is_present: bool,
}

impl Keys {
    /// Returns the lines with a key, with their keys.
    fn found(lines: &TextLines<'_>) -> Vec<(usize, KeyLine)> {
        let all = lines.iter().enumerate();
        all.filter_map(|(at, line)| Some((at, KeyLine::read(line)?))).collect()
    }

    /// Returns true if a line must go: a second line of a key, an absent key, or a foreign key.
    fn is_removed(&self, found: &[(usize, KeyLine)], number: usize) -> bool {
        let Some((_, key)) = found.get(number) else { return false };
        let is_own = self.wanted.iter().any(|own| own.body == key.body);
        let is_second = || found.iter().take(number).any(|(_, earlier)| earlier.body == key.body);
        match (is_own, self.is_present) {
            // A second line could give the key other options.
            (true, true) => is_second(),
            (true, false) => true,
            (false, true) => self.is_exclusive,
            (false, false) => false,
        }
    }
}

impl Editor for Keys {
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        let mut lines = TextLines::new(text);
        let found = Self::found(&lines);
        let (mut from, mut to) = (Vec::new(), Vec::new());
        if self.is_present {
            for key in &self.wanted {
                match found.iter().find(|(_, it)| it.body == key.body) {
                    Some((_, it)) if key.is_satisfied_by(it) => {}
                    Some((at, it)) => {
                        let line = key.to_line(it.comment.as_deref());
                        from.push(lines.line(*at).to_owned());
                        to.push(line.clone());
                        lines.replace(*at, Cow::Owned(line));
                    }
                    None => {
                        to.push(key.to_line(None));
                        lines.insert(lines.count(), [Cow::Owned(key.to_line(None))]);
                    }
                }
            }
        }
        let removed = found.iter().enumerate();
        let removed = removed.filter(|(number, _)| self.is_removed(&found, *number));
        let removed: Vec<usize> = removed.map(|(_, (at, _))| *at).collect();
        from.extend(removed.iter().rev().map(|at| lines.line(*at).to_owned()));
        lines.remove_all(&removed);
        Ok(Edited { text: lines.to_text(), from: from.join("\n"), to: to.join("\n") })
    }

    fn aspect(&self) -> &'static str {
        "keys"
    }
}
