//! Removal, and undo of the first unpacking: an unchanged directory is removed.

use super::described;
use super::entries::Destination;
use super::record::{RECORD, Record};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Fields;
use crate::host::Host;
use crate::host::files::Files;
use crate::kind::Restoring;
use crate::parts::guarded_removal::{RemovalGuard, guarded_removal};
use crate::parts::shell_words::shell_word;
use crate::parts::tree_listing::list_tree;
use crate::parts::{FieldReader, on_thread};
use crate::prior_state::FormerValue;
use crate::resource::Resource;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Builds the resource that removes what was unpacked.
///
/// # Errors
///
/// Fails if another archive was in the directory before.
pub(super) fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let archive = values.iter().find(|value| value.field == "archive");
    if archive.is_none_or(|value| value.before.is_some()) {
        let what = "the former archive was replaced and is not stored";
        return Err(Failure::new(what).hint("declare the former archive to unpack it again"));
    }
    let mut reader = FieldReader::new(Fields::default());
    let path = reader.path("path", name);
    let path = reader.finish(path).map_err(|_problems| {
        Failure::new("an undo needs the path as the name").hint("remove the directory by hand")
    })?;
    let by_hand = format!("rm -r {}", shell_word(&path.display().to_string()));
    let resource = remove_unchanged(&path)?;
    Ok(Restoring { resource, by_hand })
}

/// Builds the resource that removes a directory with what was unpacked, and fails if the directory has anything else.
///
/// # Errors
///
/// Fails if the path cannot be removed, for example because it is protected.
pub(super) fn remove_unchanged(path: &Path) -> Result<Arc<dyn Resource>, Failure> {
    guarded_removal(Unchanged(path.to_owned()), path)
}

/// The condition that a directory has what was unpacked, and nothing else.
#[derive(Debug)]
struct Unchanged(PathBuf);

impl RemovalGuard for Unchanged {
    fn guard<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<(), Failure>> {
        Box::pin(async move {
            let (path, cancel) = (self.0.clone(), cancel.clone());
            on_thread(host, move |host| guard_unchanged(host.files(), &path, &cancel)).await?
        })
    }
}

/// Fails unless the directory has exactly what was unpacked.
///
/// # Errors
///
/// The failure names the changed or added objects.
pub(super) fn guard_unchanged(
    files: &Files,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let refused = |why: String| {
        let hint = "compare it with the archive, and remove the directory by hand";
        Err(Failure::new(format!("the directory is not as it was unpacked\n{why}")).hint(hint))
    };
    let all = list_tree(files, path)?;
    if all.is_empty() {
        return Ok(());
    }
    let record = Record::read(files, path)?.filter(|record| !record.entries.is_empty());
    let Some(record) = record else {
        return refused(format!("its list of entries {RECORD} is missing"));
    };
    let directory = Destination { path: path.to_owned(), ..Destination::default() };
    let changed = directory.find_changed(files, &record, cancel)?;
    if !changed.is_empty() {
        return refused(described(&changed));
    }
    let own: HashSet<&Path> = record.entries.iter().map(|entry| entry.path.as_path()).collect();
    let added = all.into_iter().map(|listed| listed.path);
    let added = added.filter(|path| !own.contains(path.as_path()) && *path != Path::new(RECORD));
    let added: Vec<PathBuf> = added.collect();
    if added.is_empty() {
        return Ok(());
    }
    refused(described(&added).replace("changed:", "added:"))
}
