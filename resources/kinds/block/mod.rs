//! `block`: lines of a text file between two marker lines.

use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType, Interpreter};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::kind::KindSpec;
use crate::parts::edit_fields::{
    AFTER, BEFORE, CREATE, EDIT_SENDS, EditFields, FILE, IN_PLACE, PATH, SENSITIVE, STATE,
    VALIDATE, read_insertion,
};
use crate::parts::text_lines::{Insertion, TextLines, unsafe_edit};
use crate::parts::{Edited, Editor, FieldReader};
use crate::resource::Resource;
use crate::secrets::secret_text::Secret;
use std::borrow::Cow;
use std::sync::Arc;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "block",
    collectible: true,
    doc: "Manages a block of lines between two marker lines of a text file; every other byte stays.",
    fields: &[
        PATH,
        FILE,
        FieldSpec::new("content", FieldType::Text, "The lines of the block, without the markers.").listable_at_own_place().role(FieldRole::Template).mode(FieldMode::Literal(Interpreter::None))
            .receives(Receives::Secrets)
            .example("Match Group sftp\n  ForceCommand internal-sftp"),
        FieldSpec::new(
            "marker",
            FieldType::Text,
            "The marker lines; {mark} becomes BEGIN and END. The markers identify the block. Default: # {mark} steadfast: NAME.",
        ).mode(FieldMode::Value)
        .example("# {mark} steadfast: sftp"),
        AFTER,
        BEFORE,
        STATE,
        CREATE,
        VALIDATE, IN_PLACE,
        SENSITIVE,
    ],
    sends: EDIT_SENDS,
    example: "block:\n  - name: sftp\n    path: /etc/ssh/sshd_config\n    content: |\n      Match Group sftp\n        ForceCommand internal-sftp\n",
    restore: None,
    build,
};

/// The placeholder of the words BEGIN and END.
const MARK: &str = "{mark}";

#[derive(Debug)]
struct Block {
    begin: String,
    end: String,
    content: Option<Secret>,
    insertion: Insertion,
    is_secret: bool,
}

/// The beginnings of the usual markers.
const USUAL: [&str; 2] = ["# BEGIN steadfast: ", "# END steadfast: "];

fn build(name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let mut shared = EditFields::read(&mut reader, name);
    let content = shared.secret_text(&mut reader, "content");
    let marker = reader.text("marker").unwrap_or_else(|| format!("# {MARK} steadfast: {name}"));
    let is_marker = marker.matches(MARK).count() == 1 && !marker.contains(['\n', '\r']);
    let hint = "for example # {mark} steadfast: sftp";
    reader.require(is_marker, "marker", ("expected one line with {mark} once", hint));
    let (begin, end) = (marker.replace(MARK, "BEGIN"), marker.replace(MARK, "END"));
    if shared.is_present {
        let hint = "content: the lines between the markers";
        reader.require(content.is_some(), "content", ("expected `content`, found none", hint));
    }
    if let Some(content) = &content {
        let lines = TextLines::new(content.reveal());
        // The marker of another block would make that one impossible to find.
        let is_usual = |line: &str| USUAL.iter().any(|start| line.trim_start().starts_with(start));
        let has_marker = lines
            .iter()
            .any(|line| line.trim_end() == begin || line.trim_end() == end || is_usual(line));
        let hint = "change the marker, or the line of the content";
        reader.require(!has_marker, "content", ("the content contains a marker line", hint));
    }
    let insertion = read_insertion(&mut reader);
    let part = format!("the block \"{begin}\"");
    let removal = shared.removal().map(|removal| removal.with("marker", Value::Text(marker)));
    let content = content.filter(|_| shared.is_present);
    let editor = Block { begin, end, content, insertion, is_secret: shared.is_sensitive };
    reader.finish(()).map(|()| shared.into_resource(part, editor, removal))
}

impl Block {
    /// Returns the lines of the block with its markers; none if the text has no block.
    fn find(&self, lines: &TextLines<'_>) -> Result<Option<std::ops::Range<usize>>, Failure> {
        let positions = |marker: &str| -> Vec<usize> {
            let all =
                lines.iter().enumerate().filter(|(_, line)| line.trim_end() == marker.trim_end());
            all.map(|(at, _)| at).collect()
        };
        match (positions(&self.begin).as_slice(), positions(&self.end).as_slice()) {
            ([], []) => Ok(None),
            ([begin], [end]) if begin < end => Ok(Some(*begin..end + 1)),
            (begins, ends) => Err(unsafe_edit(format!(
                "expected one BEGIN and one END marker in this order, found {} and {}: {}",
                begins.len(),
                ends.len(),
                self.begin
            ))),
        }
    }
}

impl Editor for Block {
    fn edit(&self, text: &str) -> Result<Edited, Failure> {
        let mut lines = TextLines::new(text);
        let found = self.find(&lines)?;
        let inner = found.clone().map_or(0..0, |all| all.start + 1..all.end - 1);
        let old: Vec<&str> = lines.iter().take(inner.end).skip(inner.start).collect();
        let from = old.join("\n");
        let Some(content) = &self.content else {
            if let Some(all) = found {
                lines.remove(all);
            }
            return Ok(Edited { text: lines.to_text(), from, to: String::new() });
        };
        let new = TextLines::new(content.reveal());
        let wanted: Vec<&str> = new.iter().collect();
        let to = wanted.join("\n");
        let is_same = old == wanted;
        let wanted = wanted.iter().map(|line| Cow::Owned((*line).to_owned()));
        match found {
            Some(_) if is_same => {}
            Some(all) => {
                lines.insert(all.end - 1, wanted);
                lines.remove(inner);
            }
            None => {
                let marked = |marker: &str| std::iter::once(Cow::Owned(marker.to_owned()));
                let at = self.insertion.position(&lines);
                let all = marked(&self.begin).chain(wanted).chain(marked(&self.end));
                lines.insert(at, all);
            }
        }
        Ok(Edited { text: lines.to_text(), from, to })
    }

    fn aspect(&self) -> &'static str {
        "block"
    }

    fn is_secret(&self) -> bool {
        self.is_secret
    }
}

#[cfg(test)]
mod tests;
