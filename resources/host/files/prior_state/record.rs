//! Records the prior state of a path before a change, through the recorder of the run (decision 29).

use crate::host::files::content::new_content::{Content, Origin};
use crate::host::files::fault::{Fault, Why};
use crate::host::files::objects::attributes::{handle_of, path_of};
use crate::host::files::objects::xattr;
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::permit::Permit;
use crate::prior_state::{
    Loss, NotRecorded, PendingRecord, PriorContent, PriorEntry, PriorShape, PriorState,
    PriorStateRecorder,
};
use rustix::fs::FileType;
use std::cell::Cell;
use std::fmt;

/// The record for the next change, if the run has a recorder.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Noted<'a>(Option<(&'a dyn PriorStateRecorder, u64)>);

impl Noted<'_> {
    /// Completes the record with the result of the change: nothing stays recorded of a change that was not made.
    pub fn after<T>(self, done: Result<T, Fault>) -> Result<T, Fault> {
        if let Some((keeper, number)) = self.0 {
            keeper.settle(number, !matches!(done, Err(Fault { touched: false, .. })));
        }
        done
    }
}

/// A record for the next change that may not be durable yet. The change may be prepared; `wait` comes before it.
#[must_use]
pub struct PendingNote<'a> {
    noted: Noted<'a>,
    pending: Cell<Option<PendingRecord>>,
}

impl PendingNote<'_> {
    /// Waits until the record is durable.
    ///
    /// # Errors
    ///
    /// If the recording fails, nothing may be changed at the path.
    pub fn wait(&self) -> Result<(), Fault> {
        self.pending.take().map_or(Ok(()), PendingRecord::wait).map_err(Fault::refused)
    }

    /// Completes the record with the result of the change.
    pub fn after<T>(self, done: Result<T, Fault>) -> Result<T, Fault> {
        self.noted.after(done)
    }
}

impl fmt::Debug for PendingNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingNote").field(&self.noted).finish()
    }
}

impl<'a> From<Noted<'a>> for PendingNote<'a> {
    fn from(noted: Noted<'a>) -> Self {
        Self { noted, pending: Cell::new(None) }
    }
}

impl Entry<'_> {
    /// Records the examined object, if the run has a recorder.
    ///
    /// # Errors
    ///
    /// If the recording fails, nothing may be changed at the path.
    pub fn note<'p>(
        &self,
        permit: &'p Permit,
        found: Option<&EntryStat>,
        losing: Loss<'_>,
    ) -> Result<Noted<'p>, Fault> {
        let Some(keeper) = permit.keeper() else { return Ok(Noted(None)) };
        permit.check()?;
        let former = self.former(found, losing, keeper)?;
        match keeper.keep(self.path, former, losing) {
            Ok(number) => Ok(Noted(Some((keeper, number)))),
            Err(failure) => Err(Fault::refused(failure)),
        }
    }

    /// Begins to record the examined object, if the run has a recorder: the sync of the record and that of the staged
    /// file run at the same time.
    ///
    /// # Errors
    ///
    /// If the recording fails, nothing may be changed at the path.
    pub fn begin_note<'p>(
        &self,
        permit: &'p Permit,
        found: Option<&EntryStat>,
        losing: Loss<'_>,
    ) -> Result<PendingNote<'p>, Fault> {
        let Some(keeper) = permit.keeper() else { return Ok(Noted(None).into()) };
        permit.check()?;
        let former = self.former(found, losing, keeper)?;
        let pending = keeper.begin_keep(self.path, former, losing).map_err(Fault::refused)?;
        let noted = Noted(Some((keeper, pending.number())));
        Ok(PendingNote { noted, pending: Cell::new(Some(pending)) })
    }

    fn former(
        &self,
        found: Option<&EntryStat>,
        losing: Loss<'_>,
        keeper: &dyn PriorStateRecorder,
    ) -> Result<PriorState, Fault> {
        Ok(match found {
            Some(found) => PriorState::Thing(thing(self, found, losing, keeper.largest())?),
            None => PriorState::Nothing,
        })
    }
}

fn thing(
    spot: &Entry<'_>,
    found: &EntryStat,
    losing: Loss<'_>,
    largest: u64,
) -> Result<PriorEntry, Fault> {
    let has_extended =
        losing.content && matches!(found.kind, FileType::RegularFile | FileType::Directory);
    let extended = if has_extended {
        xattr::read(&path_of(&handle_of(spot, found)?), losing.secret)
    } else {
        Vec::new()
    };
    let shape = match found.kind {
        FileType::RegularFile => {
            PriorShape::File(found.size, content(spot, found, losing, largest)?)
        }
        FileType::Directory => PriorShape::Directory,
        FileType::Symlink => PriorShape::Link(spot.target()?),
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => PriorShape::Other,
    };
    let enclosure = spot.enclosure()?;
    Ok(PriorEntry { shape, mode: found.mode, uid: found.uid, gid: found.gid, extended, enclosure })
}

fn content(
    spot: &Entry<'_>,
    found: &EntryStat,
    losing: Loss<'_>,
    largest: u64,
) -> Result<PriorContent, Fault> {
    if !losing.content {
        return Ok(PriorContent::NotRecorded(NotRecorded::Same));
    }
    if losing.secret {
        return Ok(PriorContent::NotRecorded(NotRecorded::Secret));
    }
    let mut content = Content::default();
    content.push(Origin::at(spot, found));
    let at_most = usize::try_from(largest).unwrap_or(usize::MAX);
    match content.bytes(at_most) {
        Ok(Some(bytes)) => Ok(PriorContent::Bytes(bytes)),
        Ok(None) => Ok(PriorContent::NotRecorded(NotRecorded::Large)),
        Err(fault) if matches!(fault.why, Why::Moved | Why::Revoked) => Err(fault),
        // An unreadable content cannot be recorded, which must not prevent the declared change.
        Err(_) => Ok(PriorContent::NotRecorded(NotRecorded::Unreadable)),
    }
}

/// Returns true if the mode denies others to read the file: the file is then sensitive, whatever is declared
/// (S-19).
#[must_use]
pub fn denies_others(mode: u32) -> bool {
    mode & 0o004 == 0
}

/// Returns true if a mode gives the group a right that others do not have.
#[must_use]
pub const fn grants_group_more(mode: u32) -> bool {
    (mode >> 3) & !mode & 0o007 != 0
}
