//! Files of pseudo file systems (/proc, /sys): reading tables, and writing kernel parameters in place.
//!
//! The kernel reports the size 0 for these files and acts on each write(2), so a parameter is never staged and
//! renamed, and its value is written with one call.

use super::read::{READ, read_whole, seen};
use crate::host::files::Files;
use crate::host::files::fault::{Fault, said};
use crate::host::kernel::{is_in_overlay, openat, write_parameter};
use crate::permit::Permit;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use std::path::Path;

/// The size limit of a table of the kernel in bytes.
const LARGEST: usize = 16 << 20;

impl Files {
    /// Reads a file of the kernel completely. Returns `None` if the path does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the path is no regular file, exceeds 16 MiB, or cannot be read.
    pub fn kernel_file(&self, path: &Path) -> Result<Option<Vec<u8>>, Fault> {
        let Some(spot) = self.open_entry(path)? else { return Ok(None) };
        let file = match openat(&spot.directory, spot.name, READ, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(Fault::os("read")(errno)),
        };
        if seen(&file)?.kind != FileType::RegularFile {
            return Err(Fault::refused(said("read", path, "not a regular file")));
        }
        match read_whole(&file, LARGEST)? {
            Some(content) => Ok(Some(content)),
            None => Err(Fault::refused(said("read", path, "the file exceeds 16 MiB"))),
        }
    }

    /// Writes a kernel parameter with one write(2). The file is never created, and a link as the last part is not
    /// followed.
    ///
    /// # Errors
    ///
    /// Fails if the parameter does not exist, the kernel rejects the value, the permit was revoked, or the thread
    /// works in an overlay, where nothing may reach the kernel. A rejected list of values may be set in part.
    pub fn write_tunable(&self, permit: &Permit, path: &Path, bytes: &[u8]) -> Result<(), Fault> {
        if is_in_overlay() {
            return Err(Fault::refused(said("write", path, "a plan writes no kernel parameters")));
        }
        let missing = || said("write", path, "the kernel has no such parameter");
        let Some(spot) = self.open_entry(path)? else { return Err(Fault::refused(missing())) };
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&spot.directory, spot.name, flags | OFlags::NONBLOCK, Mode::empty())
        {
            Ok(file) => file,
            Err(Errno::NOENT) => return Err(Fault::refused(missing())),
            Err(Errno::ROFS) => {
                let failure = said("write", path, "the parameter is read-only");
                let hint = "a container may set few parameters: set this one on its host";
                return Err(Fault::refused(failure.hint(hint)));
            }
            Err(errno) => return Err(Fault::os("write")(errno)),
        };
        if seen(&file)?.kind != FileType::RegularFile {
            return Err(Fault::refused(said("write", path, "not a regular file")));
        }
        permit.check()?;
        let rejected = |errno: Errno| match errno {
            Errno::INVAL => Fault::refused(
                said("write", path, "the kernel rejects the value").hint("check its range"),
            ),
            errno => Fault::os("write")(errno),
        };
        let written = retry_on_intr(|| write_parameter(&file, bytes))
            .map_err(|errno| rejected(errno).after(true))?;
        if written == bytes.len() {
            return Ok(());
        }
        let failure = said("write", path, &format!("the kernel took {written} bytes only"));
        Err(Fault::refused(failure).after(true))
    }
}
