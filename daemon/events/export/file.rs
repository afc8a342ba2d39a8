//! A sink that appends JSON lines to a file. A batch is durable before it counts as recorded; a rotated file is opened
//! anew.

use super::{Batch, Sending, Sink};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use steadfast_resources::host::files::printable;
use steadfast_resources::host::input_trust::Reader;

/// A file that receives events.
#[derive(Debug)]
pub struct ToFile {
    path: PathBuf,
    open: Arc<Mutex<Option<File>>>,
}

impl ToFile {
    /// Creates a sink for a path. A missing file is created with mode 0640.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, open: Arc::default() }
    }
}

impl Sink for ToFile {
    fn send(&self, batch: Batch) -> Sending {
        let (path, open) = (self.path.clone(), Arc::clone(&self.open));
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || {
                let mut lines = String::new();
                for event in &batch.events {
                    lines.push_str(event.json());
                    lines.push('\n');
                }
                let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
                append(&path, &mut open, lines.as_bytes())
            });
            let written = written.await.map_err(|error| error.to_string())?;
            Ok(written.map_err(|error| error.to_string())?)
        })
    }
}

fn append(path: &Path, open: &mut Option<File>, lines: &[u8]) -> io::Result<()> {
    if open.as_ref().is_none_or(|file| !is_at(file, path)) {
        *open = None;
        *open = Some(fresh(path)?);
    }
    let Some(file) = open else { return Ok(()) };
    let before = file.metadata()?.len();
    let written = file.write_all(lines).and_then(|()| file.sync_data());
    if let Err(error) = written {
        // A partial batch is removed if possible: a repeated line is better than half a line.
        let _kept = file.set_len(before);
        *open = None;
        return Err(error);
    }
    Ok(())
}

/// Returns true if the path still leads to the open file.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Rejects a file that must not receive events: one that others could change, or another file under this name.
fn judge(file: &File, path: &Path) -> io::Result<()> {
    let found = file.metadata()?;
    let refuse = |why: String| Err(io::Error::other(format!("{}: {why}", printable(path))));
    if !found.is_file() {
        return refuse("not a regular file".to_owned());
    }
    if found.uid() != geteuid().as_raw() {
        return refuse(format!("the file belongs to uid {}: move the file away", found.uid()));
    }
    if found.nlink() != 1 {
        return refuse(format!("the file has {} hard links: move the file away", found.nlink()));
    }
    if found.mode() & 0o022 != 0 {
        return refuse(format!(
            "the file is writable by others (mode {:04o})",
            found.mode() & 0o7777
        ));
    }
    let reader = Reader::here();
    match reader.doubts_as_named(file, path).filter(|_| reader.is_strict()) {
        Some(why) => refuse(format!("another user could change the file: {why}")),
        None => Ok(()),
    }
}

fn fresh(path: &Path) -> io::Result<File> {
    // The flags exclude symbolic links, and files on which the open would block.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let reader = Reader::here();
    // A refused file must not be created.
    if reader.is_strict()
        && let Some(doubt) = path.parent().and_then(|above| reader.untrusted_on_the_way(above))
    {
        let why = format!("{}: another user could change the file: {doubt}", printable(path));
        return Err(io::Error::other(why));
    }
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o640)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    judge(&file, path)?;
    // A killed writer may have left half a line.
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut end = [0];
        file.read_exact(&mut end)?;
        if end != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::append;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    use std::path::Path;

    fn refused(path: &Path) -> String {
        append(path, &mut None, b"an event\n").expect_err("refused").to_string()
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("changed");
    }

    /// L6: events only go to a file of the own user, in directories that nobody else can write.
    #[test]
    fn files_that_others_could_change_get_no_events() {
        assert!(rustix::process::geteuid().is_root(), "this test must run as root");
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("events");
        append(&path, &mut None, b"an event\n").expect("a new file");
        append(&path, &mut None, b"an event\n").expect("a file of ours");
        let other = place.path().join("other");
        fs::hard_link(&path, &other).expect("linked");
        assert!(refused(&other).contains("the file has 2 hard links"));
        fs::remove_file(&other).expect("removed");
        symlink(&path, &other).expect("linked");
        refused(&other);
        chmod(&path, 0o666);
        assert!(refused(&path).contains("the file is writable by others (mode 0666)"));
        chmod(&path, 0o640);
        chown(&path, Some(65534), None).expect("given away");
        assert!(refused(&path).contains("the file belongs to uid 65534"));
        assert_eq!(fs::read_to_string(&path).expect("read"), "an event\nan event\n");
        let theirs = place.path().join("theirs");
        fs::create_dir(&theirs).expect("made");
        chown(&theirs, Some(65534), None).expect("given away");
        let path = theirs.join("events");
        assert!(refused(&path).contains("belongs to uid 65534"));
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), "", "nothing is written");
    }
}
