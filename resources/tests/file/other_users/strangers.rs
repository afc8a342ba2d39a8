//! An untrusted user for tests, neither root nor named in a graph, and the objects that this user prepares.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The user and group of the untrusted user: nobody and nogroup.
pub(crate) const STRANGER: u32 = 65534;

/// The access list of an object.
pub(crate) const ACCESS: &str = "system.posix_acl_access";

/// The default access list that a directory passes on.
pub(crate) const DEFAULT: &str = "system.posix_acl_default";

/// Makes a command of the untrusted user, with `path` as its argument.
fn command(script: &str, path: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script, "sh"])
        .arg(path)
        .stderr(Stdio::null());
    command
}

/// Returns true if the untrusted user can read the file.
pub(crate) fn can_read(path: &Path) -> bool {
    command("cat \"$1\" >/dev/null", path).status().unwrap().success()
}

/// Returns true if the untrusted user can write the file; the content stays unchanged.
pub(crate) fn can_write(path: &Path) -> bool {
    command(": >> \"$1\"", path).status().unwrap().success()
}

/// Writes a file that belongs to the untrusted user.
pub(crate) fn write(path: &Path, content: &str, mode: u32) {
    fs::write(path, content).unwrap();
    chown(path, Some(STRANGER), Some(STRANGER)).unwrap();
    crate::support::chmod(path, mode);
}

/// Makes a directory that belongs to the untrusted user.
pub(crate) fn make_directory(path: &Path, mode: u32) {
    fs::create_dir(path).unwrap();
    chown(path, Some(STRANGER), Some(STRANGER)).unwrap();
    crate::support::chmod(path, mode);
}

/// Sets an extended attribute.
pub(crate) fn set(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
}

/// Returns true if the object has this extended attribute.
pub(crate) fn has(path: &Path, name: &str) -> bool {
    let found = rustix::fs::getxattr(path, name, &mut [0_u8; 4]);
    found.is_ok() || found == Err(rustix::io::Errno::RANGE)
}

/// Returns an access list with all rights for the untrusted user: owner rwx, that user rwx, group none, mask
/// rwx, others none.
pub(crate) fn list() -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] = [
        (1, 7, u32::MAX),
        (2, 7, STRANGER),
        (4, 0, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 0, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

/// A process of the untrusted user that holds a lease on a file until dropped.
pub(crate) struct Lease(Child);

impl Lease {
    pub(crate) fn take(path: &Path) -> Self {
        // F_SETLEASE with F_WRLCK; the process ignores the signal that asks for the lease.
        let script = "exec perl -e '$SIG{IO} = \"IGNORE\"; open(F, \"+<\", $ARGV[0]) or die; \
            fcntl(F, 1024, 1) or die; $| = 1; print \"held\\n\"; sleep 600' \"$1\"";
        let mut child = command(script, path).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n", "the lease was not given");
        Self(child)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
