//! Set-id bits and capabilities: they go only to programs whose content nobody else can have chosen.
//!
//! One rule decides for all ways: privileges go to an inode that this run has written itself, or to one that no
//! untrusted user could ever write or exchange as far as known. An undo gives them only together with a recorded
//! content, in a new inode.

use crate::host::files::Files;
use crate::host::files::fault::{Fault, Why, said};
use crate::host::files::objects::attributes::Attributes;
use crate::host::files::paths::entry::{Entry, EntryStat, SET_ID, SET_UID};
use crate::host::input_trust::Reader;
use crate::prior_state::PriorEntry;
use rustix::fs::FileType;

/// The attribute with the capabilities of a program.
const CAPABILITIES: &[u8] = b"security.capability";

impl Files {
    /// Rejects set-id bits or capabilities for a file whose content another user can have chosen: somebody besides root
    /// and the trusted owner can or could write the file, or put another one in its place.
    pub fn guard_privileges(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        trusted: Option<u32>,
    ) -> Result<(), Fault> {
        if !self.is_root() || found.kind == FileType::Directory {
            return Ok(());
        }
        let Some(doubt) = self.doubt_of_program(spot, found, trusted)? else { return Ok(()) };
        let why = "others can have chosen the program that would get these rights";
        let hint = format!(
            "declare its content, or check it and put a copy in its place ({doubt}); or force: true"
        );
        Err(Fault::refused(said("give rights to", spot.path(), why).hint(hint)))
    }

    /// Returns the reason that another user can have chosen the content of a program.
    fn doubt_of_program(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        trusted: Option<u32>,
    ) -> Result<Option<String>, Fault> {
        let reader = Reader::here().on_behalf_of(trusted);
        let doubt = reader.untrusted_on_the_way(spot.path());
        if doubt.is_some() {
            return Ok(doubt);
        }
        if self.is_marked_open(spot, found) {
            return Ok(Some("others could write it, and may have it open".to_owned()));
        }
        let above = spot.directory_seen()?.identity;
        let owner = trusted.unwrap_or(0);
        let was_exchangeable = self.is_older_than_takeover(&spot.directory, above, spot.name)
            || self.leads_through_takeover(spot.path)
            || self.is_older_than_handover(&spot.directory, above, (spot.name, owner))
            || self.leads_through_handover(spot.path, owner);
        Ok(was_exchangeable.then(|| "others could write a directory above it".to_owned()))
    }

    /// Rejects an undo that gives a stranger's file to another user together with set-id bits.
    pub(in crate::host::files) fn guard_set_id(
        &self,
        spot: &Entry<'_>,
        found: &EntryStat,
        wanted: Attributes,
    ) -> Result<(), Fault> {
        let lends = wanted.mode.is_some_and(|mode| mode & SET_ID != 0);
        let is_file = found.kind != FileType::Directory;
        if !lends || !is_file || !self.leaves_stranger(found, wanted.owner) {
            return Ok(());
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

    /// Returns the set-id bits that an undo of attributes does not give back: the file got its content from anybody
    /// since.
    pub(in crate::host::files) fn withheld_bits(
        &self,
        found: &EntryStat,
        wanted: Attributes,
    ) -> u32 {
        let mode = wanted.mode.unwrap_or_default();
        // Without the right of the group to execute, the group's bit gives no rights.
        let privileges = if mode & 0o010 == 0 { SET_UID } else { SET_ID };
        let changes_hands = wanted.owner.is_some() || wanted.group.is_some();
        let gets = mode & privileges & if changes_hands { SET_ID } else { !found.mode };
        if self.is_root() && found.kind == FileType::RegularFile { gets } else { 0 }
    }

    /// Returns true if the restoration of a recorded file gives it privileges that the present one does not have, or
    /// if others may have the present one open: the recorded content then goes into a new inode.
    pub(in crate::host::files) fn needs_new_inode(
        &self,
        spot: &Entry<'_>,
        thing: &PriorEntry,
        there: &EntryStat,
    ) -> Result<bool, Fault> {
        if self.leaves_stranger(there, Some(thing.uid)) || self.is_marked_open(spot, there) {
            return Ok(true);
        }
        let is_same = (thing.mode, thing.uid, thing.gid) == (there.mode, there.uid, there.gid);
        if thing.mode & SET_ID != 0 && !is_same {
            return Ok(true);
        }
        let Some(recorded) = capabilities_of(&thing.extended) else { return Ok(false) };
        Ok(capabilities_of(&spot.extended(there)?) != Some(recorded))
    }
}

/// Makes the fault of an undo that restored everything but privileges.
pub(in crate::host::files) fn withheld(spot: &Entry<'_>, mode: u32, touched: bool) -> Fault {
    let why = "its content was not recorded";
    let hint = format!("check the program, and then set the mode {mode:05o} by hand");
    let failure = said("put back the set-id bits of", spot.path(), why).hint(hint);
    Fault { why: Why::Withheld(failure), touched }
}

fn capabilities_of(extended: &[(Vec<u8>, Vec<u8>)]) -> Option<&[u8]> {
    let found = extended.iter().find(|(name, _)| name == CAPABILITIES);
    found.map(|(_, value)| value.as_slice())
}
