//! The footprint of a resource: everything that its declaration says about the host, in one value.

use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::fields::field_values::Invalid;
use crate::removal::Removal;
use crate::transaction::Grouping;
use crate::watch_source::WatchSource;
use std::path::{Path, PathBuf};

/// All that a resource declares about itself, without examining the host.
///
/// A footprint is computed on demand and never stored, because it takes more memory than the resource.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    /// The objects that the resource writes.
    pub claims: Vec<Claim>,
    /// The objects that the resource offers: automatic edges lead from this resource to those that require them.
    pub provides: Vec<HostObject>,
    /// The objects that the resource requires: automatic edges lead from their providers to this resource.
    pub requires: Vec<Need>,
    /// The sources of the resource's events; empty if nothing can cause drift.
    pub watch: Vec<WatchSource>,
    /// The watched files that a guard command reads, for display; `watch` contains them too.
    pub guard_watches: Vec<PathBuf>,
    /// The paths, besides the claimed ones, whose changes alter the result of the check. The list includes the
    /// contents of directories, and links are followed.
    pub reads: Vec<PathBuf>,
    /// The absolute paths, besides the claimed ones, that the resource reads or runs and that no other user may be
    /// able to change (S-11).
    pub trusts: Vec<PathBuf>,
    /// The directory whose undeclared entries the resource manages or removes: the claims of others below that
    /// directory matter.
    pub purge_root: Option<PathBuf>,
    /// The directory in which the resource leaves alone what other resources claim: the claims of others below that
    /// directory matter. A [`Footprint::purge_root`] is such a directory too.
    pub spares_below: Option<PathBuf>,
    /// The directory that the resource closes to other users.
    pub closed_directory: Option<ClosedDirectory>,
    /// The declared owner of the claimed file, by name or number: edits of the file respect it.
    pub file_owner: Option<String>,
    /// The state of the claimed path once the resource is as declared.
    pub path_after_apply: PathAfter,
    /// The fields that declare the resource absent, if the resource can be removed (B-17).
    pub removal: Option<Removal>,
    /// Warnings about fields that are valid and most likely mistaken.
    pub warnings: Vec<Invalid>,
    /// The key and parts for a common transaction with other resources; none for a resource that runs alone.
    /// Resources with equal keys must have equal traits.
    pub grouping: Option<Grouping>,
    /// Check and apply use nothing of the host except files, through [`crate::Host::files`]. A plan may then do
    /// both in an overlay ([`crate::host::Overlay`]), which writes nothing to the host.
    pub uses_only_files: bool,
}

impl Footprint {
    /// Makes the footprint of a resource that writes the whole object at a path and nothing else.
    #[must_use]
    pub fn of_file(path: &Path) -> Self {
        let path = path.to_owned();
        Self {
            claims: vec![
                Claim::path(path.clone()),
                Claim::exclusive(HostObject::Content(path.clone())),
            ],
            provides: HostObject::unit_of(&path)
                .into_iter()
                .chain([HostObject::Path(path.clone())])
                .collect(),
            requires: path
                .parent()
                .map(|parent| Need::path(parent, "contains the file"))
                .into_iter()
                .collect(),
            path_after_apply: PathAfter::File,
            watch: vec![WatchSource::Path { path, below: false }],
            uses_only_files: true,
            ..Self::default()
        }
    }

    /// Makes the footprint of a resource that edits one part of a text file and leaves the rest to others.
    #[must_use]
    pub fn of_part(path: &Path, part: HostObject) -> Self {
        let owned = path.to_owned();
        Self {
            claims: vec![Claim::shared(HostObject::Content(owned.clone())), Claim::exclusive(part)],
            requires: vec![Need::path(path, "contains the edited text")],
            watch: vec![WatchSource::Path { path: owned, below: false }],
            uses_only_files: true,
            ..Self::default()
        }
    }

    /// Unites two footprints. The result uses only files if both do; single values come from the first footprint
    /// that has them.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        append_new(&mut self.claims, other.claims);
        append_new(&mut self.provides, other.provides);
        append_new(&mut self.requires, other.requires);
        append_new(&mut self.watch, other.watch);
        append_new(&mut self.guard_watches, other.guard_watches);
        append_new(&mut self.reads, other.reads);
        append_new(&mut self.trusts, other.trusts);
        self.warnings.append(&mut other.warnings);
        self.purge_root = self.purge_root.or(other.purge_root);
        self.spares_below = self.spares_below.or(other.spares_below);
        self.closed_directory = self.closed_directory.or(other.closed_directory);
        self.file_owner = self.file_owner.or(other.file_owner);
        if self.path_after_apply == PathAfter::Other {
            self.path_after_apply = other.path_after_apply;
        }
        self.removal = self.removal.or(other.removal);
        self.grouping = self.grouping.or(other.grouping);
        self.uses_only_files &= other.uses_only_files;
        self
    }

    /// Returns true if the resource makes at least one of its claimed objects exist. A resource without claims
    /// creates something, as far as anyone knows.
    #[must_use]
    pub fn creates(&self) -> bool {
        self.claims.is_empty() || self.claims.iter().any(|claim| claim.creates)
    }

    /// Returns the claimed paths.
    pub fn claimed_paths(&self) -> impl Iterator<Item = &Path> {
        self.claims.iter().filter_map(Claim::as_path)
    }
}

/// A directory that a resource declares with a mode that does not let others enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedDirectory {
    /// The path.
    pub path: PathBuf,
    /// The declared owner, by name or number.
    pub owner: Option<String>,
}

/// The state of a path after an apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathAfter {
    /// The path does not exist.
    Nothing,
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link with this target.
    Link(PathBuf),
    /// An object that no path leads through, or an unknown state.
    #[default]
    Other,
}

fn append_new<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !all.contains(&item) {
            all.push(item);
        }
    }
}
