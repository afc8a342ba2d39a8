//! The limits of an undo: the states that cannot be restored, or must not be.

use super::HistoryError;
use super::reader::{Entry, Reader};
use rusqlite::{OptionalExtension as _, params};
use std::os::unix::ffi::OsStrExt as _;
use steadfast_resources::host::files::SET_ID;
use steadfast_resources::{NotRecorded, PriorContent, PriorEntry, PriorShape, PriorState};

impl Reader {
    /// Returns a reason against the restoration of owner and mode alone: another resource has written a secret into the
    /// file since, and the former rights may let other users read it.
    pub(super) fn secret_since(
        &self,
        former: &PriorState,
        (resource, entries): (&str, &[&Entry]),
    ) -> Result<Option<String>, HistoryError> {
        let Some(first) = entries.first() else { return Ok(None) };
        if opens_directory(former) {
            return self.secret_below(resource, first);
        }
        if !is_without_content(former) {
            return Ok(None);
        }
        let columns = &self.columns;
        let sql = format!(
            "SELECT {columns} FROM entry WHERE path = ?1 AND number > ?2 AND resource <> ?3 ORDER BY number"
        );
        let path = first.path.as_os_str().as_bytes();
        let later = self.read(&sql, params![path, first.number, resource])?;
        let secret = later.iter().rev().find(|entry| is_secret(&entry.former));
        Ok(secret.map(|entry| {
            let (number, by) = (entry.number, &entry.resource);
            format!("{by} has changed a secret content since (change {number}); undo that first")
        }))
    }

    /// Returns a reason against opening a directory: another resource has written a secret below it since.
    fn secret_below(&self, resource: &str, first: &Entry) -> Result<Option<String>, HistoryError> {
        let mut from = first.path.as_os_str().as_bytes().to_vec();
        let mut to = from.clone();
        from.push(b'/');
        // The byte after the slash ends the range of paths below.
        to.push(b'0');
        let sql = "SELECT entry.resource, secret.number FROM secret JOIN entry USING (number)
            WHERE secret.path > ?1 AND secret.path < ?2 AND secret.number > ?3
            AND entry.resource <> ?4 ORDER BY secret.number LIMIT 1";
        let found: Option<(String, u64)> = self
            .connection
            .query_row(sql, params![from, to, first.number, resource], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(|error| self.refuse(&error))?;
        Ok(found.map(|(by, number)| {
            format!("{by} has written a secret below since (change {number}); undo that first")
        }))
    }
}

/// Returns true for a directory that others could enter or change.
fn opens_directory(former: &PriorState) -> bool {
    match former {
        PriorState::Thing(PriorEntry { shape: PriorShape::Directory, mode, uid, .. }) => {
            *uid != 0 || mode & 0o077 != 0
        }
        PriorState::Thing(_) | PriorState::Nothing => false,
    }
}

fn content_of(former: &PriorState) -> Option<&PriorContent> {
    match former {
        PriorState::Thing(PriorEntry { shape: PriorShape::File(_, content), .. }) => Some(content),
        PriorState::Thing(_) | PriorState::Nothing => None,
    }
}

fn is_without_content(former: &PriorState) -> bool {
    matches!(content_of(former), Some(PriorContent::NotRecorded(NotRecorded::Same)))
}

fn is_secret(former: &PriorState) -> bool {
    matches!(content_of(former), Some(PriorContent::NotRecorded(NotRecorded::Secret)))
}

/// Returns the reason why a state cannot be restored, if there is one.
pub(super) fn why_not(former: &PriorState, entries: &[&Entry]) -> Option<String> {
    let PriorState::Thing(thing) = former else { return None };
    let why = match thing.shape {
        PriorShape::Other => "it was a socket, fifo or device",
        PriorShape::File(_, PriorContent::NotRecorded(NotRecorded::Same)) => return None,
        PriorShape::File(_, PriorContent::NotRecorded(why)) => describe_missing_content(why),
        PriorShape::File(_, PriorContent::Bytes(_))
        | PriorShape::Directory
        | PriorShape::Link(_) => return None,
    };
    let number = entries.first().map_or(0, |first| first.number);
    Some(format!("{why} (change {number})"))
}

/// Returns the set-id bits that a file had lost when its content was recorded.
pub(super) fn lost_bits(before: &PriorEntry, held: &PriorEntry) -> u32 {
    let is_same = (before.uid, before.gid) == (held.uid, held.gid);
    before.mode & SET_ID & if is_same { !held.mode } else { SET_ID }
}

/// Describes the reason why a content was not recorded.
#[must_use]
pub fn describe_missing_content(why: NotRecorded) -> &'static str {
    match why {
        NotRecorded::Same => "the content was unchanged",
        NotRecorded::Secret => "the content was not recorded: sensitive, or not readable by others",
        NotRecorded::Large => {
            "the content was not recorded: too large for the history or its free space"
        }
        NotRecorded::Unreadable => "the content was not recorded: unreadable",
    }
}
