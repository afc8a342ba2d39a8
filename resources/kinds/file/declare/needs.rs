//! The objects that a file offers to others, and its needs: its directory, its sources and its owners.

use crate::dependency::{HostObject, Need};
use crate::kinds::file::File;
use crate::kinds::file::Shape;
use crate::kinds::file::declare::content::Body;
use std::path::PathBuf;

impl File {
    pub(in crate::kinds::file) fn tokens(&self) -> Vec<HostObject> {
        let is_there =
            matches!(self.shape, Shape::Regular(_) | Shape::Directory(_) | Shape::Link(_));
        // The removal of a tree comes before everything that is declared below, also before further removals.
        let is_tree_removed = matches!(self.shape, Shape::Absent) && self.force;
        let path = (is_there || is_tree_removed).then(|| HostObject::Path(self.path.clone()));
        path.into_iter().chain(HostObject::unit_of(&self.path)).collect()
    }

    /// Returns the paths of the sources.
    pub(in crate::kinds::file) fn copied(&self) -> &[PathBuf] {
        match &self.shape {
            Shape::Regular(Body::Source(path)) | Shape::Directory(Some(path)) => {
                std::slice::from_ref(path)
            }
            Shape::Regular(Body::Fragments(paths)) => paths,
            Shape::Regular(_)
            | Shape::Directory(None)
            | Shape::Link(_)
            | Shape::Absent
            | Shape::IfThere { .. } => &[],
        }
    }

    /// Returns the paths that no other user may be able to change: the sources, and the validation program.
    pub(in crate::kinds::file) fn trusted(&self) -> Vec<PathBuf> {
        // The declared owner may change the copy anyway.
        let copied = if self.owner.is_some() { &[] } else { self.copied() };
        let program = self.rare().validate.program().map(PathBuf::from);
        copied.iter().cloned().chain(program.filter(|program| program.is_absolute())).collect()
    }

    pub(in crate::kinds::file) fn needed(&self) -> Vec<Need> {
        let parent = self.path.parent().filter(|parent| parent.parent().is_some());
        let mut needs: Vec<Need> =
            parent.map(|parent| Need::path(parent, "its directory")).into_iter().collect();
        match &self.shape {
            Shape::Regular(Body::Source(path)) => needs.push(Need::path(path, "its source")),
            Shape::Regular(Body::Fragments(paths)) => {
                needs.extend(paths.iter().map(|path| Need::tree(path, "its fragments")));
            }
            Shape::Directory(Some(path)) => needs.push(Need::tree(path, "its source")),
            Shape::Absent => {
                let ended = HostObject::ended_mount(&self.path);
                needs.push(Need::exact(ended, "is unmounted before its directory is removed"));
            }
            Shape::Regular(_) | Shape::Directory(None) | Shape::Link(_) | Shape::IfThere { .. } => {
            }
        }
        needs.extend(self.owner.iter().filter_map(|name| Need::user(name, "its owner")));
        needs.extend(self.group.iter().filter_map(|name| Need::group(name, "its group")));
        let rare = self.rare();
        let validator = rare.validate.program().filter(|program| program.starts_with('/'));
        needs.extend(validator.map(|program| Need::path(program, "is the validate command")));
        needs.extend(rare.backup.iter().map(|path| Need::path(path, "is the backup directory")));
        needs
    }
}
