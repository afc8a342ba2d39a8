//! The collector file of `node_exporter`: written under a temporary name and renamed, so that a reader never sees half.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// The mode of the file: the user of `node_exporter` reads it.
const MODE: u32 = 0o644;

/// Replaces the file with this text. The temporary name does not end in `.prom`, so that `node_exporter` skips it.
///
/// # Errors
/// The error of the system, if the directory is missing or full, or may not be written.
pub fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let temporary = path.with_file_name(format!(".{}.steadfast~", name.to_string_lossy()));
    // A leftover of a killed daemon, or a link that somebody has put there.
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&temporary);
    let written = opened.and_then(|mut file| {
        file.set_permissions(Permissions::from_mode(MODE))?;
        file.write_all(text.as_bytes())
    });
    let placed = written.and_then(|()| std::fs::rename(&temporary, path));
    if placed.is_err() {
        let _leftover = std::fs::remove_file(&temporary);
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::write_file;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn the_file_is_replaced_and_links_are_not_followed() {
        let place = tempfile::tempdir().expect("a directory");
        let (file, other) = (place.path().join("steadfast.prom"), place.path().join("other"));
        std::fs::write(&other, "other").expect("written");
        symlink(&other, place.path().join(".steadfast.prom.steadfast~")).expect("linked");
        write_file(&file, "one 1\n").expect("written");
        write_file(&file, "two 2\n").expect("written again");
        assert_eq!(std::fs::read_to_string(&file).expect("read"), "two 2\n");
        assert_eq!(std::fs::read_to_string(&other).expect("read"), "other");
        assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o644);
        let names: Vec<_> = std::fs::read_dir(place.path()).expect("listed").collect();
        assert_eq!(names.len(), 2, "no temporary file is left");
        assert!(write_file(&place.path().join("missing/x.prom"), "").is_err());
    }
}
