//! Inspection of files, directories and links.

use super::{Field, Inspected, Inspector, secret_name, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::host::files::{AccountKind, Fault, Files, account_name, denies_others};
use crate::parts::field_reader::normal_path;
use crate::parts::file_values::octal_mode;
use rustix::fs::FileType;

pub(super) const INSPECTOR: Inspector = Inspector { kind: "file", one, all: None };

/// The folder beside the graph for contents that are no short text: it has the path of each file again.
pub const SOURCES: &str = "files";

/// The size limit in bytes of a shown content.
const LARGEST: usize = 64 * 1024;

fn one<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let Some(path) = normal_path(name) else {
            let what = "expected an absolute path without ..";
            return Err(Failure::new(what).hint("for example /etc/ssh/sshd_config"));
        };
        inspect(host.files(), &path).map_err(|fault| host.files().failure(fault, &path))
    })
}

fn inspect(files: &Files, path: &std::path::Path) -> Result<Option<Inspected>, Fault> {
    let Some(spot) = files.open_entry(path)? else { return Ok(None) };
    let Some(seen) = spot.look()? else { return Ok(None) };
    let shown = path.display().to_string();
    let mut fields = Vec::new();
    let account = |kind, number| account_name(kind, number);
    match seen.kind {
        FileType::Symlink => {
            let target = String::from_utf8_lossy(&spot.target()?).into_owned();
            return Ok(Some(Inspected::new(shown, vec![text("symlink", target)])));
        }
        FileType::Directory => {}
        FileType::RegularFile if denies_others(seen.mode) => {
            fields.push(("content", Field::Secret(secret_name("file", &shown, "content"))));
        }
        FileType::RegularFile => {
            let bytes = spot.content(&seen, LARGEST)?;
            fields.push(match bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
                Some(content) => text("content", content),
                // The user copies the file beside the graph.
                None => text("source", format!("{SOURCES}{shown}")),
            });
        }
        _ => {
            let what = "expected a file, a directory or a link, found another object";
            return Err(Fault::refused(Failure::new(what)));
        }
    }
    fields.push(text("owner", account(AccountKind::User, seen.uid)));
    fields.push(text("group", account(AccountKind::Group, seen.gid)));
    fields.push(text("mode", octal_mode(seen.mode)));
    fields.extend(crate::kinds::file::inspect_extended(&spot.extended(&seen)?));
    let is_directory = seen.kind == FileType::Directory;
    if fields.iter().any(|(_, field)| matches!(field, Field::Secret(_))) {
        fields.push(("sensitive", Field::Shown(Value::Bool(true))));
    }
    let name = if is_directory && shown != "/" { format!("{shown}/") } else { shown };
    Ok(Some(Inspected::new(name, fields)))
}
