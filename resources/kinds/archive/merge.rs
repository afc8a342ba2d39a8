//! Puts a new archive into a directory that has other objects, too: entries of the old archive go, and entries of the
//! new one are written. Objects that no archive brought stay.

use super::entries::{Destination, Visit, Visited, loss};
use super::record::{Record, Shape, Unpacked};
use crate::failure::Failure;
use crate::host::files::{Fault, Files, Reach, said};
use crate::parts::WriteFailure;
use crate::parts::tree_listing::list_tree;
use crate::permit::Permit;
use rustix::fs::FileType;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

impl Destination {
    /// Replaces the entries of an old archive with those of an unpacked tree. An old entry that was changed, and that
    /// the new archive lacks, stays.
    ///
    /// # Errors
    ///
    /// Fails without a change if an object that no archive brought is in the place of a new entry.
    pub(super) fn merge(
        &self,
        (files, permit): (&Files, &Permit),
        (old, new): (&Record, &Record),
        tree: &Path,
    ) -> Result<(), WriteFailure> {
        let outdated = self.find_outdated(files, old, new).map_err(WriteFailure::untouched)?;
        self.guard_merge(files, (old, new), &outdated).map_err(WriteFailure::untouched)?;
        let mut touched = false;
        // The entries of a directory come before the directory.
        for entry in outdated.iter().rev() {
            let removed = self.remove_outdated((files, permit), entry).map_err(|fault| {
                let touched = touched || fault.touched;
                WriteFailure { failure: files.failure(fault, &self.path), touched }
            });
            touched |= removed?;
        }
        let repaired = self.repair_entries((files, permit), new, tree);
        repaired.map_err(|failed| WriteFailure { touched: touched || failed.touched, ..failed })?;
        new.write((files, permit), &self.path).map_err(WriteFailure::touched)
    }

    /// Returns the entries of the old archive that are as they were unpacked, and that the new archive lacks.
    fn find_outdated<'r>(
        &self,
        files: &Files,
        old: &'r Record,
        new: &Record,
    ) -> Result<Vec<&'r Unpacked>, Failure> {
        let brought: HashSet<&Path> =
            new.entries.iter().map(|entry| entry.path.as_path()).collect();
        let mut outdated = HashSet::new();
        let visited = self.visit(files, old, &mut |visited| {
            let path = &visited.entry.path;
            if !brought.contains(path.as_path()) && self.is_removable(files, visited)? {
                outdated.insert(path.clone());
            }
            Ok(Visit::Unchanged)
        });
        visited.map_err(|fault| files.failure(fault, &self.path))?;
        Ok(old.entries.iter().filter(|entry| outdated.contains(&entry.path)).collect())
    }

    /// Returns true if the object is the recorded one; for a directory, its attributes do not matter.
    fn is_removable(&self, files: &Files, visited: &Visited<'_>) -> Result<bool, Fault> {
        if visited.entry.shape == Shape::Directory {
            return Ok(visited.found.is_some_and(|found| found.kind == FileType::Directory));
        }
        self.is_as_unpacked(files, visited, &CancellationToken::new())
    }

    /// Fails if an object that the old archive did not bring is in the place of a new entry.
    fn guard_merge(
        &self,
        files: &Files,
        (old, new): (&Record, &Record),
        outdated: &[&Unpacked],
    ) -> Result<(), Failure> {
        let recorded: HashMap<&Path, &Unpacked> =
            old.entries.iter().map(|entry| (entry.path.as_path(), entry)).collect();
        let outdated: HashSet<&Path> = outdated.iter().map(|entry| entry.path.as_path()).collect();
        let mut full = Vec::new();
        let visited = self.visit(files, new, &mut |visited| {
            let Some(found) = visited.found else { return Ok(Visit::Unchanged) };
            let path = visited.entry.path.as_path();
            let is_directory = found.kind == FileType::Directory;
            if is_directory && visited.entry.shape == Shape::Directory {
                return Ok(Visit::Unchanged);
            }
            if !recorded.contains_key(path)
                && !self.is_as_unpacked(files, visited, &CancellationToken::new())?
            {
                return Err(Fault::refused(foreign(&self.path.join(path))));
            }
            if is_directory {
                full.push(path.to_owned());
            }
            Ok(Visit::Unchanged)
        });
        visited.map_err(|fault| files.failure(fault, &self.path))?;
        for directory in full {
            let whole = self.path.join(&directory);
            let listed = list_tree(files, &whole)?.into_iter().map(|it| directory.join(it.path));
            let mut foreign_paths =
                listed.filter(|path: &PathBuf| !outdated.contains(path.as_path()));
            if let Some(path) = foreign_paths.next() {
                return Err(foreign(&self.path.join(path)));
            }
        }
        Ok(())
    }

    /// Removes an entry of the old archive, unless it has changed or is a directory with objects. Returns true if it
    /// was removed.
    fn remove_outdated(
        &self,
        (files, permit): (&Files, &Permit),
        entry: &Unpacked,
    ) -> Result<bool, Fault> {
        let path = self.path.join(&entry.path);
        let Some(spot) = files.open_entry(&path)? else { return Ok(false) };
        let Some(seen) = spot.look()? else { return Ok(false) };
        let visited = Visited { spot: &spot, found: Some(seen), entry };
        let is_full = seen.kind == FileType::Directory && !spot.is_empty()?;
        if is_full || !self.is_removable(files, &visited)? {
            return Ok(false);
        }
        let noted = spot.note(permit, Some(&seen), loss("removed", seen.mode))?;
        let removed = files.remove(permit, &spot, &seen, Reach::One);
        noted.after(removed).map(|()| true).map_err(|fault| fault.named(&path))
    }
}

fn foreign(path: &Path) -> Failure {
    let why = "an object that no archive brought is in the place of an entry";
    said("replace", path, why).hint("move the object away; the new archive has an entry there")
}
