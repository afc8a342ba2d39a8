//! Reads the fields of a cron job and reports every problem at once.

use super::block::BlockEditor;
use super::schedule::{SPANS, SPECIAL, cron_fields};
use super::{KnownUser, SPEC};
use crate::dependency::{HostObject, Need};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::parts::field_reader::{bounded, normal_path};
use crate::parts::file_values::HASH;
use crate::parts::{FieldReader, ParentDirectory, Sequence, TextEdit};
use crate::removal::Removal;
use crate::resource::Resource;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of the files.
const DIRECTORY: &str = "/etc/cron.d";

/// The length limit of a command in cron, in bytes.
const LONGEST: usize = 998;

pub(super) fn build(
    name: &str,
    fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let is_present = reader.is_present();
    let file = reader.text("file");
    let path = target(name, file.as_deref(), &mut reader);
    let removal = is_present.then(|| {
        // Stored removals have the order of the kind's fields.
        let removal = match &file {
            Some(file) => Removal::new().with("file", Value::Text(file.clone())),
            None => Removal::new(),
        };
        removal.with("state", Value::Text("absent".to_owned()))
    });
    if !is_present {
        let others: Vec<&'static str> =
            reader.fields.names().filter(|name| *name != "state").collect();
        reader.exclude(&others, "has no meaning with `state: absent`");
        let element = match file {
            Some(_) => shared(name, &path, None),
            None => own_file(&path, None)?,
        };
        return reader.finish(()).map(|()| Arc::new(Sequence::new(vec![element])) as _);
    }
    let (user, line, warnings) = job_line(&mut reader);
    let env = variables(&mut reader);
    reader.finish(())?;
    let text = format!("# Managed by steadfast: {}[{name}]\n{env}{line}\n", SPEC.kind);
    let element = match file {
        Some(_) => shared(name, &path, Some(line)),
        None => own_file(&path, Some(text.clone()))?,
    };
    let requires = [
        Need::user(&user, "runs the job"),
        Some(Need::exact(HostObject::Package("cron".to_owned()), "runs the job")),
    ];
    let extra =
        Footprint { requires: requires.into_iter().flatten().collect(), ..Footprint::default() };
    let mut elements: Vec<Arc<dyn Resource>> = vec![Arc::new(KnownUser(user))];
    if path.parent() == Some(Path::new(DIRECTORY)) {
        elements.push(Arc::new(ParentDirectory(PathBuf::from(DIRECTORY))));
    }
    elements.push(Arc::clone(&element));
    let last = elements.len().saturating_sub(1);
    let mut sequence = Sequence::new(elements).created_by(vec![last]);
    if file.is_none() {
        sequence = sequence.expecting_file(last, &text);
    }
    let sequence = sequence.sending("path", path.to_string_lossy()).reading(&[HASH], &element);
    Ok(Arc::new(sequence.removed_by(removal).with_warnings(warnings).with_extra(extra)))
}

/// Returns the file of the job. cron ignores files whose names have other characters, such as a dot.
fn target(name: &str, file: Option<&str>, reader: &mut FieldReader) -> PathBuf {
    let is_plain = |name: &str| {
        !name.is_empty()
            && name.len() <= 200
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let hint = "cron ignores files with other names";
    match file {
        None if !is_plain(name) => {
            let what = "expected letters, digits, - and _ in the name";
            reader.reject(Invalid::whole(what).hint(hint));
        }
        Some(_) if name.chars().any(char::is_control) || name.trim() != name || name.is_empty() => {
            reader.reject(Invalid::whole("expected a name of one line without blanks around it"));
        }
        None | Some(_) => {}
    }
    let text = file.unwrap_or(name);
    if !text.contains('/') {
        if file.is_some() && !is_plain(text) {
            let what = "expected letters, digits, - and _ in the name of the file";
            reader.reject(Invalid::field("file", what).hint(hint));
        }
        return Path::new(DIRECTORY).join(text);
    }
    normal_path(text).filter(|path| path.file_name().is_some()).unwrap_or_else(|| {
        let what = bounded(format!("expected a name or an absolute path without .., found {text}"));
        reader.reject(Invalid::field("file", what).hint("for example backups"));
        PathBuf::from("/etc/crontab")
    })
}

/// Returns the user and the line of the job.
fn job_line(reader: &mut FieldReader) -> (String, String, Vec<Invalid>) {
    let user = reader.text("user").unwrap_or_else(|| "root".to_owned());
    let is_user = |byte: u8| byte.is_ascii_graphic() && !b"#:/,\\\"'".contains(&byte);
    let is_valid = !user.is_empty()
        && !user.starts_with('-')
        && user.len() <= 256
        && user.bytes().all(is_user);
    reader.require(is_valid, "user", ("expected the name of a user", "for example www-data"));
    let mut times = Vec::new();
    for span in &SPANS {
        let text = reader.text(span.field).unwrap_or_else(|| "*".to_owned());
        if let Some(mistake) = span.mistake(&text) {
            let hint = match (span.with_short_names(&text), cron_fields(&text)) {
                (Some(short), _) => format!("write: {}: {short}", span.field),
                (None, Some(fields)) => format!("write: {fields}"),
                (None, None) => "see crontab(5)".to_owned(),
            };
            reader.reject(Invalid::field(span.field, mistake).hint(hint));
        }
        times.push(text);
    }
    let words: Vec<(&str, &str)> = SPECIAL.iter().map(|word| (*word, *word)).collect();
    let bare = reader
        .fields
        .shown_text("special")
        .filter(|text| SPECIAL.iter().any(|word| word.strip_prefix('@') == Some(*text)));
    let chosen = if let Some(text) = bare.map(str::to_owned) {
        let what = format!("expected @{text}, found {text}");
        reader.reject(Invalid::field("special", what).hint(format!("special: \"@{text}\"")));
        None
    } else {
        reader.choice("special", &words)
    };
    let time = match chosen {
        Some(word) => word.to_owned(),
        None => times.join(" "),
    };
    let job = reader.required_text("job");
    let job = job.trim();
    reader.require(
        !job.is_empty(),
        "job",
        ("expected a command, found none", "job: /usr/bin/true"),
    );
    let too_long = ("the command exceeds 998 bytes, the limit of cron", "put it into a script");
    reader.require(job.len() <= LONGEST, "job", too_long);
    let mut warnings = Vec::new();
    if job.replace("\\%", "").contains('%') {
        let what = "cron reads % as the end of the command: the rest is its input";
        warnings.push(Invalid::field("job", what).hint("write \\% for a percent sign"));
    }
    let line = format!("{time} {user} {job}");
    (user, line, warnings)
}

/// Returns the lines of the variables.
fn variables(reader: &mut FieldReader) -> String {
    let mut lines = String::new();
    for (name, value) in reader.fields.text_map("env").unwrap_or_default() {
        let is_name = |(at, byte): (usize, u8)| {
            byte == b'_' || byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit())
        };
        if name.is_empty() || !name.bytes().enumerate().all(is_name) {
            let what = bounded(format!("expected the name of a variable, found `{name}`"));
            reader.reject(Invalid::field("env", what).hint("for example MAILTO"));
        } else if value.chars().any(char::is_control) || value.len() > LONGEST {
            let what = bounded(format!("expected one line of at most 998 bytes in {name}"));
            reader.reject(Invalid::field("env", what));
        } else if let Some(value) = quoted(&value) {
            lines.push_str(&format!("{name}={value}\n"));
        } else {
            let what = bounded(format!("cron cannot hold the value of {name}, with both quotes"));
            reader.reject(Invalid::field("env", what).hint("set the variable in the job"));
        }
    }
    lines
}

/// Returns the value as cron reads it back: in quotes where cron would cut blanks or quotes. None if the value needs
/// quotes and has both.
fn quoted(value: &str) -> Option<String> {
    if !value.is_empty() && value.trim() == value && !value.starts_with(['"', '\'']) {
        return Some(value.to_owned());
    }
    let quote = ['"', '\''].into_iter().find(|quote| !value.contains(*quote))?;
    Some(format!("{quote}{value}{quote}"))
}

/// Makes the job in a file with other jobs.
fn shared(name: &str, path: &Path, line: Option<String>) -> Arc<dyn Resource> {
    let editor = Arc::new(BlockEditor { name: name.to_owned(), line });
    let edit = TextEdit::new(path.to_owned(), format!("job {name}"), editor);
    Arc::new(TextEdit { create: Some(0o644), ..edit })
}

/// Makes the file of one job; cron demands that root owns it and nobody else can write it.
fn own_file(path: &Path, content: Option<String>) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let name = path.to_string_lossy();
    let mut fields = Fields::default();
    fields.insert("path", Value::Text(name.clone().into_owned()));
    match content {
        Some(content) => {
            fields.insert("content", Value::Text(content));
            for (field, value) in [("owner", "0"), ("group", "0"), ("mode", "0644")] {
                fields.insert(field, Value::Text(value.to_owned()));
            }
        }
        None => fields.insert("state", Value::Text("absent".to_owned())),
    }
    let place = Place { base: PathBuf::from("/") };
    crate::kinds::file::SPEC.build_resource(&name, fields, &place)
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn values_are_quoted_only_where_cron_needs_it() {
        for (value, line) in [
            ("a b", Some("a b")),
            ("", Some("\"\"")),
            (" a", Some("\" a\"")),
            ("\"a\"", Some("'\"a\"'")),
            ("a\"b'", Some("a\"b'")),
            (" \"'", None),
        ] {
            assert_eq!(quoted(value).as_deref(), line, "{value:?}");
        }
    }
}
