//! Mounts and unmounts: the directory below gets no event from the kernel, so the table of mounts is watched.

use super::kernel_files::open_for_changes;
use crate::watch::shared::Shared;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;

/// The mounts of this process: the kernel marks the file after each mount and unmount.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The shortest time between two looks, so that a host that mounts all the time costs little.
const JOIN: Duration = Duration::from_millis(100);

/// Reports each mount and unmount as a change of the entry in the parent directory. Returns if the table of mounts
/// cannot be watched: then sweeps find mounts.
pub(in crate::watch) async fn follow_mounts(shared: Arc<Shared>) {
    let Ok(file) = File::open(MOUNTS) else { return };
    let Some(changes) = open_for_changes(file) else { return };
    let mut before = read_mounts();
    loop {
        match changes.ready(Interest::PRIORITY).await {
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => return,
        }
        let now = read_mounts();
        let points: BTreeSet<PathBuf> =
            before.symmetric_difference(&now).filter_map(|line| mount_point(line)).collect();
        if before == now {
            // An unmount and a mount together may leave equal lines.
            shared.walk_all();
        } else {
            shared.report_entries(&points);
        }
        before = now;
        tokio::time::sleep(JOIN).await;
    }
}

/// Returns the lines of the table of mounts.
fn read_mounts() -> BTreeSet<Vec<u8>> {
    let table = std::fs::read(MOUNTS).unwrap_or_default();
    table.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Returns the mount point of a line of the table: its fifth field, with octal escapes (proc(5)).
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let field = line.split(|byte| *byte == b' ').nth(4)?;
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| *byte == b'\\');
        if let Some(escaped) = escaped.and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            path.push(escaped);
            rest = after.get(3..)?;
        } else {
            path.push(*byte);
            rest = after;
        }
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

#[cfg(test)]
mod tests {
    use super::mount_point;
    use std::path::Path;

    #[test]
    fn mount_points_have_octal_escapes() {
        let line = br"36 35 98:0 / /a\040b\134c rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount_point(line).as_deref(), Some(Path::new(r"/a b\c")));
        assert_eq!(mount_point(b""), None);
    }
}
