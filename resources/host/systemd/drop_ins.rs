//! Drop-in files of a unit that systemd has not read. systemd reports `NeedDaemonReload: no` for a drop-in in a
//! directory that it did not know at its last reload (systemd 252 looks only into directories that it remembers).

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;

/// The folders of unit files for which drop-ins are compared, without those of generators.
const FOLDERS: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
];

/// Returns the names of the drop-in files of a unit that have content. An empty file, or a link to `/dev/null`, only
/// hides another file.
pub(super) fn written(unit: &str) -> HashSet<OsString> {
    let folder = format!("{unit}.d");
    let lists = FOLDERS.iter().filter_map(|above| Path::new(above).join(&folder).read_dir().ok());
    let is_read = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "conf")
            && path.metadata().is_ok_and(|found| found.is_file() && found.len() > 0)
    };
    lists
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| is_read(&entry.path()))
        .map(|entry| entry.file_name())
        .collect()
}

/// Returns true if systemd has read a drop-in with each of these names.
pub(super) fn are_read(written: &HashSet<OsString>, read: &[String]) -> bool {
    written.iter().all(|name| read.iter().any(|path| Path::new(path).file_name() == Some(name)))
}
