//! Access lists in the form of the kernel: the users and groups who may write.

use crate::host::files::paths::entry::EntryStat;
use std::collections::HashSet;

/// The bytes before the first entry, and those of one entry.
const HEADER: usize = 4;
const ENTRY: usize = 8;

/// The right to write, in an entry.
const WRITE: u16 = 2;

/// The number of an entry without an account.
const NOBODY: u32 = u32::MAX;

const USER: u16 = 0x02;
const OWNING_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// Returns true if a user besides root and the owner loses the right to write by the change of an access list. Without
/// a list, the mode has the rights.
pub(super) fn takes_write(found: &EntryStat, old: Option<&[u8]>, new: Option<&[u8]>) -> bool {
    let by_mode = || {
        let group = (found.mode & 0o020 != 0).then_some((OWNING_GROUP, NOBODY));
        let others = (found.mode & 0o002 != 0).then_some((OTHER, NOBODY));
        group.into_iter().chain(others).collect()
    };
    let before = old.map_or_else(by_mode, writers);
    let after = new.map_or_else(by_mode, writers);
    let is_untrusted = |entry: &&(u16, u32)| match **entry {
        (USER, uid) => uid != 0 && uid != found.uid,
        (OWNING_GROUP, _) => found.gid != 0,
        (_, number) => number != 0,
    };
    before.difference(&after).any(|entry| is_untrusted(&entry))
}

/// Returns the entries, by tag and number, that may write within the mask of the list.
fn writers(list: &[u8]) -> HashSet<(u16, u32)> {
    let entries = || list.get(HEADER..).unwrap_or_default().chunks_exact(ENTRY).map(entry);
    let mask = entries().find(|(tag, ..)| *tag == MASK).map_or(WRITE, |(_, rights, _)| rights);
    let may_write = |(tag, rights, _): &(u16, u16, u32)| match *tag {
        USER | OWNING_GROUP | GROUP => rights & mask & WRITE != 0,
        OTHER => rights & WRITE != 0,
        _ => false,
    };
    entries().filter(may_write).map(|(tag, _, number)| (tag, number)).collect()
}

fn entry(bytes: &[u8]) -> (u16, u16, u32) {
    let parts = bytes.split_first_chunk().and_then(|(tag, rest)| {
        let (rights, rest) = rest.split_first_chunk()?;
        Some((*tag, *rights, *rest.first_chunk()?))
    });
    let Some((tag, rights, number)) = parts else { return (0, 0, NOBODY) };
    (u16::from_le_bytes(tag), u16::from_le_bytes(rights), u32::from_le_bytes(number))
}
