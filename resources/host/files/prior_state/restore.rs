//! Restores a prior state: content, owner, group, mode and extended attributes, or the absence of the object.

use crate::host::files::Files;
use crate::host::files::content::new_content::Content;
use crate::host::files::content::write::Draft;
use crate::host::files::fault::{Fault, Why, said};
use crate::host::files::objects::attributes::{Attributes, handle_of, path_of};
use crate::host::files::objects::create::NewLists;
use crate::host::files::objects::remove::Reach;
use crate::host::files::objects::xattr;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::files::prior_state::enclosure::RestoredDirectories;
use crate::host::files::prior_state::record::denies_others;
use crate::host::files::takeover::marks::is_below_mark;
use crate::host::files::takeover::privileges;
use crate::permit::Permit;
use crate::prior_state::{Loss, PriorContent, PriorEntry, PriorShape, PriorState};
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The number of attempts while another process changes the path.
const ATTEMPTS: usize = 3;

/// The steps that restored a state; empty if the state was already there.
pub(super) type Done = Vec<&'static str>;

impl Files {
    /// Restores the prior state of a path. The present state is recorded first, as for any change. `restored` has
    /// the directories that the same undo has restored before: the path must lead through these.
    ///
    /// # Errors
    ///
    /// Fails if the parent directory is missing or another one than the recorded one, if an object of an untrusted
    /// user must not be given these attributes, or if another process keeps changing the path.
    pub fn restore(
        &self,
        permit: &Permit,
        (path, former): (&Path, &PriorState),
        restored: &mut RestoredDirectories,
    ) -> Result<Done, Fault> {
        self.attempt((path, former), |spot| self.restore_at(permit, spot, (former, &mut *restored)))
    }

    /// Tries a restoration again while another process changes the path.
    pub(super) fn attempt(
        &self,
        (path, former): (&Path, &PriorState),
        mut restore: impl FnMut(&Entry<'_>) -> Result<Done, Fault>,
    ) -> Result<Done, Fault> {
        let mut tried = 1;
        loop {
            let result = match self.open_entry(path)? {
                Some(spot) => restore(&spot),
                None if *former == PriorState::Nothing => Ok(Vec::new()),
                None => Err(Fault::refused(Self::no_directory(path))),
            };
            match result {
                Err(fault)
                    if matches!(fault.why, Why::Moved) && !fault.touched && tried < ATTEMPTS =>
                {
                    tried += 1;
                }
                other => return other,
            }
        }
    }

    pub(super) fn restore_at(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        (former, restored): (&PriorState, &mut RestoredDirectories),
    ) -> Result<Done, Fault> {
        let found = spot.look()?;
        match (former, found) {
            (PriorState::Nothing, None) => Ok(Vec::new()),
            (PriorState::Nothing, Some(found)) => {
                self.guard_way(spot)?;
                self.take_away(permit, spot, &found)
            }
            (PriorState::Thing(thing), found) => {
                self.guard_enclosure(spot, thing, restored)?;
                self.bring_back(permit, spot, (thing, restored), found)
            }
        }
    }

    fn take_away(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        found: &EntryStat,
    ) -> Result<Done, Fault> {
        if found.kind == FileType::Directory && !spot.is_empty()? {
            return Err(refused(spot, "take away", "the directory is not empty"));
        }
        let noted = spot.note(permit, Some(found), losing(Some(found), "removed"))?;
        noted.after(self.remove(permit, spot, found, Reach::One))?;
        Ok(vec!["removed"])
    }

    fn bring_back(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        (thing, restored): (&PriorEntry, &mut RestoredDirectories),
        found: Option<EntryStat>,
    ) -> Result<Done, Fault> {
        let there = found.as_ref();
        let is = |kind| there.is_some_and(|seen| seen.kind == kind);
        let mut done = Vec::new();
        match &thing.shape {
            PriorShape::File(_, PriorContent::NotRecorded(_)) if is(FileType::RegularFile) => {}
            PriorShape::File(_, PriorContent::NotRecorded(_)) => {
                return Err(refused(spot, "put back", "the content was not recorded"));
            }
            PriorShape::File(_, PriorContent::Bytes(bytes)) => {
                let content = Content::of(bytes);
                let is_taken = match there {
                    Some(seen) => self.needs_new_inode(spot, thing, seen)?,
                    None => false,
                };
                if !is(FileType::RegularFile) || is_taken || !holds(spot, there, &content)? {
                    self.make_way(permit, spot, there)?;
                    let still = there.filter(|seen| seen.kind != FileType::Directory);
                    self.put_file(permit, spot, thing, (&content, still))?;
                    return Ok(vec!["content"]);
                }
            }
            PriorShape::Directory if is(FileType::Directory) => {
                let Some(found) = there else { return Ok(Vec::new()) };
                let done = self.give_back(permit, spot, thing, found)?;
                restored.note(spot.path, found.identity);
                return Ok(done);
            }
            PriorShape::Directory => {
                if let Some(found) = there {
                    self.take_away(permit, spot, found)?;
                }
                let noted = spot.note(permit, None, losing(None, "created"))?;
                let made = noted.after(self.make_directory(
                    permit,
                    spot,
                    all_of(thing),
                    NewLists::Recorded(&thing.extended),
                ))?;
                restored.note(spot.path, made);
                return Ok(vec!["directory"]);
            }
            PriorShape::Link(target) => {
                if !is(FileType::Symlink) || spot.target()? != *target {
                    self.guard_link(spot, thing.uid)?;
                    self.make_way(permit, spot, there)?;
                    let still = there.filter(|seen| seen.kind != FileType::Directory);
                    let wanted = Attributes { mode: None, ..all_of(thing) };
                    let noted = spot.note(permit, still, losing(still, word(still, "symlink")))?;
                    let target = OsStr::from_bytes(target);
                    noted.after(self.put_link(permit, spot, target, (wanted, still)))?;
                    return Ok(vec!["link"]);
                }
            }
            PriorShape::Other => {
                return Err(refused(
                    spot,
                    "put back",
                    "sockets, fifos and devices are not recorded",
                ));
            }
        }
        if let Some(found) = there {
            done.extend(self.give_back(permit, spot, thing, found)?);
        }
        Ok(done)
    }

    /// Rejects the return of a link below a directory that other users could change: a new link would be followed, and
    /// its target can be their choice.
    fn guard_link(&self, spot: &Entry<'_>, owner: u32) -> Result<(), Fault> {
        if !self.is_root() || !is_below_mark(spot.path, owner) {
            return Ok(());
        }
        let why = "others could choose its target while a directory above was theirs";
        Err(Fault::refused(
            said("put back", spot.path(), why).hint("check the target, and make the link by hand"),
        ))
    }

    /// Removes a present directory, which cannot be replaced in one step.
    fn make_way(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        there: Option<&EntryStat>,
    ) -> Result<(), Fault> {
        match there {
            Some(found) if found.kind == FileType::Directory => {
                self.take_away(permit, spot, found).map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn put_file(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        thing: &PriorEntry,
        (content, instead_of): (&Content<'_>, Option<&EntryStat>),
    ) -> Result<(), Fault> {
        let is_closed = denies_others(thing.mode) || is_secret(instead_of);
        // A recorded content of a closed file shows that its declaration says `sensitive: false`.
        let secret = !denies_others(thing.mode) && is_secret(instead_of);
        let draft = Draft {
            content,
            owner: Some(thing.uid),
            group: Some(thing.gid),
            mode: thing.mode,
            instead_of,
            acceptance: None,
            extended: Some(&thing.extended),
            sensitive: is_closed,
            whole_only: false,
            record: None,
        };
        let what = word(instead_of, "content");
        let noted = spot.note(
            permit,
            instead_of,
            Loss { content: true, secret, purged: false, edited: None, what },
        )?;
        noted.after(self.put(permit, spot, &draft)).map(drop)
    }

    /// Restores owner, group and mode where they differ.
    fn give_back(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        thing: &PriorEntry,
        found: &EntryStat,
    ) -> Result<Done, Fault> {
        let owner = Some(thing.uid).filter(|uid| *uid != found.uid);
        let group = Some(thing.gid).filter(|gid| *gid != found.gid);
        let changes_hands = owner.is_some() || group.is_some();
        // A change of owner or group clears the set-id bits.
        let mode = Some(thing.mode).filter(|mode| *mode != found.mode || changes_hands);
        let mode = mode.filter(|_| found.kind != FileType::Symlink);
        if owner.is_none() && group.is_none() && mode.is_none() {
            return Ok(Vec::new());
        }
        let wanted = Attributes { owner, group, mode };
        self.guard_set_id(spot, found, wanted)?;
        let withheld = self.withheld_bits(found, wanted);
        let mode = mode.map(|mode| mode & !withheld);
        let mode = mode.filter(|mode| *mode != found.mode || changes_hands);
        if owner.is_none() && group.is_none() && mode.is_none() {
            return Err(privileges::withheld(spot, thing.mode, false));
        }
        let wanted = Attributes { owner, group, mode };
        let named = Attributes { owner: Some(thing.uid), ..wanted };
        self.guard_private(spot, found, named)?;
        self.guard_moved(spot, found, named)?;
        let words = [
            (owner.is_some(), "owner"),
            (group.is_some(), "group"),
            (mode.is_some_and(|mode| mode != found.mode), "mode"),
        ];
        let done: Done = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
        let (secret, what) = (is_secret(Some(found)), done.join(", "));
        let losing = Loss { content: false, secret, purged: false, edited: None, what: &what };
        let noted = spot.note(permit, Some(found), losing)?;
        let closed = list_to_restore(spot, thing, found)?;
        // Without the list, the group bits of its mode would be rights of the group.
        let first = closed.map_or(wanted, |_| wanted.without_group_rights());
        noted.after(self.set_attributes(permit, spot, found, first))?;
        if let Some(list) = closed {
            permit.check().map_err(|revoked| Fault::from(revoked).after(true))?;
            let now = spot.look().map_err(|fault| fault.after(true))?;
            let now = now.ok_or_else(|| Fault::moved().after(true))?;
            let handle = handle_of(spot, &now).map_err(|fault| fault.after(true))?;
            if now.identity != found.identity {
                return Err(Fault::moved().after(true));
            }
            xattr::set_list(&handle, list).map_err(|fault| fault.after(true))?;
        }
        if withheld != 0 {
            return Err(privileges::withheld(spot, thing.mode, true));
        }
        Ok(done)
    }
}

/// Returns the recorded access list of an object that has another one, or none, now.
fn list_to_restore<'a>(
    spot: &Entry<'_>,
    thing: &'a PriorEntry,
    found: &EntryStat,
) -> Result<Option<&'a [u8]>, Fault> {
    let Some(recorded) = xattr::recorded_list(&thing.extended) else { return Ok(None) };
    let handle = handle_of(spot, found)?;
    let now = xattr::access_list(&path_of(&handle));
    Ok((now.as_deref() != Some(recorded)).then_some(recorded))
}

fn holds(
    spot: &Entry<'_>,
    there: Option<&EntryStat>,
    content: &Content<'_>,
) -> Result<bool, Fault> {
    match there.filter(|seen| seen.size == content.size()) {
        Some(seen) => spot.holds(seen, content, &CancellationToken::new()),
        None => Ok(false),
    }
}

fn all_of(thing: &PriorEntry) -> Attributes {
    Attributes { owner: Some(thing.uid), group: Some(thing.gid), mode: Some(thing.mode) }
}

/// Returns the loss of a whole object.
fn losing<'a>(found: Option<&EntryStat>, what: &'a str) -> Loss<'a> {
    Loss { content: true, secret: is_secret(found), purged: false, edited: None, what }
}

pub(super) fn is_secret(found: Option<&EntryStat>) -> bool {
    found.is_some_and(|seen| seen.kind == FileType::RegularFile && denies_others(seen.mode))
}

fn word<'a>(found: Option<&EntryStat>, replaced: &'a str) -> &'a str {
    if found.is_some() { replaced } else { "created" }
}

pub(super) fn refused(spot: &Entry<'_>, doing: &str, why: &str) -> Fault {
    Fault::refused(said(doing, spot.path(), why))
}
