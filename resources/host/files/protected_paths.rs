//! Directories without which there is no host: never removed, whoever asks (S-15).

use super::Files;
use super::entry::{Entry, EntryStat};
use super::fault::{Fault, said};
use crate::host::kernel::{is_mount_root, statat};
use rustix::fs::{AtFlags, CWD, FileType};
use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// With all that lies above them.
const SACRED: &[&str] = &[
    "/bin",
    "/boot/efi",
    "/boot/grub",
    "/dev/pts",
    "/dev/shm",
    "/etc/apt",
    "/etc/cron.d",
    "/etc/default",
    "/etc/network",
    "/etc/pam.d",
    "/etc/security",
    "/etc/ssh",
    "/etc/ssl",
    "/etc/sudoers.d",
    "/etc/systemd/system",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/lost+found",
    "/media",
    "/mnt",
    "/nix/store",
    "/opt",
    "/proc",
    "/root",
    "/run/lock",
    "/run/systemd",
    "/run/user",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/lib/systemd",
    "/usr/libexec",
    "/usr/local/bin",
    "/usr/local/etc",
    "/usr/local/lib",
    "/usr/local/sbin",
    "/usr/local/share",
    "/usr/sbin",
    "/usr/share",
    "/usr/src",
    "/var/backups",
    "/var/cache",
    "/var/lib/dpkg",
    "/var/lib/systemd",
    "/var/local",
    "/var/log",
    "/var/mail",
    "/var/opt",
    "/var/run",
    "/var/lock",
    "/var/spool/cron",
    "/var/tmp",
];

/// Those of them in which it is common to let nothing be but what was declared.
const PURGEABLE: &[&str] = &[
    "/etc/cron.d",
    "/etc/network",
    "/etc/ssh",
    "/etc/ssl",
    "/etc/sudoers.d",
    "/etc/systemd/system",
    "/opt",
    "/srv",
    "/usr/local/bin",
    "/usr/local/etc",
    "/usr/local/lib",
    "/usr/local/sbin",
    "/var/backups",
    "/var/spool/cron",
];

/// Whether what nobody declared may be removed from this directory, or the attributes of all below it be changed.
#[must_use]
pub fn is_purgeable(path: &Path) -> bool {
    !is_sacred(path) || PURGEABLE.iter().any(|purgeable| Path::new(purgeable) == path)
}

/// Whether a path, in whatever way it is written, names such a directory or one above it.
#[must_use]
pub fn is_sacred(path: &Path) -> bool {
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    let plain = plain.as_os_str().as_bytes();
    // As bytes: this is asked for every file of a graph, and comparing paths part by part took a fifth of the time to load one.
    let covers = |sacred: &&str| match sacred.as_bytes().strip_prefix(plain) {
        Some(rest) => rest.is_empty() || rest.starts_with(b"/"),
        None => false,
    };
    plain == b"/" || SACRED.iter().any(covers)
}

impl Files {
    /// Refuses a removal of what a host cannot do without, before anything below it is looked at.
    ///
    /// # Errors
    /// It is such a thing, or something is mounted there.
    #[expect(clippy::unused_self, reason = "a question about the files of this host")]
    pub fn guard_removal(&self, spot: &Entry<'_>, seen: &EntryStat) -> Result<(), Fault> {
        guard(spot, seen)
    }
}

/// Refuses what may not go: by name, by identity (a bind mount, a link above), and where something is mounted.
pub(super) fn guard(spot: &Entry<'_>, seen: &EntryStat) -> Result<(), Fault> {
    if is_sacred(spot.path) {
        return Err(refuse(spot.path, "the path is protected"));
    }
    if seen.kind != FileType::Directory {
        return Ok(());
    }
    if sacred_inodes().contains(&seen.identity) {
        return Err(refuse(spot.path, "the directory is protected"));
    }
    if spot.is_mounted() {
        return Err(refuse(spot.path, "the path is a mount point"));
    }
    Ok(())
}

impl Entry<'_> {
    /// Whether something is mounted here. An old kernel cannot tell; it refuses itself to remove a mount point.
    #[must_use]
    pub fn is_mounted(&self) -> bool {
        is_mount_root(&self.directory, self.name)
    }
}

/// The inodes of them all, as they are now.
pub(super) fn sacred_inodes() -> HashSet<(u64, u64)> {
    let paths = SACRED.iter().flat_map(|sacred| Path::new(sacred).ancestors());
    let stats = paths.filter_map(|path| statat(CWD, path, AtFlags::empty()).ok());
    stats.map(|stat| EntryStat::of(&stat).identity).collect()
}

/// The inodes of those whose content may be held as a whole, as they are now.
pub(super) fn purgeable_inodes() -> HashSet<(u64, u64)> {
    let stats = PURGEABLE.iter().filter_map(|path| statat(CWD, *path, AtFlags::empty()).ok());
    stats.map(|stat| EntryStat::of(&stat).identity).collect()
}

fn refuse(path: &Path, why: &str) -> Fault {
    Fault::refused(
        said("remove", path, why).hint("no field of the graph overrides this protection"),
    )
}

#[cfg(test)]
mod tests {
    use super::{SACRED, is_sacred};
    use std::path::Path;

    /// S-15: however it is written.
    #[test]
    fn sacred_paths_are_known_in_every_spelling() {
        assert!(SACRED.len() >= 50);
        for path in ["/", "//", "/.", "/./", "/etc", "//etc//", "/etc/.", "/home/", "/usr", "/a/.."]
        {
            assert!(is_sacred(Path::new(path)), "{path}");
        }
        for path in ["/etc/motd", "/home/alice", "/srv/www", "/usr/share/x", "/etcetera"] {
            assert!(!is_sacred(Path::new(path)), "{path}");
        }
    }
}
