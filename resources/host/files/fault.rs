//! Failures of file system steps, with the knowledge whether anything was changed before.

use crate::failure::Failure;
use crate::host::files::objects::accounts::{AccountKind, account_name};
use crate::permit::Revoked;
use crate::secrets::escape::is_deceptive;
use rustix::io::Errno;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A file system step that was not done.
#[derive(Debug)]
pub struct Fault {
    /// The reason.
    pub why: Why,
    /// False only if nothing was changed.
    pub touched: bool,
}

/// The reason that a step was not done.
#[derive(Debug)]
pub enum Why {
    /// The permit was revoked.
    Revoked,
    /// The kernel returned an error.
    Os {
        /// The step: `write`, `create`, `remove`, …
        doing: &'static str,
        /// The error number.
        errno: Errno,
    },
    /// The object has changed since the check, which must be repeated.
    Moved,
    /// The step would not be safe.
    Refused(Failure),
    /// An undo has restored everything but privileges.
    Withheld(Failure),
}

impl Fault {
    /// Makes a fault of an error of the kernel before any change.
    pub(crate) fn os(doing: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { why: Why::Os { doing, errno }, touched: false }
    }

    /// Makes a fault of an unsafe step before any change.
    pub(crate) fn refused(failure: Failure) -> Self {
        Self { why: Why::Refused(failure), touched: false }
    }

    /// Makes a fault of an object that has changed since the check, before any change.
    pub(crate) fn moved() -> Self {
        Self { why: Why::Moved, touched: false }
    }

    /// Marks the fault as one after a change, if `touched` is true.
    pub(crate) fn after(mut self, touched: bool) -> Self {
        self.touched |= touched;
        self
    }

    /// Changes the path in the message, for a fault about another path than the managed one.
    pub(crate) fn named(self, path: &Path) -> Self {
        match self.why {
            Why::Os { doing, errno } => {
                let user = account_name(AccountKind::User, rustix::process::geteuid().as_raw());
                let why = Why::Refused(os_failure(doing, path, errno, &user));
                Self { why, touched: self.touched }
            }
            Why::Revoked | Why::Moved | Why::Refused(_) | Why::Withheld(_) => self,
        }
    }

    /// Returns the error number, if the kernel returned the error.
    pub(crate) fn errno(&self) -> Option<Errno> {
        match self.why {
            Why::Os { errno, .. } => Some(errno),
            Why::Revoked | Why::Moved | Why::Refused(_) | Why::Withheld(_) => None,
        }
    }

    /// Returns true if the kernel has denied access (EACCES).
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.errno() == Some(Errno::ACCESS)
    }

    /// Describes the fault: the denied step, the path and the user.
    #[must_use]
    pub fn into_failure(self, path: &Path, user: &str) -> Failure {
        match self.why {
            Why::Refused(failure) | Why::Withheld(failure) => failure,
            Why::Revoked => Failure::new(Revoked.to_string()),
            Why::Moved => said("change", path, "the object kept changing")
                .hint("check which other process writes the object"),
            Why::Os { doing, errno } => os_failure(doing, path, errno, user),
        }
    }
}

impl From<Revoked> for Fault {
    fn from(_: Revoked) -> Self {
        Self { why: Why::Revoked, touched: false }
    }
}

fn os_failure(doing: &str, path: &Path, errno: Errno, user: &str) -> Failure {
    let text = std::io::Error::from(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
    match errno {
        Errno::ACCESS => said(doing, path, &format!("permission denied as user {user}"))
            .hint("grant the permission to that user, or run steadfast as root"),
        Errno::PERM => {
            let failure = said(doing, path, &format!("not permitted to user {user}"));
            let hint =
                "the owner differs, the file is immutable (lsattr), or steadfast is not root";
            // To root, most files are immutable then, and a change of chattr(1) gives no event.
            let is_root = rustix::process::geteuid().is_root();
            if is_root { failure.hint(hint).passing() } else { failure.hint(hint) }
        }
        Errno::NOSPC | Errno::DQUOT => said(doing, path, &text).hint("free disk space").passing(),
        Errno::ROFS => said(doing, path, &text)
            .hint("remount the file system writable, or remove the resource")
            .passing(),
        Errno::FBIG => said(doing, path, "the file exceeds the size limit of this process")
            .hint("raise LimitFSIZE of the unit, or `ulimit -f`"),
        Errno::MFILE | Errno::NFILE => said(doing, path, &text).hint("raise LimitNOFILE").passing(),
        _ => said(doing, path, &text),
    }
}

/// Makes a failure "cannot write /etc/motd: why", with a first line of at most 100 characters.
pub(crate) fn said(doing: &str, path: &Path, why: &str) -> Failure {
    let name = printable(path);
    let line = format!("cannot {doing} {name}: {why}");
    if line.chars().count() <= 100 {
        return Failure::new(line);
    }
    let mut first: String = format!("cannot {doing}: {why}");
    if first.chars().count() > 100 {
        first = first.chars().take(99).chain(['…']).collect();
    }
    Failure::new(format!("{first}\n{name}"))
}

/// Returns a path for display: control characters, direction marks and bytes that are not UTF-8 are escaped
/// (S-13).
#[must_use]
pub fn printable(path: &Path) -> String {
    let mut text = String::with_capacity(path.as_os_str().len());
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            if is_deceptive(letter) {
                text.extend(letter.escape_default());
            } else {
                text.push(letter);
            }
        }
        for byte in chunk.invalid() {
            text.extend(["\\x", HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
    text
}

const HEX: [&str; 16] =
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f"];

#[cfg(test)]
mod tests {
    use super::{printable, said};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;

    /// S-13: names cannot forge lines or hide text.
    #[test]
    fn names_are_escaped() {
        let path = Path::new(OsStr::from_bytes(b"/a\n\x1b[31m\xff/\xe2\x80\xaeb \xc3\xa9"));
        assert_eq!(printable(path), "/a\\n\\u{1b}[31m\\xff/\\u{202e}b é");
    }

    #[test]
    fn a_long_path_goes_below_the_first_line() {
        let path = format!("/{}", "x".repeat(200));
        let failure = said("write", Path::new(&path), "no space left on device");
        let mut lines = failure.what.lines();
        assert_eq!(lines.next(), Some("cannot write: no space left on device"));
        assert_eq!(lines.next(), Some(path.as_str()));
    }
}
