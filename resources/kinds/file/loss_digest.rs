//! A digest of what would be gone: another number stands for something else that would be lost.

use crate::host::files::{DirWalk, Entered, Entry, EntryStat, Fault, Why};
use rustix::fs::FileType;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use tokio_util::sync::CancellationToken;

/// Of a directory all that is below it, as far as it can be entered; the times of directories are not in it, for they change
/// when something below was removed before. Of anything else the state it is in.
pub(super) fn digest(
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
        // What comes of a run that was cancelled counts for nothing.
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
        let spot = branch.spot(&path);
        let Some(seen) = spot.look()? else { continue };
        if seen.kind != FileType::Directory {
            format!("{seen:?}").hash(hash);
            continue;
        }
        (seen.identity, seen.mode, seen.uid, seen.gid).hash(hash);
        match branch.enter(&spot, &seen) {
            Ok(Entered::Branch(inner)) => open.push(inner),
            // What is mounted is not removed, and what has just gone is not there.
            Ok(Entered::Mounted) => {}
            Err(fault) if matches!(fault.why, Why::Moved) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}
