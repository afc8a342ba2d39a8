//! Files of the kernel that system calls change without a file event: the host name and the table of swap spaces. The
//! kernel marks such an open file, and poll(2) reports the mark.

use crate::watch::shared::Shared;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The shortest time between two reports of one file.
const JOIN: Duration = Duration::from_millis(20);

/// Reports each change of a file of the kernel as a change of its entry in the parent directory. Returns if the file
/// cannot be followed: then sweeps find changes.
pub(in crate::watch) async fn follow_file(shared: Arc<Shared>, path: &'static str) {
    let Ok(file) = File::open(path) else { return };
    let Some(changes) = open_for_changes(file) else { return };
    let path = BTreeSet::from([PathBuf::from(path)]);
    loop {
        match changes.ready(Interest::PRIORITY).await {
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => return,
        }
        shared.report_entries(&path);
        tokio::time::sleep(JOIN).await;
    }
}

/// Registers a file whose changes the kernel reports as urgent data.
pub(in crate::watch) fn open_for_changes(file: File) -> Option<AsyncFd<File>> {
    #[expect(
        deprecated,
        reason = "its replacement is unsafe; an owned descriptor is sound in both"
    )]
    let opened = AsyncFd::with_interest(file, Interest::PRIORITY);
    opened.ok()
}
