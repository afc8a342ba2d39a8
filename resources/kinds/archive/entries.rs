//! Visits the entries of an unpacked archive in its directory: compares them, and repairs those that differ.
//!
//! Objects that the archive did not bring are left alone, and so is everything that another resource claims.

use super::record::{Record, Shape, Unpacked, sum_of};
use crate::failure::Failure;
use crate::host::files::{
    AccountKind, Attributes, Content, DirWalk, Draft, Entered, Entry, EntryStat, Fault, Files,
    NewLists, Reach, Why, denies_others, said,
};
use crate::host::wall;
use crate::parts::WriteFailure;
use crate::permit::Permit;
use crate::prior_state::Loss;
use rustix::fs::FileType;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// The files that were read and found as unpacked, with their states: their time of change is not the recorded one.
#[derive(Debug, Default)]
pub(super) struct KnownFiles(Mutex<HashMap<PathBuf, EntryStat>>);

/// The directory of an archive, with its declared attributes.
#[derive(Clone, Debug, Default)]
pub(super) struct Destination {
    pub(super) path: PathBuf,
    /// The owner of everything, by name or number; the recorded owners if none is declared.
    pub(super) owner: Option<String>,
    pub(super) group: Option<String>,
    /// The mode of the directory itself.
    pub(super) mode: Option<u32>,
    /// The paths below the directory that other resources claim.
    pub(super) claimed: BTreeSet<PathBuf>,
    pub(super) known: Arc<KnownFiles>,
}

/// The visited entry: its place, its present state and its recorded one.
pub(super) struct Visited<'a> {
    pub(super) spot: &'a Entry<'a>,
    pub(super) found: Option<EntryStat>,
    pub(super) entry: &'a Unpacked,
}

/// The result of a visit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Visit {
    Unchanged,
    Changed,
    /// The entry may not be changed, and nothing below it.
    Refused,
}

/// The entries below a directory of the tree.
enum Level {
    Open(DirWalk),
    /// The entries are not visited: the directory is missing, is claimed by another resource, is a mount point, or may
    /// not be changed.
    Skipped,
}

impl Destination {
    /// Returns the paths of the entries that differ from the record, below the directory. The entries of a missing
    /// directory are not listed.
    ///
    /// # Errors
    ///
    /// Fails if an entry cannot be examined, or if `cancel` is cancelled.
    pub(super) fn find_changed(
        &self,
        files: &Files,
        record: &Record,
        cancel: &CancellationToken,
    ) -> Result<Vec<PathBuf>, Failure> {
        let mut changed = Vec::new();
        self.visit(files, record, &mut |visited| {
            if !self.is_as_unpacked(files, visited, cancel)? {
                changed.push(visited.entry.path.clone());
            }
            Ok(Visit::Unchanged)
        })
        .map_err(|fault| files.failure(fault, &self.path))?;
        Ok(changed)
    }

    /// Writes the entries that differ from the record, from the unpacked tree in a private folder. An entry that may
    /// not be changed does not stop the repair of the others.
    ///
    /// # Errors
    ///
    /// Fails if an entry cannot be written; the first failure counts. The failure says whether anything was changed.
    pub(super) fn repair_entries(
        &self,
        (files, permit): (&Files, &Permit),
        record: &Record,
        tree: &Path,
    ) -> Result<(), WriteFailure> {
        let never = CancellationToken::new();
        let mut refused = Vec::new();
        let mut touched = false;
        let visited = self.visit(files, record, &mut |visited| {
            if self.is_as_unpacked(files, visited, &never)? {
                return Ok(Visit::Unchanged);
            }
            let fault = match self.repair((files, permit), visited, tree) {
                Ok(()) => {
                    touched = true;
                    return Ok(Visit::Changed);
                }
                Err(fault) => fault,
            };
            let Why::Refused(failure) = fault.why else { return Err(fault) };
            touched |= fault.touched;
            refused.push(failure);
            Ok(Visit::Refused)
        });
        let failed = visited.err().map(|fault| {
            touched |= fault.touched;
            files.failure(fault, &self.path)
        });
        let others = refused.len() + usize::from(failed.is_some());
        let Some(failure) = failed.or_else(|| refused.into_iter().next()) else { return Ok(()) };
        let what = match others - 1 {
            0 => failure.what,
            others => format!("{}\nentries with other failures: {others}", failure.what),
        };
        Err(WriteFailure { failure: Failure { what, ..failure }, touched })
    }

    /// Calls a function for each recorded entry.
    pub(super) fn visit(
        &self,
        files: &Files,
        record: &Record,
        visitor: &mut dyn FnMut(&Visited<'_>) -> Result<Visit, Fault>,
    ) -> Result<(), Fault> {
        let Some((top, below)) = record.entries.split_first() else { return Ok(()) };
        let Some(spot) = files.open_entry(&self.path)? else { return Ok(()) };
        let found = spot.look()?;
        let visit = visitor(&Visited { spot: &spot, found, entry: top })?;
        if visit == Visit::Refused {
            return Ok(());
        }
        let mut touched = visit == Visit::Changed;
        let now = spot.look()?.filter(|now| now.kind == FileType::Directory);
        let Some(now) = now else { return Ok(()) };
        let top = spot.branch(&now, false).map_err(|fault| fault.after(touched))?;
        let mut levels = vec![(PathBuf::new(), Level::Open(top))];
        for entry in below {
            let parent = entry.path.parent().unwrap_or_else(|| Path::new(""));
            levels.truncate(1 + levels.iter().rposition(|(path, _)| path == parent).unwrap_or(0));
            let Some((_, level)) = levels.last() else { return Ok(()) };
            let path = self.path.join(&entry.path);
            let inner = match level {
                Level::Open(_) if self.claimed.contains(&path) => Level::Skipped,
                Level::Open(directory) => {
                    let (changed, inner) = visit_entry(files, directory, (&path, entry), visitor)
                        .map_err(|fault| fault.named(&path).after(touched))?;
                    touched |= changed;
                    inner
                }
                Level::Skipped => Level::Skipped,
            };
            if entry.shape == Shape::Directory {
                levels.push((entry.path.clone(), inner));
            }
        }
        Ok(())
    }

    /// Returns true if the present object is the recorded one.
    pub(super) fn is_as_unpacked(
        &self,
        files: &Files,
        Visited { spot, found, entry }: &Visited<'_>,
        cancel: &CancellationToken,
    ) -> Result<bool, Fault> {
        let Some(found) = found else { return Ok(false) };
        let Attributes { owner, group, mode } = self.attributes(files, entry)?;
        let is_same_account = owner == Some(found.uid) && group == Some(found.gid);
        let has_mode = mode == Some(found.mode);
        match &entry.shape {
            Shape::Directory => {
                Ok(found.kind == FileType::Directory && is_same_account && has_mode)
            }
            Shape::Link(target) => {
                Ok(found.kind == FileType::Symlink && is_same_account && spot.target()? == *target)
            }
            Shape::File { size, changed, sha256 } => {
                let is_alike = found.kind == FileType::RegularFile
                    && is_same_account
                    && has_mode
                    && found.size == *size;
                if !is_alike {
                    return Ok(false);
                }
                if found.changed == *changed || self.known.knows(&entry.path, found) {
                    return Ok(true);
                }
                let is_equal = sum_of(files, spot, found, cancel)? == *sha256;
                if is_equal {
                    self.known.remember(&entry.path, found);
                }
                Ok(is_equal)
            }
        }
    }

    /// Returns the declared attributes of an entry; the recorded ones where none are declared.
    fn attributes(&self, files: &Files, entry: &Unpacked) -> Result<Attributes, Fault> {
        let number = |kind, name: &Option<String>| {
            let number = name.as_ref().map(|name| files.accounts().number(kind, name));
            number.transpose().map_err(Fault::refused)
        };
        let is_top = entry.path.as_os_str().is_empty();
        Ok(Attributes {
            owner: number(AccountKind::User, &self.owner)?.or(Some(entry.uid)),
            group: number(AccountKind::Group, &self.group)?.or(Some(entry.gid)),
            mode: self.mode.filter(|_| is_top).or(Some(entry.mode)),
        })
    }

    /// Makes an entry as it was unpacked.
    fn repair(
        &self,
        (files, permit): (&Files, &Permit),
        Visited { spot, found, entry }: &Visited<'_>,
        tree: &Path,
    ) -> Result<(), Fault> {
        let wanted = self.attributes(files, entry)?;
        let is_directory = |seen: &EntryStat| seen.kind == FileType::Directory;
        let mut found = *found;
        let mut cleared = false;
        // A full directory is never removed: it has objects that the archive did not bring.
        let is_other = found.as_ref().map(is_directory) != Some(entry.shape == Shape::Directory);
        if let Some(seen) = found.filter(|_| is_other) {
            if is_directory(&seen) && !spot.is_empty()? {
                let hint = "move the directory away; the archive has another object there";
                let why = "a directory with content is in the place of an entry";
                return Err(Fault::refused(said("replace", spot.path(), why).hint(hint)));
            }
            let noted = spot.note(permit, Some(&seen), loss("removed", seen.mode))?;
            noted.after(files.remove(permit, spot, &seen, Reach::One))?;
            (found, cleared) = (None, true);
        }
        let what = if found.is_some() { "content" } else { "created" };
        let secret_mode = found.map_or(entry.mode, |seen| seen.mode & entry.mode);
        let noted = spot.note(permit, found.as_ref(), loss(what, secret_mode));
        let noted = noted.map_err(|fault| fault.after(cleared))?;
        let made = match (&entry.shape, &found) {
            (Shape::Directory, Some(seen)) => guard_directory(files, spot, (seen, wanted))
                .and_then(|()| files.set_attributes(permit, spot, seen, differing(seen, wanted))),
            (Shape::Directory, None) => {
                files.make_directory(permit, spot, wanted, NewLists::Inherited).map(drop)
            }
            (Shape::Link(target), _) => {
                let wanted = Attributes { mode: None, ..wanted };
                let target = OsStr::from_bytes(target);
                files.put_link(permit, spot, target, (wanted, found.as_ref()))
            }
            (Shape::File { .. }, _) => {
                let from = tree.join(&entry.path);
                write_file((files, permit), (spot, found.as_ref()), &from, wanted)
            }
        };
        noted.after(made).map_err(|fault| fault.after(cleared))
    }
}

/// Visits one entry of an open directory. Returns true if the directory was changed, and the entries below.
fn visit_entry(
    files: &Files,
    directory: &DirWalk,
    (path, entry): (&Path, &Unpacked),
    visitor: &mut dyn FnMut(&Visited<'_>) -> Result<Visit, Fault>,
) -> Result<(bool, Level), Fault> {
    let spot = directory.open_entry(path);
    let found = spot.look()?;
    let visit = visitor(&Visited { spot: &spot, found, entry })?;
    if visit == Visit::Refused {
        return Ok((false, Level::Skipped));
    }
    let changed = visit == Visit::Changed;
    let finish = || -> Result<Level, Fault> {
        if changed {
            files.sync_branch(directory)?;
        }
        if entry.shape != Shape::Directory {
            return Ok(Level::Skipped);
        }
        let now = if changed { spot.look()? } else { found };
        let Some(now) = now.filter(|now| now.kind == FileType::Directory) else {
            return Ok(Level::Skipped);
        };
        Ok(match directory.enter(&spot, &now)? {
            Entered::Branch(inner) => Level::Open(inner),
            Entered::Mounted => Level::Skipped,
        })
    };
    finish().map(|level| (changed, level)).map_err(|fault| fault.after(changed))
}

/// Rejects a change of a directory's attributes if another user can have moved the directory to its name.
fn guard_directory(
    files: &Files,
    spot: &Entry<'_>,
    (seen, wanted): (&EntryStat, Attributes),
) -> Result<(), Fault> {
    let guarded = files.guard_private(spot, seen, wanted);
    guarded.and_then(|()| files.guard_moved(spot, seen, wanted)).map_err(|fault| match fault.why {
        Why::Refused(failure) => {
            Fault::refused(failure.hint("move the directory away, or change its owner by hand"))
        }
        why => Fault { why, ..fault },
    })
}

/// Returns the attributes that must change.
fn differing(seen: &EntryStat, wanted: Attributes) -> Attributes {
    Attributes {
        owner: wanted.owner.filter(|uid| *uid != seen.uid),
        group: wanted.group.filter(|gid| *gid != seen.gid),
        mode: wanted.mode,
    }
}

pub(super) fn loss(what: &str, mode: u32) -> Loss<'_> {
    Loss { content: true, secret: denies_others(mode), purged: false, edited: None, what }
}

fn write_file(
    (files, permit): (&Files, &Permit),
    (spot, found): (&Entry<'_>, Option<&EntryStat>),
    from: &Path,
    wanted: Attributes,
) -> Result<(), Fault> {
    let Some(origin) = files.origin(from)? else { return Err(Fault::moved()) };
    let mut content = Content::default();
    content.push(origin);
    let mode = wanted.mode.unwrap_or(0o600);
    let draft = Draft {
        owner: wanted.owner,
        group: wanted.group,
        mode,
        instead_of: found,
        sensitive: denies_others(mode),
        ..Draft::private(&content)
    };
    files.put(permit, spot, &draft).map(drop)
}

impl KnownFiles {
    fn knows(&self, path: &Path, found: &EntryStat) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path) == Some(found)
    }

    fn remember(&self, path: &Path, found: &EntryStat) {
        // A young state can still change without a new time of change.
        let age = wall().as_secs().cast_signed().saturating_sub(found.changed.0);
        if age > 1 {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(path.to_owned(), *found);
        }
    }
}
