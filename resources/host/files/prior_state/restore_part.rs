//! Restores a part of a text file: reverses recorded edits and leaves all that others have written since.

use crate::host::files::Files;
use crate::host::files::content::new_content::Content;
use crate::host::files::content::write::Draft;
use crate::host::files::fault::{Fault, said};
use crate::host::files::paths::entry::Entry;
use crate::host::files::prior_state::enclosure::RestoredDirectories;
use crate::host::files::prior_state::restore::{Done, is_secret, refused};
use crate::permit::Permit;
use crate::prior_state::{Loss, PriorEdit, PriorState};
use crate::reversed_edits::reverse_edits;
use rustix::fs::FileType;
use std::path::Path;

/// The size limit of a file with edits in bytes.
const LARGEST: usize = 4 << 20;

impl Files {
    /// Reverses the edits of a file, which are ordered from the last one to the first one. `former` is the state before
    /// the first edit: a file that the edits have created is removed if nothing else is in it. A path that has no
    /// regular file now gets its former state as a whole. Owner, group and mode stay.
    ///
    /// # Errors
    ///
    /// Fails as [`Files::restore`] does, and if others have changed the lines of an edit.
    pub fn restore_part(
        &self,
        permit: &Permit,
        (path, former): (&Path, &PriorState),
        edits: &[PriorEdit],
        restored: &mut RestoredDirectories,
    ) -> Result<Done, Fault> {
        self.attempt((path, former), |spot| {
            self.restore_part_at(permit, spot, (former, edits), &mut *restored)
        })
    }

    fn restore_part_at(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        (former, edits): (&PriorState, &[PriorEdit]),
        restored: &mut RestoredDirectories,
    ) -> Result<Done, Fault> {
        let found = spot.look()?;
        let Some(seen) = found.filter(|seen| seen.kind == FileType::RegularFile) else {
            return self.restore_at(permit, spot, (former, restored));
        };
        let Some(present) = spot.content(&seen, LARGEST)? else {
            return Err(refused(spot, "undo", "the file exceeds 4 MiB"));
        };
        let Some(text) = reverse_edits(&present, edits) else {
            let trouble =
                said("undo", spot.path(), "the edited lines were changed by others since").hint(
                    "edit the file by hand; `steadfast history RESOURCE` shows the former lines",
                );
            return Err(Fault::refused(trouble));
        };
        match former {
            PriorState::Nothing if text.is_empty() => {
                return self.restore_at(permit, spot, (former, restored));
            }
            _ if text == present => return Ok(Vec::new()),
            PriorState::Nothing => self.guard_way(spot)?,
            PriorState::Thing(thing) => self.guard_enclosure(spot, thing, restored)?,
        }
        self.guard_file(spot, None)?;
        let (content, secret) = (Content::of(&text), is_secret(Some(&seen)));
        let draft = Draft {
            content: &content,
            owner: Some(seen.uid),
            group: Some(seen.gid),
            mode: seen.mode,
            instead_of: Some(&seen),
            acceptance: None,
            extended: None,
            sensitive: secret,
        };
        let edited = Some(text.as_slice());
        let losing = Loss { content: true, secret, purged: false, edited, what: "content" };
        let noted = spot.note(permit, Some(&seen), losing)?;
        noted.after(self.put(permit, spot, &draft))?;
        Ok(vec!["content"])
    }
}
