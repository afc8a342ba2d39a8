//! Recorded edits of text files: an undo reverses these and leaves the lines of others.

use super::{Entry, HistoryError, Reader};
use steadfast_resources::{PriorEdit, PriorState};

impl Reader {
    /// Returns the edits of one path from the last one to the first one; none unless all of these changes, which are in
    /// order, are edits with both contents.
    pub(super) fn edits(&self, entries: &[&Entry]) -> Result<Vec<PriorEdit>, HistoryError> {
        let mut edits = Vec::new();
        for entry in entries.iter().rev() {
            let before = match (&entry.former, &entry.content) {
                (PriorState::Nothing, _) => Vec::new(),
                (PriorState::Thing(_), Some(seal)) => self.content(seal)?,
                (PriorState::Thing(_), None) => return Ok(Vec::new()),
            };
            let Some(edited) = &entry.edited else { return Ok(Vec::new()) };
            edits.push(PriorEdit { before, after: self.content(edited)? });
        }
        Ok(edits)
    }
}
