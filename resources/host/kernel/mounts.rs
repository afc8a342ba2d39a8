//! The mount table, and the position of objects within their file systems, independent of the mounts on their
//! paths.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The position of an object within its file system, equal for all mounts of that file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The major and minor number of the file system's device, as text.
    device: String,
    path: PathBuf,
}

impl Place {
    /// Returns true if this position is the other one or below.
    pub(crate) fn is_in(&self, other: &Self) -> bool {
        self.device == other.device && self.path.starts_with(&other.path)
    }
}

#[derive(Debug)]
struct Mount {
    /// The number of the parent mount.
    parent: u64,
    root: Place,
    point: PathBuf,
}

/// A directory without links in its path, with its mount and its position in the file system.
#[derive(Clone, Debug)]
struct MountPoint {
    way: PathBuf,
    mount: u64,
    place: Place,
}

/// The mount table from `/proc/self/mountinfo`, with a cache of directories.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    by_number: HashMap<u64, Mount>,
    /// The mounts by parent mount and path. A mount on top of another one is inside that one, at the same path.
    points: HashMap<(u64, PathBuf), u64>,
    seen: HashMap<PathBuf, Option<MountPoint>>,
}

impl Mounts {
    /// Reads the mount table. The result is empty if the table cannot be read, and in a simulated host, which has
    /// one file system.
    pub(crate) fn read() -> Self {
        #[cfg(feature = "simulated-host")]
        if super::dispatch::simulated(|_| ()).is_some() {
            return Self::default();
        }
        std::fs::read("/proc/self/mountinfo").map_or_else(|_| Self::default(), |it| Self::of(&it))
    }

    fn of(text: &[u8]) -> Self {
        let mut mounts = Self::default();
        for line in text.split(|byte| *byte == b'\n') {
            let Some((number, mount)) = parse(line) else { continue };
            mounts.points.insert((mount.parent, mount.point.clone()), number);
            mounts.by_number.insert(number, mount);
        }
        mounts
    }

    /// Returns true if several mounts of the position's file system exist, so that objects may be reachable by
    /// other paths.
    pub(crate) fn are_several_of(&self, place: &Place) -> bool {
        let same = |mount: &&Mount| mount.root.device == place.device;
        self.by_number.values().filter(same).nth(1).is_some()
    }

    /// Returns the position of a directory, with links followed.
    pub(crate) fn directory(&mut self, path: &Path) -> Option<&Place> {
        self.known(path).map(|spot| &spot.place)
    }

    /// Returns the position of an object without following a link, or of the file system mounted there. The
    /// object need not exist.
    pub(crate) fn thing(&mut self, path: &Path) -> Option<Place> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return self.directory(path).cloned();
        };
        let MountPoint { way, mount, place } = self.known(parent)?.clone();
        let path = place.path.join(name);
        Some(self.mounted((mount, way.join(name))).unwrap_or(Place { path, ..place }))
    }

    /// Returns the topmost mount at a path within a mount.
    fn mounted(&self, mut at: (u64, PathBuf)) -> Option<Place> {
        let mut top = None;
        while let Some(number) = self.points.get(&at).filter(|number| **number != at.0) {
            top = self.by_number.get(number).map(|mount| mount.root.clone());
            at.0 = *number;
        }
        top
    }

    fn known(&mut self, directory: &Path) -> Option<&MountPoint> {
        if !self.seen.contains_key(directory) {
            let found = self.look(directory);
            self.seen.insert(directory.to_owned(), found);
        }
        self.seen.get(directory)?.as_ref()
    }

    fn look(&self, directory: &Path) -> Option<MountPoint> {
        if self.by_number.is_empty() {
            return None;
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, directory, flags, Mode::empty()).ok()?;
        let stat = statx(&handle, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
        // Kernels before 5.8 do not return the mount number.
        if stat.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
            return None;
        }
        let mount = self.by_number.get(&stat.stx_mnt_id)?;
        let way = std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()?;
        let path = mount.root.path.join(way.strip_prefix(&mount.point).ok()?);
        let place = Place { device: mount.root.device.clone(), path };
        Some(MountPoint { way, mount: stat.stx_mnt_id, place })
    }
}

/// Parses a line of the table: number, parent, device, root within the file system, mount point, and further
/// fields.
fn parse(line: &[u8]) -> Option<(u64, Mount)> {
    let mut words = line.split(|byte| *byte == b' ');
    let mut text = || std::str::from_utf8(words.next()?).ok();
    let (number, parent) = (text()?.parse().ok()?, text()?.parse().ok()?);
    let device = text()?.to_owned();
    let (path, point) = (plain(words.next()?), plain(words.next()?));
    Some((number, Mount { parent, root: Place { device, path }, point }))
}

/// Decodes a path of the table, in which separators are `\` and three octal digits.
fn plain(mut word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    while let Some((first, rest)) = word.split_first() {
        let octal = (*first == b'\\').then(|| rest.get(..3)).flatten();
        let code = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        word = if byte.is_some() { rest.get(3..).unwrap_or_default() } else { rest };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::{Mounts, Place};

    const INFO: &[u8] = b"22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n\
        30 22 8:1 /a/b /c\\040d rw - ext4 /dev/sda1 rw\n\
        31 22 0:40 / /run rw - tmpfs tmpfs rw\n\
        broken\n\
        32 30 0:41 /x /c\\040d rw - tmpfs tmpfs rw\n\
        33 31 8:1 /hidden /run/f rw - ext4 /dev/sda1 rw\n\
        34 22 0:42 / /run rw - tmpfs tmpfs rw\n";

    /// The topmost mount wins, mounts inside a hidden mount are ignored, encoded names are decoded, and unknown
    /// lines are skipped.
    #[test]
    fn mounts_are_read() {
        let mounts = Mounts::of(INFO);
        assert_eq!(mounts.by_number.len(), 6);
        let place = |device: &str, path: &str| Place { device: device.into(), path: path.into() };
        assert_eq!(mounts.mounted((22, "/c d".into())), Some(place("0:41", "/x")));
        assert_eq!(mounts.mounted((31, "/run/f".into())), Some(place("8:1", "/hidden")));
        assert_eq!(mounts.mounted((34, "/run/f".into())), None);
        let bound = &mounts.by_number[&30].root;
        assert_eq!(*bound, place("8:1", "/a/b"));
        assert!(bound.is_in(&place("8:1", "/a")) && !bound.is_in(&place("8:1", "/a/bc")));
        assert!(!bound.is_in(&place("0:40", "/a")));
        assert!(mounts.are_several_of(bound) && !mounts.are_several_of(&place("0:40", "/")));
    }
}
