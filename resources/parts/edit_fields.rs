//! The fields that all kinds of edits of a text file share.

use super::field_reader::FieldReader;
use super::file_values::HASH;
use super::text_edit::{Editor, TextEdit};
use super::text_lines::{Insertion, compile_pattern};
use super::validate_command::ValidateCommand;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType};
use crate::fields::field_values::MaybeSecret;
use crate::fields::field_values::{Invalid, Value};
use crate::removal::Removal;
use crate::resource::Resource;
use crate::secrets::secret_text::Secret;
use crate::values::sent_values::{SendSpec, SentValue};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) const PATH: FieldSpec = FieldSpec::new(
    "path",
    FieldType::Text,
    "Absolute path of the edited file. Default: the name. Everything outside the edited part stays byte for byte.",
).role(FieldRole::Path).mode(FieldMode::Static)
.example("/etc/ssh/sshd_config");
/// The values that an edit sends.
pub(crate) const EDIT_SENDS: &[SendSpec] =
    &[SendSpec::new("path", FieldType::Text, "The path of the edited file."), HASH];
pub(crate) const FILE: FieldSpec =
    FieldSpec::new("file", FieldType::Text, "Another name of `path`, as in mgmt.")
        .known_at_load()
        .example("/etc/ssh/sshd_config")
        .conflicts_with(&["path"]);
pub(crate) const STATE: FieldSpec = FieldSpec::new(
    "state",
    FieldType::Choice(&["exists", "absent"]),
    "absent: the part is not in the file.",
)
.known_at_load()
.default("exists");
pub(crate) const CREATE: FieldSpec = FieldSpec::new(
    "create",
    FieldType::Bool,
    "Creates a missing file with mode 0644, or 0600 for a secret. Otherwise a missing file is a failure.",
).receives(Receives::Shown)
.default("false");
/// The map form of `validate`.
pub(crate) const VALIDATE_PARTS: &[(&str, &str)] =
    &[("args", "validate"), ("in_place", "in_place")];
pub(crate) const VALIDATE: FieldSpec = FieldSpec::new(
    "validate",
    FieldType::Texts,
    "Command that must accept the new file first, as a string or a list: visudo -cf %s. %s is the path of the staged file. Timeout: one minute. In place: {args: [nginx, -t], in_place: true}.",
).receives(Receives::Shown).mode(FieldMode::Argv(""))
.parts(VALIDATE_PARTS)
.example("visudo -cf %s");
pub(crate) const IN_PLACE: FieldSpec = FieldSpec::new(
    "in_place",
    FieldType::Bool,
    "Runs validate in a private mount namespace in which the new file stands at its final path; %s is that path then, and may be omitted. Needs root, and directories that no other user can change.",
).receives(Receives::Shown)
.default("false");
pub(crate) const SENSITIVE: FieldSpec = FieldSpec::new(
    "sensitive",
    FieldType::Bool,
    "Hides the part and the file in differences, messages and the history. Default: true for a received secret.",
).receives(Receives::Shown);
pub(crate) const AFTER: FieldSpec = FieldSpec::new(
    "insert_after",
    FieldType::Text,
    "Place of a new part: behind the last line that matches this regular expression; EOF: at the end. Without a match: at the end.",
).receives(Receives::Shown).mode(FieldMode::Value)
.default("EOF")
.example("^Include")
.conflicts_with(&["insert_before"]);
pub(crate) const BEFORE: FieldSpec = FieldSpec::new(
    "insert_before",
    FieldType::Text,
    "Place of a new part: before the last line that matches this regular expression; BOF: at the start. Without a match: at the end.",
).receives(Receives::Shown).mode(FieldMode::Value)
.example("^Match");

/// The values of the shared fields.
#[derive(Debug)]
pub(crate) struct EditFields {
    pub(crate) path: PathBuf,
    pub(crate) is_present: bool,
    create: bool,
    validate: ValidateCommand,
    pub(crate) is_sensitive: bool,
    pub(crate) warnings: Vec<Invalid>,
    /// The keys down to an edited value; empty for every other part.
    pub(crate) keys: Vec<String>,
}

impl EditFields {
    /// Takes the shared fields.
    pub(crate) fn read(reader: &mut FieldReader, name: &str) -> Self {
        let field = if reader.fields.has("file") { "file" } else { "path" };
        let path = reader.path(field, name);
        let validate = read_validate(reader);
        Self {
            path,
            is_present: reader.is_present(),
            create: reader.fields.bool("create").unwrap_or(false),
            validate,
            is_sensitive: reader.fields.bool("sensitive").unwrap_or(false),
            warnings: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Takes a text that may be secret. A secret text makes the resource sensitive.
    pub(crate) fn secret_text(
        &mut self,
        reader: &mut FieldReader,
        field: &'static str,
    ) -> Option<Secret> {
        match reader.maybe_secret(field)? {
            MaybeSecret::Shown(text) => Some(Secret::from(text)),
            MaybeSecret::Secret(secret) => {
                self.is_sensitive = true;
                Some(secret)
            }
            MaybeSecret::Sealed(_) => None,
        }
    }

    /// Returns the fields that declare the part absent, without those that identify the part.
    pub(crate) fn removal(&self) -> Option<Removal> {
        if !self.is_present {
            return None;
        }
        let text = |text: &str| Value::Text(text.to_owned());
        let removal = Removal::new().with("path", text(self.path.to_str()?));
        let removal = removal.with("state", text("absent"));
        Some(if self.is_sensitive { removal.with("sensitive", Value::Bool(true)) } else { removal })
    }

    /// Makes the resource.
    pub(crate) fn into_resource(
        self,
        part: String,
        editor: impl Editor + 'static,
        removal: Option<Removal>,
    ) -> Arc<dyn Resource> {
        let mode = if self.is_sensitive { 0o600 } else { 0o644 };
        // An absent part of a missing file is as declared, and nothing is created for it.
        let creates = self.create || !self.is_present;
        let path = SentValue::Shown(Value::Text(self.path.display().to_string()));
        let edit = TextEdit::new(self.path, part, Arc::new(editor));
        Arc::new(TextEdit {
            create: creates.then_some(mode),
            writes: self.is_present,
            validate: self.validate,
            removal,
            keys: self.keys,
            warnings: self.warnings,
            sent: vec![("path", path)],
            ..edit
        })
    }
}

/// Takes the place of a new part.
pub(crate) fn read_insertion(reader: &mut FieldReader) -> Insertion {
    let (after, before) = (reader.text("insert_after"), reader.text("insert_before"));
    let mut pattern = |field, text: &str| match compile_pattern(field, text) {
        Ok(pattern) => Some(pattern),
        Err(problem) => {
            reader.reject(problem);
            None
        }
    };
    match (after.as_deref(), before.as_deref()) {
        (None | Some("EOF"), None) => Insertion::End,
        (_, Some("BOF")) => Insertion::Start,
        (_, Some(text)) => {
            pattern("insert_before", text).map(Insertion::Before).unwrap_or_default()
        }
        (Some(text), None) => {
            pattern("insert_after", text).map(Insertion::After).unwrap_or_default()
        }
    }
}

/// Takes the command that must accept the new file.
fn read_validate(reader: &mut FieldReader) -> ValidateCommand {
    let in_place = reader.fields.bool("in_place").unwrap_or_default();
    let Some(mut argv) = reader.fields.texts("validate") else {
        let hint = "for example validate: sshd -t";
        reader.require(!in_place, "in_place", ("there is no `validate` to run in place", hint));
        return ValidateCommand::NONE;
    };
    // A single text is split at white space and read by no shell.
    if let [line] = argv.as_slice() {
        argv = line.split_whitespace().map(str::to_owned).collect();
    }
    let is_plain = argv.iter().all(|word| !word.contains('\0'));
    let hint = "omit the character";
    reader.require(is_plain, "validate", ("an argument cannot contain a NUL character", hint));
    if in_place {
        return ValidateCommand::new(argv, true);
    }
    let words: Vec<&String> = argv.iter().skip(1).filter(|word| word.contains("%s")).collect();
    let is_argument = |word: &str| word.matches("%s").count() == 1 && word.ends_with("%s");
    let what = "validate needs %s, the path of the staged file, once and at the end of an argument";
    let hint = "for example visudo -cf %s, or [sshd, -t, -f, \"%s\"]";
    reader.require(
        words.len() == 1 && words.iter().all(|word| is_argument(word)),
        "validate",
        (what, hint),
    );
    ValidateCommand::new(argv, false)
}
