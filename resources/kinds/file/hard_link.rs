//! A hard link: another name of an existing file.

use crate::check_request::Answer;
use crate::dependency::Need;
use crate::failure::Failure;
use crate::fields::field_values::{Fields, Invalid, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::host::files::{Fault, Files, is_protected_path, said};
use crate::parts::{FieldReader, Managed, ValueSet, WriteFailure};
use crate::permit::Permit;
use crate::prior_state::{FieldValues, Loss};
use crate::removal::Removal;
use crate::resource::Resource;
use crate::watch_source::WatchSource;
use rustix::fs::FileType;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A hard link as declared.
#[derive(Debug)]
struct HardLink {
    path: PathBuf,
    target: PathBuf,
    force: bool,
}

/// The fields that belong to the file behind the names.
const OF_THE_FILE: [&str; 16] = [
    "content",
    "symlink",
    "source",
    "fragments",
    "owner",
    "group",
    "mode",
    "acl",
    "xattrs",
    "capabilities",
    "recurse",
    "purge",
    "excludes",
    "validate",
    "in_place",
    "replace",
];

/// Builds the resource of a hard link from the fields of a file.
///
/// # Errors
///
/// Returns every problem of the fields.
pub(super) fn build(name: &str, fields: Fields) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    reader.exclude(&OF_THE_FILE, "belongs to the file that the hard link names");
    reader.exclude(&["dirname", "basename", "state", "backup"], "a hard link has a path only");
    let path = reader.path("path", name);
    let target = reader.path("hardlink", "/");
    let is_free = !is_protected_path(&path) && path != target;
    let problem = ("expected a path of its own", "for example /srv/second/name");
    reader.require(is_free, "path", problem);
    let force = reader.fields.bool("force").unwrap_or_default();
    let link = reader.finish(HardLink { path, target, force })?;
    Ok(Arc::new(Managed::new(link)))
}

impl HardLink {
    /// Returns the target if both names are one file; a description of another object; none without an object.
    fn found(&self, files: &Files) -> Result<Option<String>, Failure> {
        let look = || -> Result<Option<String>, Fault> {
            let Some(spot) = files.open_entry(&self.path)? else { return Ok(None) };
            let Some(seen) = spot.look()? else { return Ok(None) };
            let target =
                files.open_entry(&self.target)?.map(|spot| spot.look()).transpose()?.flatten();
            let is_same = target.is_some_and(|target| target.identity == seen.identity);
            Ok(Some(if is_same { self.wanted_text() } else { "another object".to_owned() }))
        };
        look().map_err(|fault| files.failure(fault, &self.path))
    }

    fn wanted_text(&self) -> String {
        self.target.display().to_string()
    }

    fn make(&self, files: &Files, permit: &Permit) -> Result<(), WriteFailure> {
        let make = || -> Result<(), Fault> {
            let Some(spot) = files.open_entry(&self.path)? else {
                return Err(Fault::refused(Files::no_directory(&self.path)));
            };
            let seen = spot.look()?;
            let refused = |why: &str, hint: &str| {
                Err(Fault::refused(said("link", &self.path, why).hint(hint)))
            };
            match &seen {
                Some(seen) if seen.kind != FileType::RegularFile => {
                    return refused("no regular file is there", "remove the object at the path");
                }
                Some(_) if !self.force => {
                    return refused("another file is there", "`force: true` replaces the file");
                }
                Some(_) | None => {}
            }
            let what = if seen.is_some() { "content" } else { "created" };
            let losing =
                Loss { content: seen.is_some(), secret: false, purged: false, edited: None, what };
            let noted = spot.note(permit, seen.as_ref(), losing)?;
            noted.after(files.put_hard_link(permit, &spot, &self.target, seen.as_ref()))
        };
        make().map_err(|fault| {
            let touched = fault.touched;
            WriteFailure { failure: files.failure(fault, &self.path), touched }
        })
    }
}

impl ValueSet for HardLink {
    fn wanted(&self) -> FieldValues {
        vec![("hardlink", Some(self.wanted_text()))]
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(async move { Ok(vec![("hardlink", self.found(host.files())?)]) })
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(async move { self.make(host.files(), permit) })
    }

    fn footprint(&self) -> Footprint {
        let mut own = Footprint::of_file(&self.path);
        own.requires.push(Need::path(self.target.clone(), "is the linked file"));
        own.watch.push(WatchSource::Path { path: self.target.clone(), below: false });
        own.reads.push(self.target.clone());
        let text = |text: String| Value::Text(text);
        let removal = Removal::new()
            .with("path", text(self.path.display().to_string()))
            .with("state", text("absent".to_owned()));
        Footprint { removal: Some(removal), ..own }
    }

    fn existence(&self) -> Option<&'static str> {
        Some("hardlink")
    }

    fn recorded_otherwise(&self) -> &'static [&'static str] {
        &["hardlink"]
    }
}
