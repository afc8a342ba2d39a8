//! Whole files of other kinds: the kind `file` holds them, with its safety, history and undo.

use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::resource::Resource;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file, link or absence that a kind manages as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    /// A regular file with this content and octal mode; the owner is the daemon's user.
    Content(&'a str, &'a str),
    /// A regular file with this content. A new file gets the mode 0644, and an existing one has its own.
    ContentAlone(&'a str),
    /// A symbolic link to this target.
    Link(&'a str),
    /// Nothing.
    Absent,
}

/// Builds the resource that manages the path.
///
/// # Errors
///
/// Returns the problems of the path.
pub(crate) fn managed_file(
    path: &Path,
    shape: Shape<'_>,
    validate: &[String],
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut fields = Fields::default();
    let text = |text: &str| Value::Text(text.to_owned());
    let Some(name) = path.to_str() else {
        return Err(vec![Invalid::whole("the path is not UTF-8")]);
    };
    match shape {
        Shape::Content(content, mode) => {
            fields.insert("path", text(name));
            fields.insert("content", text(content));
            fields.insert("mode", text(mode));
        }
        Shape::ContentAlone(content) => {
            fields.insert("path", text(name));
            fields.insert("content", text(content));
        }
        Shape::Link(target) => {
            fields.insert("path", text(name));
            fields.insert("symlink", text(target));
            fields.insert("force", Value::Bool(true));
        }
        Shape::Absent => {
            fields.insert("path", text(name));
            fields.insert("state", text("absent"));
        }
    }
    if !validate.is_empty() {
        fields.insert("validate", Value::Texts(validate.to_vec()));
    }
    crate::kinds::file::SPEC.build_resource(name, fields, &Place { base: PathBuf::from("/") })
}

/// Builds the resource that removes a directory with everything in it.
///
/// # Errors
///
/// Returns the problems of the path.
pub(crate) fn absent_tree(path: &Path) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut fields = Fields::default();
    let name = format!("{}/", path.display());
    fields.insert("path", Value::Text(name.clone()));
    fields.insert("state", Value::Text("absent".to_owned()));
    fields.insert("force", Value::Bool(true));
    crate::kinds::file::SPEC.build_resource(&name, fields, &Place { base: PathBuf::from("/") })
}
