//! The files of /proc: the kernel reports changes of two of them by a mark, and none of the others.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The followed files.
pub(super) const FOLLOWED: [&str; 2] = ["/proc/sys/kernel/hostname", "/proc/swaps"];

/// The file system of the kernel, whose other files change without a mark.
pub(super) const PROC: &str = "/proc";

/// Returns true if an entry of a directory changes without an event: a file of /proc that is not followed.
pub(super) fn is_silent(directory: &Path, name: Option<&[u8]>) -> bool {
    let path = name.map(|name| directory.join(OsStr::from_bytes(name)));
    let is_followed = path.is_some_and(|path| FOLLOWED.iter().any(|it| path == Path::new(it)));
    directory == Path::new(PROC) && !is_followed
}
