//! Opening of regular files only: opening a FIFO in a state directory could block for ever.

use super::database::{Fault, with_suffix};
use rustix::fs::OFlags;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The suffixes of the files of a database.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Returns true if the database exists. Nothing is opened: closing a file would drop all locks that this process has on
/// it.
///
/// # Errors
///
/// Returns an error if the database or one of its files is not a regular file.
pub(crate) fn is_there(path: &Path) -> Result<bool, Fault> {
    for suffix in BESIDE {
        let name = with_suffix(path, suffix);
        match name.metadata() {
            Ok(found) => only_file(&found).map_err(|why| {
                let at =
                    if suffix.is_empty() { String::new() } else { format!("{}: ", name.display()) };
                Fault::Refused(format!("{at}{why}"))
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound && suffix.is_empty() => {
                return Ok(false);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Returns an error unless the metadata is of a regular file.
pub(crate) fn only_file(found: &Metadata) -> Result<(), Error> {
    let sort = found.file_type();
    if sort.is_file() {
        return Ok(());
    }
    let why = format!("expected a file, found {}; move the object away", word(sort));
    Err(Error::new(ErrorKind::InvalidInput, why))
}

fn word(sort: FileType) -> &'static str {
    if sort.is_dir() {
        "a directory"
    } else if sort.is_fifo() {
        "a fifo"
    } else if sort.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// Makes an open call non-blocking.
pub(crate) fn nonblocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default())
}

/// Opens a regular file that is not a database, for reading.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    let file = nonblocking(OpenOptions::new().read(true)).open(path)?;
    only_file(&file.metadata()?)?;
    Ok(file)
}

/// Reads a whole regular file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
