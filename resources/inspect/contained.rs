//! The proof of an inspection, and helpers for kinds of which one file holds several objects.

use super::{Field, Inspected, secret_name};
use crate::change::CheckResult;
use crate::check_request::CheckRequest;
use crate::failure::Failure;
use crate::fields::field_values::{Fields, Place};
use crate::host::Host;
use crate::host::files::denies_others;
use crate::kind_set::KindSet;
use crate::parts::field_reader::{bounded, normal_path};
use crate::parts::on_thread;
use crate::parts::text_edit::text_of;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

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
        let seen = look().map_err(|fault| host.files().failure(fault, &path))?;
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

/// The judgement of a declaration without secrets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The plan is empty.
    Converged,
    /// The plan is not empty, for this reason.
    Differs(String),
    /// The kind rejects the declaration, for this reason.
    Rejected(String),
}

/// Judges a declaration by the plan of its kind.
pub(super) async fn judge(host: &Host, kind: &str, object: &Inspected) -> Judgement {
    let mut fields = Fields::default();
    for (name, value) in &object.fields {
        match value {
            Field::Shown(value) => fields.insert(name, value.clone()),
            Field::Secret(_) => return Judgement::Differs("a value is secret".to_owned()),
        }
    }
    let Some(spec) = KindSet::of_this_build().find(kind) else {
        return Judgement::Rejected(format!("unknown kind {kind}"));
    };
    let place = Place { base: PathBuf::from("/") };
    let resource = match spec.build_resource(&object.name, fields, &place) {
        Ok(resource) => resource,
        Err(invalid) => {
            let first = invalid.into_iter().next().map(|it| it.what);
            return Judgement::Rejected(first.unwrap_or_default());
        }
    };
    match resource.check(host, CheckRequest::default()).await {
        CheckResult::Same => Judgement::Converged,
        CheckResult::Differs(change) => {
            let aspects = change.differences.iter().map(|difference| difference.aspect);
            let aspects = aspects.collect::<Vec<&str>>().join(", ");
            Judgement::Differs(format!("a plan changes: {aspects}"))
        }
        CheckResult::Unknown(failure) => Judgement::Differs(failure.what),
    }
}

/// Returns true if the plan of a declaration without secrets is empty.
pub(super) async fn is_converged(host: &Host, kind: &str, object: &Inspected) -> bool {
    judge(host, kind, object).await == Judgement::Converged
}

/// Judges the declarations of a foreign file. Each that differs gets a note; a rejected one is omitted, and noted too.
///
/// # Errors
///
/// Fails if the kind rejects all of them.
pub(super) async fn nearest(
    host: &Host,
    (kind, path): (&str, &Path),
    all: Vec<Inspected>,
) -> Result<Vec<Inspected>, Failure> {
    let (mut near, mut rejected) = (Vec::<Inspected>::new(), Vec::new());
    for object in all {
        let notes = object.note.clone();
        match judge(host, kind, &object).await {
            Judgement::Converged => near.push(object),
            Judgement::Differs(why) => {
                let notes: Vec<String> = std::iter::once(why).chain(notes).collect();
                near.push(object.noting(notes.join("; ")));
            }
            Judgement::Rejected(why) => rejected.push(why),
        }
    }
    let Some(why) = rejected.first() else { return Ok(near) };
    let Some(first) = near.first_mut() else {
        let what = bounded(format!("{} cannot be declared: {why}", path.display()));
        return Err(Failure::new(what).hint("`steadfast inspect file` prints it as a file"));
    };
    let omitted = format!("{} more cannot be declared: {why}", rejected.len());
    let notes: Vec<String> = first.note.take().into_iter().chain([omitted]).collect();
    first.note = Some(notes.join("; "));
    Ok(near)
}

/// Reads a text file that the printed graph shows; none without the file.
///
/// # Errors
///
/// Fails for a file that others cannot read: its text may be a secret.
pub(super) fn public_text(host: &Host, path: &Path) -> Result<Option<String>, Failure> {
    let Some(text) = text_of(host.files(), path)? else { return Ok(None) };
    let look = || host.files().open_entry(path)?.map(|entry| entry.look()).transpose();
    let seen = look().map_err(|fault| host.files().failure(fault, path))?.flatten();
    if seen.is_some_and(|seen| denies_others(seen.mode)) {
        let what = bounded(format!("{} is private, and the kind shows its text", path.display()));
        return Err(Failure::new(what).hint("`steadfast inspect file` prints it with its mode"));
    }
    Ok(Some(text))
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
        read().map_err(|fault| files.failure(fault, &folder))
    })
    .await?
}
