//! Set-id bits and capabilities: they go only to programs whose content nobody else can have chosen.

use crate::host::files::Files;
use crate::host::files::fault::{Fault, said};
use crate::host::files::objects::attributes::Attributes;
use crate::host::files::paths::entry::{Entry, EntryStat, SET_ID};
use crate::host::input_trust::Reader;
use rustix::fs::FileType;

impl Files {
    /// Rejects set-id bits or capabilities for a file whose content another user can have chosen: somebody besides root
    /// and the trusted owner can write the file, or put another one in its place.
    pub fn guard_privileges(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        trusted: Option<u32>,
    ) -> Result<(), Fault> {
        if !self.is_root() || found.kind == FileType::Directory {
            return Ok(());
        }
        let reader = Reader::here().on_behalf_of(trusted);
        let Some(doubt) = reader.doubts_on_the_way(spot.path()) else { return Ok(()) };
        let why = "others can have chosen the program that would get these rights";
        let hint =
            format!("declare its content, or move it away from others ({doubt}); or force: true");
        Err(Fault::refused(said("give rights to", spot.path(), why).hint(hint)))
    }

    /// Rejects restoring set-id bits of a file whose content a stranger could have changed since, or that a stranger
    /// could have put at this name. The owner of a set-user-ID program may choose its content, but not that of a
    /// set-group-ID program.
    pub(in crate::host::files) fn guard_set_id(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        wanted: Attributes,
    ) -> Result<(), Fault> {
        let lends = wanted.mode.is_some_and(|mode| mode & SET_ID != 0);
        let is_file = found.kind != FileType::Directory;
        if !lends || !is_file {
            return Ok(());
        }
        if !self.leaves_stranger(found, wanted.owner) {
            let mode = wanted.mode.unwrap_or_default();
            let gets = mode & SET_ID & !found.mode != 0
                || wanted.owner.is_some()
                || wanted.group.is_some();
            let owner = wanted.owner.unwrap_or(found.uid);
            let trusted = (mode & 0o2000 == 0).then_some(owner);
            return if gets { self.guard_privileges(spot, found, trusted) } else { Ok(()) };
        }
        Err(Fault::refused(
            said(
                "put back",
                spot.path(),
                "the set-id bits would grant rights to content written by others",
            )
            .hint("check the content of the file, and set owner and mode manually"),
        ))
    }
}
