//! Files that must not exist before they are written.

use std::fs::{DirBuilder, OpenOptions, hard_link, remove_file};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The reason why a file was not written.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// There is an object of that name.
    Exists,
    /// The system refused.
    Failed(std::io::Error),
}

impl From<std::io::Error> for NotWritten {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == ErrorKind::AlreadyExists { Self::Exists } else { Self::Failed(error) }
    }
}

/// Writes a new file, and its folder if missing. The file appears complete or not at all, and an object of that name
/// is never replaced: a second name of a staged file is made, which fails if the name is taken.
pub(super) fn write_new(path: &Path, text: &str) -> Result<(), NotWritten> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(NotWritten::Failed)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let staged = folder.join(format!(".{name}.{}", std::process::id()));
    let written = stage(&staged, text).and_then(|()| hard_link(&staged, path));
    // A staged file that stays is harmless: no graph has its name.
    let _removed = remove_file(&staged);
    Ok(written?)
}

fn stage(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::{NotWritten, write_new};
    use std::fs::{read_dir, read_to_string};

    #[test]
    fn an_existing_object_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/graph.yaml");
        write_new(&path, "first\n").unwrap();
        assert!(matches!(write_new(&path, "second\n"), Err(NotWritten::Exists)));
        assert_eq!(read_to_string(&path).unwrap(), "first\n");
        let dangling = folder.path().join("new/link");
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert!(matches!(write_new(&dangling, "x"), Err(NotWritten::Exists)));
        let names = read_dir(folder.path().join("new")).unwrap().count();
        assert_eq!(names, 2, "no staged file is left");
    }
}
