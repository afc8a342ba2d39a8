//! A digest of the objects that a removal would lose: another number means another loss.

use crate::host::files::{DirWalk, Entered, Entry, EntryStat, Fault, Why};
use rustix::fs::FileType;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use tokio_util::sync::CancellationToken;

/// Returns the digest of an object. For a directory, it covers everything below that can be entered, without
/// the times of directories, because an earlier partial removal changes them. For any other object, it covers
/// the state.
pub(in crate::kinds::file) fn digest(
    spot: &Entry<'_>,
    seen: &EntryStat,
    cancel: &CancellationToken,
) -> Result<u64, Fault> {
    let mut hash = DefaultHasher::new();
    if seen.kind != FileType::Directory {
        format!("{seen:?}").hash(&mut hash);
        return Ok(hash.finish());
    }
    let mut open = vec![spot.branch(seen, false)?];
    while let Some(branch) = open.pop() {
        // The result of a cancelled run is never used.
        if cancel.is_cancelled() {
            break;
        }
        entries(&branch, &mut open, &mut hash)?;
    }
    Ok(hash.finish())
}

fn entries(
    branch: &DirWalk,
    open: &mut Vec<DirWalk>,
    hash: &mut DefaultHasher,
) -> Result<(), Fault> {
    for name in branch.names()? {
        let path = branch.path().join(name);
        path.hash(hash);
        let spot = branch.open_entry(&path);
        let Some(seen) = spot.look()? else { continue };
        if seen.kind != FileType::Directory {
            format!("{seen:?}").hash(hash);
            continue;
        }
        (seen.identity, seen.mode, seen.uid, seen.gid).hash(hash);
        match branch.enter(&spot, &seen) {
            Ok(Entered::Branch(inner)) => open.push(inner),
            // Mounts are not removed, and an object that has just gone is not lost.
            Ok(Entered::Mounted) => {}
            Err(fault) if matches!(fault.why, Why::Moved) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}
