//! Modes in the state directory: 0700 for directories and 0600 for files, enforced also after a restore without modes
//! (S-7).

use rustix::fs::{Mode, OFlags};
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// The prefixes of the names of our files; the socket has a mode of its own.
const OURS: [&str; 6] = ["lock", "state.db", "events.db", "history", "values.key", "graph.json"];

/// Restricts the modes of the directory and its files. Each change is logged, and so is a mode that cannot be changed.
pub(super) fn narrow(directory: &Path) {
    narrow_one(directory);
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_ours = |name: &str| OURS.iter().any(|beginning| name.starts_with(beginning));
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_ours)) {
        narrow_one(&entry.path());
    }
}

/// Restricts modes as [`narrow`] does, and those of the whole history.
pub(super) fn narrow_all(directory: &Path) {
    narrow(directory);
    let mut folders = vec![directory.join(super::HISTORY)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            narrow_one(&entry.path());
            if entry.file_type().is_ok_and(|found| found.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
}

fn narrow_one(path: &Path) {
    // Most files have a restricted mode already, and are not even opened. Symbolic links are not followed.
    let is_wide =
        |found: std::fs::Metadata| (found.is_file() || found.is_dir()) && found.mode() & 0o077 != 0;
    if !path.symlink_metadata().is_ok_and(is_wide) {
        return;
    }
    match try_narrow(path) {
        Ok(None) => {}
        Ok(Some((before, mode))) => {
            let path = path.display();
            tracing::warn!(
                event = "mode_restricted",
                "{path}: was accessible to others (mode {before:04o}); changed to mode {mode:04o}"
            );
        }
        Err(error) => {
            tracing::warn!(
                event = "mode_restricted",
                "{}: accessible to others: {error}",
                path.display()
            );
        }
    }
}

/// Restricts the mode of one file. Returns the modes before and after; none if the file is not ours alone.
fn try_narrow(path: &Path) -> std::io::Result<Option<(u32, u32)>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    // Somebody with write access to the directory may have hard-linked a file of ours from elsewhere.
    let is_linked = found.is_file() && found.nlink() > 1;
    if found.uid() != own || is_linked || !(found.is_file() || found.is_dir()) {
        return Ok(None);
    }
    let mode = if found.is_dir() { 0o700 } else { 0o600 };
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(Some((found.mode() & 0o7777, mode)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().expect("there").mode() & 0o7777
    }

    /// F6: files with wide modes after a restore are restricted; files of others, symbolic links and hard links are
    /// left as they are.
    #[test]
    fn modes_are_narrowed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (state, elsewhere) = (folder.path().join("state"), folder.path().join("elsewhere"));
        std::fs::create_dir_all(state.join("history/a")).expect("made");
        std::fs::write(&elsewhere, "").expect("written");
        let files = ["values.key", "graph.json", "history/a/b", "state.db-wal", "notes"];
        for file in files {
            std::fs::write(state.join(file), "").expect("written");
        }
        std::os::unix::fs::symlink(&elsewhere, state.join("state.db")).expect("linked");
        std::fs::hard_link(&elsewhere, state.join("lock")).expect("linked");
        let wide = |path: &Path, mode| {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
        };
        for file in files {
            wide(&state.join(file), 0o666);
        }
        for directory in ["history", "history/a", ""] {
            wide(&state.join(directory), 0o777);
        }
        wide(&elsewhere, 0o644);
        narrow_all(&state);
        let modes = files.map(|file| mode(&state.join(file)));
        assert_eq!(modes, [0o600, 0o600, 0o600, 0o600, 0o666]);
        for directory in ["history", "history/a", ""] {
            assert_eq!(mode(&state.join(directory)), 0o700, "{directory}");
        }
        assert_eq!(mode(&elsewhere), 0o644);
    }
}
