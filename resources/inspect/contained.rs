//! The proof of an inspection, and helpers for kinds of which one file holds several objects.

use super::{Field, Inspected, secret_name};
use crate::change::CheckResult;
use crate::failure::Failure;
use crate::host::Host;
use crate::host::files::denies_others;
use crate::kind::{Fields, Place};
use crate::kind_set::KindSet;
use crate::parts::field_reader::normal_path;
use crate::parts::on_thread;
use crate::parts::text_edit::text_of;
use crate::resource::CheckRequest;
use rustix::fs::FileType;
use std::path::PathBuf;

/// A text file that a user named.
pub(super) struct NamedFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// Other users cannot read the file: its values are secrets.
    pub(super) is_private: bool,
}

impl NamedFile {
    /// Reads a file; none if there is no file at the path.
    ///
    /// # Errors
    ///
    /// Fails if the name is no absolute path, or if the file cannot be read as text.
    pub(super) fn read(host: &Host, name: &str) -> Result<Option<Self>, Failure> {
        let Some(path) = normal_path(name) else {
            let what = "expected the absolute path of a file, without ..";
            return Err(Failure::new(what).hint("the objects of this kind are parts of a file"));
        };
        let Some(text) = text_of(host.files(), &path)? else { return Ok(None) };
        let look = || host.files().open_entry(&path)?.map(|entry| entry.look()).transpose();
        let seen = look().map_err(|fault| host.files().trouble(fault, &path))?;
        let is_private = seen.flatten().is_some_and(|seen| denies_others(seen.mode));
        Ok(Some(Self { path, text, is_private }))
    }

    /// Returns the path as text.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Keeps the declarations that are converged. The values of a private file become secrets.
    pub(super) async fn proven(
        &self,
        host: &Host,
        (kind, secret): (&str, &str),
        all: Vec<Inspected>,
    ) -> Vec<Inspected> {
        let mut proven = Vec::new();
        for mut object in all {
            if !is_converged(host, kind, &object).await {
                continue;
            }
            if self.is_private {
                hide(kind, secret, &mut object);
            }
            proven.push(object);
        }
        proven
    }
}

/// Replaces a value by the name of a secret.
fn hide(kind: &str, secret: &str, object: &mut Inspected) {
    let name = secret_name(kind, &object.name, secret);
    for (field, value) in &mut object.fields {
        if *field == secret {
            *value = Field::Secret(name.clone());
        }
    }
}

/// Returns true if the plan of a declaration without secrets is empty.
pub(super) async fn is_converged(host: &Host, kind: &str, object: &Inspected) -> bool {
    let mut fields = Fields::default();
    for (name, value) in &object.fields {
        match value {
            Field::Shown(value) => fields.insert(name, value.clone()),
            Field::Secret(_) => return false,
        }
    }
    let Some(spec) = KindSet::of_this_build().find(kind) else { return false };
    let place = Place { base: PathBuf::from("/") };
    match spec.build_resource(&object.name, fields, &place) {
        Ok(resource) => {
            matches!(resource.check(host, CheckRequest::default()).await, CheckResult::Same)
        }
        Err(_invalid) => false,
    }
}

/// Returns the names of the regular files in a folder that end so, sorted and without the end; none without the folder.
pub(super) async fn file_names(
    host: &Host,
    folder: &str,
    end: &str,
) -> Result<Vec<String>, Failure> {
    let (folder, end) = (PathBuf::from(folder), end.to_owned());
    on_thread(host, move |host| {
        let files = host.files();
        let read = || {
            let Some(origin) = files.origin(&folder)? else { return Ok(Vec::new()) };
            let branch = origin.branch()?;
            let mut names = Vec::new();
            for name in branch.names()? {
                let path = folder.join(&name);
                let seen = branch.open_entry(&path).look()?;
                let is_file = seen.is_some_and(|seen| seen.kind == FileType::RegularFile);
                let stem = name.to_str().and_then(|name| name.strip_suffix(&end));
                names.extend(stem.filter(|it| is_file && !it.starts_with('.')).map(str::to_owned));
            }
            Ok(names)
        };
        read().map_err(|fault| files.trouble(fault, &folder))
    })
    .await?
}
