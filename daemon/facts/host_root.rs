//! The files of a host below a root directory, and the answers of its kernel.

use super::netlink::{InterfaceAddress, read_addresses};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes. The mount table of a large container host has some megabytes.
const LARGEST: u64 = 16 << 20;

/// The directory whose files are those of the host: `/`, or a directory of a test.
#[derive(Clone, Debug)]
pub struct HostRoot(PathBuf);

impl Default for HostRoot {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl HostRoot {
    /// Returns the directory `/`. Tests can set another one with the feature `fault-injection`.
    #[must_use]
    pub fn of_this_host() -> Self {
        #[cfg(feature = "fault-injection")]
        if let Some(root) = std::env::var_os("STEADFAST_TEST_ROOT") {
            return Self(PathBuf::from(root));
        }
        Self::default()
    }

    /// Uses another directory than `/`.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Returns the path of a file of the host.
    #[must_use]
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.0.join(absolute.trim_start_matches('/'))
    }

    /// Returns the text of a file, with other bytes than UTF-8 replaced; `None` if the file cannot be read.
    pub(super) fn text(&self, absolute: &str) -> Option<String> {
        let bytes = read_bounded(&self.path(absolute), LARGEST).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the first bytes of a file.
    pub(super) fn beginning(&self, absolute: &str, bytes: u64) -> Option<String> {
        let file = open_regular(&self.path(absolute)).ok()?;
        let mut read = Vec::new();
        file.take(bytes).read_to_end(&mut read).ok()?;
        Some(String::from_utf8_lossy(&read).into_owned())
    }

    /// Returns the text of a file with one value, without the space around it; `None` for an empty file.
    pub(super) fn word(&self, absolute: &str) -> Option<String> {
        let text = self.text(absolute)?;
        let word = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
        (!word.is_empty()).then(|| word.to_owned())
    }

    /// Returns the number in a file with one number.
    pub(super) fn number(&self, absolute: &str) -> Option<i64> {
        self.word(absolute)?.parse().ok()
    }

    /// Returns true if the path exists.
    pub(super) fn exists(&self, absolute: &str) -> bool {
        self.path(absolute).symlink_metadata().is_ok()
    }

    /// Returns the target of a symbolic link.
    pub(super) fn link(&self, absolute: &str) -> Option<PathBuf> {
        std::fs::read_link(self.path(absolute)).ok()
    }

    /// Returns the names of the entries of a directory, sorted.
    pub(super) fn entries(&self, absolute: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(absolute)) else { return Vec::new() };
        let name =
            |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort();
        names
    }
}

/// Opens a file without waiting for the writer of a pipe.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    File::options().read(true).custom_flags(flags).open(path)
}

/// Reads a file up to a limit.
///
/// # Errors
/// The error of the system; [`io::ErrorKind::FileTooLarge`] for a longer file.
pub(super) fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// The answers of the kernel that no file has.
#[derive(Clone, Debug, Default)]
pub struct SystemAnswers {
    /// The machine name of uname(2).
    pub machine: String,
    /// The addresses of the interfaces.
    pub addresses: Vec<InterfaceAddress>,
    /// The reason for missing addresses.
    pub addresses_error: Option<String>,
}

impl SystemAnswers {
    /// Asks the kernel of this host.
    #[must_use]
    pub fn of_this_host() -> Self {
        let machine = rustix::system::uname().machine().to_string_lossy().into_owned();
        match read_addresses() {
            Ok(addresses) => Self { machine, addresses, addresses_error: None },
            Err(error) => Self {
                machine,
                addresses: Vec::new(),
                addresses_error: Some(format!("the kernel lists no addresses: {error}")),
            },
        }
    }
}
