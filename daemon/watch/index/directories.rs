//! The watched directories, by number and by identity.

use super::route::Directory;
use super::watch_index::WatchIndex;
use crate::watch::backend::DirectoryId;
use crate::watch::filesystem::Identity;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

impl WatchIndex {
    /// Returns the directory with this identity if it is watched, under any name.
    pub(in crate::watch) fn recognise(
        &mut self,
        identity: Identity,
        path: &Path,
    ) -> Option<DirectoryId> {
        let directory = *self.identities.get(&identity)?;
        let known = self.directories.get_mut(&directory)?;
        if known.path != path {
            path.clone_into(&mut known.path);
        }
        Some(directory)
    }

    pub(in crate::watch) fn add_directory(
        &mut self,
        identity: Identity,
        path: &Path,
    ) -> DirectoryId {
        let id = self.next_directory();
        let path = path.to_owned();
        let (steps, ends) = (HashMap::new(), Vec::new());
        self.directories.insert(id, Directory { path, identity, routes: 0, steps, ends });
        self.identities.insert(identity, id);
        id
    }

    /// Removes a directory from the index; the caller ends its watch.
    pub(in crate::watch) fn remove_directory(&mut self, id: DirectoryId) -> Option<Directory> {
        let directory = self.directories.remove(&id)?;
        if self.identities.get(&directory.identity) == Some(&id) {
            self.identities.remove(&directory.identity);
        }
        Some(directory)
    }

    /// Returns the entries of watched directories that are among these paths.
    pub(in crate::watch) fn watched_entries(
        &self,
        points: &BTreeSet<PathBuf>,
    ) -> Vec<(DirectoryId, Vec<u8>)> {
        if points.is_empty() {
            return Vec::new();
        }
        let below = |directory: &Path| -> Vec<Vec<u8>> {
            let inside = points.iter().filter(|point| point.parent() == Some(directory));
            inside.filter_map(|point| Some(point.file_name()?.as_bytes().to_vec())).collect()
        };
        let entries = self
            .directories
            .iter()
            .flat_map(|(id, directory)| below(&directory.path).into_iter().map(|name| (*id, name)));
        entries.collect()
    }
}
