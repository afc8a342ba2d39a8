//! The marks of objects that other users could change or open before root took them, as extended attributes that only
//! root can read and write.

use crate::failure::Failure;
use crate::host::files::fault::Fault;
use crate::host::kernel::{born_at, fgetxattr, getxattr};
use rustix::fs::CWD;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

/// The mark of a directory that root took over, and of a file that others may have open.
pub(in crate::host::files) const TAKEN_OVER: &str = "trusted.steadfast.taken_over";

/// The mark of a directory that changed its owner, or that was closed to others.
pub(in crate::host::files) const HANDED_OVER: &str = "trusted.steadfast.handed_over";

/// Seconds and nanoseconds since 1970, by the clock that stamps files.
pub(in crate::host::files) type Moment = (i64, u32);

/// The time at which a directory was closed to others; none while this is incomplete or was cut off.
pub(in crate::host::files) type Closed = Option<Moment>;

/// The mark of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host::files) struct Handover {
    /// The time of the change of owner; none while the change is incomplete or was cut off.
    pub(in crate::host::files) at: Closed,
    /// The only user, besides root, who could move entries into the directory before; none if several users
    /// could.
    pub(in crate::host::files) by: Option<u32>,
}

impl Handover {
    pub(in crate::host::files) fn text(self) -> String {
        let time = self.at.map(|(seconds, nanoseconds)| format!("{seconds}.{nanoseconds}"));
        let user = self.by.map(|uid| uid.to_string());
        format!("{}/{}", time.unwrap_or_default(), user.unwrap_or_default())
    }

    fn parse(value: &[u8]) -> Self {
        let text = std::str::from_utf8(value).unwrap_or_default();
        let (time, user) = text.split_once('/').unwrap_or_default();
        Self { at: moment(time.as_bytes()), by: user.parse().ok() }
    }

    /// Returns true for a user whose own objects nobody else can have moved there.
    pub(in crate::host::files) fn clears(self, owner: u32) -> bool {
        self.by.is_some_and(|uid| uid == 0 || uid == owner)
    }
}

/// Returns true if the file has the mark of a file that others may have open.
pub(in crate::host::files) fn has_open_mark(file: &OwnedFd) -> bool {
    fgetxattr(file, TAKEN_OVER, &mut [0; 64]).is_ok()
}

/// Returns true if the regular file at this path has the mark of a file that others may have open.
pub(in crate::host) fn has_open_mark_at(path: &Path) -> bool {
    getxattr(path, TAKEN_OVER, &mut [0; 64]).is_ok()
}

/// Returns true if another user can have put this entry of an owner, or a directory above it, at the path, before root
/// closed or took one of these directories.
pub(in crate::host) fn is_from_before(path: &Path, owner: u32) -> bool {
    let born = born_at(CWD, path.as_os_str());
    path.ancestors().skip(1).any(|above| is_born_before(above, born, owner))
}

/// Returns true if the path lies below a directory that users besides the owner could change before.
pub(in crate::host::files) fn is_below_mark(path: &Path, owner: u32) -> bool {
    let mut marks = path.ancestors().skip(1).filter_map(|above| read_handover(above.to_str()?));
    marks.any(|mark| !mark.clears(owner))
}

/// Returns true if an entry of an owner, born at this time below a directory, is not younger than the mark of the
/// directory.
pub(in crate::host::files) fn is_born_before(
    directory: &Path,
    born: Option<Moment>,
    owner: u32,
) -> bool {
    let mark = directory.to_str().and_then(read_handover);
    mark.is_some_and(|mark| !mark.clears(owner) && is_not_after(born, mark.at))
}

/// Returns the mark of a directory that changed its owner, if there is one.
pub(in crate::host::files) fn read_handover(directory: &str) -> Option<Handover> {
    let mut value = [0_u8; 64];
    let length = getxattr(directory, HANDED_OVER, &mut value).ok()?;
    value.get(..length).map(Handover::parse)
}

/// Returns true if the entry of a directory is not younger than the time at which the directory was closed.
pub(in crate::host::files) fn is_older(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    closed: Closed,
) -> bool {
    is_not_after(born_at(directory, name), closed)
}

fn is_not_after(born: Option<Moment>, closed: Closed) -> bool {
    match (closed, born) {
        (Some(closed), Some(born)) => born <= closed,
        _ => true,
    }
}

/// Returns true for an error that says that there is no room for a mark. Without such attributes on the file system, or
/// without the right to set them, the marks last as long as the process.
pub(in crate::host::files) fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::TOOBIG)
}

/// Returns the mark of a directory that root took over, if there is one.
pub(in crate::host::files) fn read_takeover(directory: &str) -> Option<Closed> {
    let mut value = [0_u8; 64];
    let length = getxattr(directory, TAKEN_OVER, &mut value).ok()?;
    Some(value.get(..length).and_then(moment))
}

fn moment(value: &[u8]) -> Closed {
    let (seconds, nanoseconds) = std::str::from_utf8(value).ok()?.split_once('.')?;
    Some((seconds.parse().ok()?, nanoseconds.parse().ok()?))
}

/// Makes the fault of an object whose former owner has left no room for a mark.
pub(in crate::host::files) fn no_room() -> Fault {
    let failure = Failure::new("cannot mark the object: its extended attributes take all the room");
    Fault::refused(failure.hint("remove its attributes of users (setfattr -x), or make a copy"))
}
