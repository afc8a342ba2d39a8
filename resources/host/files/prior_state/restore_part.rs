//! Restores a part of a text file: reverses recorded edits and leaves all that others have written since.

use crate::host::files::Files;
use crate::host::files::content::former_file::{FormerFile, LateContent};
use crate::host::files::content::new_content::Content;
use crate::host::files::content::write::{Draft, Put};
use crate::host::files::fault::{Fault, Why, said};
use crate::host::files::paths::entry::{Entry, EntryStat};
use crate::host::files::prior_state::enclosure::RestoredDirectories;
use crate::host::files::prior_state::restore::{Done, is_secret, refused};
use crate::permit::Permit;
use crate::prior_state::{Loss, PriorEdit, PriorState};
use crate::reversed_edits::reverse_edits;
use rustix::fs::FileType;
use std::path::Path;

/// The size limit of a file with edits in bytes.
const LARGEST: usize = 4 << 20;

/// The number of attempts on a file that changes meanwhile.
const ATTEMPTS: usize = 3;

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
            let failure =
                said("undo", spot.path(), "the edited lines were changed by others since").hint(
                    "edit the file by hand; `steadfast history RESOURCE` shows the former lines",
                );
            return Err(Fault::refused(failure));
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
        let secret = is_secret(Some(&seen));
        let edited = Some(text.as_slice());
        let losing = Loss { content: true, secret, purged: false, edited, what: "content" };
        let replaced = FormerFile::open(self, spot, &seen)?;
        let noted = spot.note(permit, Some(&seen), losing)?;
        noted.after(self.put_text(permit, spot, (&seen, &text)))?;
        if let Some(replaced) = replaced {
            self.keep_late_lines(permit, spot, (replaced, &present));
        }
        Ok(vec!["content"])
    }

    /// Adds the lines that another program has appended to the replaced file. The undo stands already: what cannot be
    /// added is lost.
    fn keep_late_lines(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        (replaced, base): (FormerFile, &[u8]),
    ) {
        let found = replaced.found();
        let Ok(LateContent::Whole(late)) = replaced.late_content(base, LARGEST) else { return };
        let Some(lines) = late.strip_prefix(base).filter(|_| base.ends_with(b"\n")) else { return };
        for _ in 0..ATTEMPTS {
            let Ok(Some(seen)) = spot.look() else { return };
            if !FormerFile::may_go_into(&found, &seen) {
                return;
            }
            let Ok(Some(present)) = spot.content(&seen, LARGEST) else { return };
            let text = [present.as_slice(), lines].concat();
            match self.put_text(permit, spot, (&seen, &text)) {
                Err(fault) if matches!(fault.why, Why::Moved) => {}
                _ => return,
            }
        }
    }

    /// Replaces the text of a file. Owner, group and mode stay.
    fn put_text(
        &self,
        permit: &Permit,
        spot: &Entry<'_>,
        (seen, text): (&EntryStat, &[u8]),
    ) -> Result<Put, Fault> {
        let draft = Draft {
            content: &Content::of(text),
            owner: Some(seen.uid),
            group: Some(seen.gid),
            mode: self.mode_once_replaced(spot, seen, (seen.mode, Some(seen.uid)))?,
            instead_of: Some(seen),
            acceptance: None,
            extended: None,
            sensitive: is_secret(Some(seen)),
            whole_only: true,
            record: None,
        };
        self.put(permit, spot, &draft)
    }
}
