//! A file of JSON lines: appended, made durable before the batch counts as recorded, opened anew when it was rotated.

use super::{Batch, Sending, Sink};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A file that events are appended to.
#[derive(Debug)]
pub struct ToFile {
    path: PathBuf,
    open: Arc<Mutex<Option<File>>>,
}

impl ToFile {
    /// This one, which is made where it is missing (0640).
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
        // Half a batch is taken back where that is possible; a half line would be worse than a repeated one.
        let _kept = file.set_len(before);
        *open = None;
        return Err(error);
    }
    Ok(())
}

/// Whether the file still has this name.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

fn fresh(path: &Path) -> io::Result<File> {
    // No link is followed, and nothing that would hold us up is opened.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o640)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    // Who was killed while he wrote left half a line.
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
