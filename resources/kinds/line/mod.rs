//! `line`: one line of a text file.

use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::kind::KindSpec;
use crate::parts::edit_fields::{
    AFTER, BEFORE, CREATE, EDIT_SENDS, EditFields, FILE, IN_PLACE, PATH, SENSITIVE, STATE,
    VALIDATE, read_insertion,
};
use crate::parts::text_lines::{Insertion, TextLines, compile_pattern};
use crate::parts::{Edited, Editor, FieldReader};
use crate::resource::Resource;
use crate::secrets::secret_text::Secret;
use regex_lite::Regex;
use std::borrow::Cow;
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "line",
    collectible: true,
    doc: "Manages one line of a text file; every other byte stays.",
    fields: &[
        PATH,
        FILE,
        FieldSpec::new("line", FieldType::Text, "The line, without its line end.").listable_at_own_place().mode(FieldMode::Value)
            .receives(Receives::Secrets)
            .example("PermitRootLogin no"),
        FieldSpec::new("content", FieldType::Text, "Another name of `line`, as in mgmt.").role(FieldRole::Template).mode(FieldMode::Value)
            .receives(Receives::Secrets)
            .example("PermitRootLogin no")
            .conflicts_with(&["line"]),
        FieldSpec::new(
            "match",
            FieldType::Text,
            "Regular expression of the line to replace: the last matching line becomes `line`. Nothing is replaced if `line` exists and does not match itself. With state absent: every matching line is removed.",
        ).known_at_load()
        .example("^#?PermitRootLogin\\s"),
        AFTER,
        BEFORE,
        STATE,
        CREATE,
        VALIDATE, IN_PLACE,
        SENSITIVE,
    ],
    sends: EDIT_SENDS,
    example: "line:\n  - name: no root logins\n    path: /etc/ssh/sshd_config\n    match: ^#?PermitRootLogin\\s\n    line: PermitRootLogin no\n    validate: sshd -t -f %s\n",
    restore: None,
    build,
};

#[derive(Debug)]
struct OneLine {
    line: Option<Secret>,
    matching: Option<Regex>,
    insertion: Insertion,
    is_present: bool,
    is_secret: bool,
}

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let mut shared = EditFields::read(&mut reader, name);
    let field = if reader.fields.has("content") { "content" } else { "line" };
    let line = shared.secret_text(&mut reader, field);
    let pattern = reader.text("match");
    let matching = pattern.as_deref().and_then(|text| match compile_pattern("match", text) {
        Ok(matching) => Some(matching),
        Err(problem) => {
            reader.reject(problem);
            None
        }
    });
    let insertion = read_insertion(&mut reader);
    match &line {
        None if shared.is_present => {
            let problem = Invalid::field("line", "expected `line`, found none");
            reader.reject(problem.hint("line: PermitRootLogin no"));
        }
        None if pattern.is_none() => {
            let problem = Invalid::field("line", "expected `line` or `match`, found none");
            reader.reject(problem.hint("`match` removes every matching line"));
        }
        None => {}
        Some(line) => {
            let is_line = !line.reveal().is_empty() && !line.reveal().contains(['\n', '\r']);
            let hint = "the kind `block` manages several lines";
            reader.require(is_line, field, ("expected one line that is not empty", hint));
        }
    }
    let part = match (&line, &pattern) {
        (_, Some(pattern)) => format!("the line that matches {pattern}"),
        (Some(line), None) if !shared.is_sensitive => format!("the line \"{}\"", line.reveal()),
        _ => format!("the line {name}"),
    };
    let removal = shared.removal().and_then(|removal| match (&line, &pattern) {
        (Some(line), None) if !shared.is_sensitive => {
            Some(removal.with("line", Value::Text(line.reveal().to_owned())))
        }
        // The text of the line may change; `match` names the line.
        (Some(line), Some(pattern)) if !shared.is_sensitive => {
            let line = Value::Text(line.reveal().to_owned());
            Some(removal.naming(pattern.clone()).with_data("line", line))
        }
        // A secret is not recorded: its line is found by `match` alone.
        (Some(line), Some(pattern)) => {
            let is_found = matching.as_ref().is_some_and(|it| it.is_match(line.reveal()));
            is_found.then(|| removal.with("match", Value::Text(pattern.clone())))
        }
        _ => None,
    });
    let (is_present, is_secret) = (shared.is_present, shared.is_sensitive);
    let editor = OneLine { line, matching, insertion, is_present, is_secret };
    reader.finish(()).map(|()| shared.into_resource(part, editor, removal))
}

impl OneLine {
    fn add(&self, text: &str, wanted: &str) -> Edited {
        let mut lines = TextLines::new(text);
        let exists = || lines.iter().any(|line| line == wanted);
        let matching = self.matching.as_ref();
        let is_self_matching = matching.is_some_and(|pattern| pattern.is_match(wanted));
        let found = matching
            .and_then(|pattern| lines.iter().rposition(|line| pattern.is_match(line)))
            .filter(|_| is_self_matching || !exists());
        let mut edited = Edited { text: String::new(), from: String::new(), to: wanted.to_owned() };
        match found {
            Some(at) => {
                lines.line(at).clone_into(&mut edited.from);
                lines.replace(at, Cow::Owned(wanted.to_owned()));
            }
            None if exists() => wanted.clone_into(&mut edited.from),
            None => {
                let at = self.insertion.position(&lines);
                lines.insert(at, [Cow::Owned(wanted.to_owned())]);
            }
        }
        Edited { text: lines.to_text(), ..edited }
    }

    fn remove(&self, text: &str) -> Edited {
        let mut lines = TextLines::new(text);
        let is_removed = |line: &str| {
            self.line.as_ref().is_some_and(|wanted| wanted.reveal() == line)
                || self.matching.as_ref().is_some_and(|pattern| pattern.is_match(line))
        };
        let removed: Vec<&str> = lines.iter().filter(|line| is_removed(line)).collect();
        let from = removed.join("\n");
        lines.remove_matching(is_removed);
        Edited { text: lines.to_text(), from, to: String::new() }
    }
}

impl Editor for OneLine {
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        Ok(match &self.line {
            Some(line) if self.is_present => self.add(text, line.reveal()),
            _ => self.remove(text),
        })
    }

    fn aspect(&self) -> &'static str {
        "line"
    }

    fn is_secret(&self) -> bool {
        self.is_secret
    }
}

#[cfg(test)]
mod tests;
