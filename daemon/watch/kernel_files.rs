//! Files of the kernel that system calls change without a file event: the host name and the table of swap spaces. The
//! kernel marks such an open file, and poll(2) reports the mark.

use super::Shared;
use super::mounts::as_change;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

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

/// The shortest time between two reports of one file.
const JOIN: Duration = Duration::from_millis(20);

/// Reports each change of a file of the kernel as a change of its entry in the parent directory. Returns if the file
/// cannot be followed: then sweeps find changes.
pub(super) async fn follow_file(shared: Arc<Shared>, path: &'static str) {
    let Ok(file) = File::open(path) else { return };
    let Some(changes) = open_for_changes(file) else { return };
    let path = BTreeSet::from([PathBuf::from(path)]);
    loop {
        match changes.ready(Interest::PRIORITY).await {
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => return,
        }
        let entries = shared.lock().watched_entries(&path);
        let happenings: Vec<_> = entries.iter().map(as_change).collect();
        shared.take_in(&happenings);
        tokio::time::sleep(JOIN).await;
    }
}

/// Registers a file whose changes the kernel reports as urgent data.
pub(super) fn open_for_changes(file: File) -> Option<AsyncFd<File>> {
    #[expect(
        deprecated,
        reason = "its replacement is unsafe; an owned descriptor is sound in both"
    )]
    let opened = AsyncFd::with_interest(file, Interest::PRIORITY);
    opened.ok()
}
