//! The table of mounts of the kernel (/proc/self/mountinfo).

use crate::parts::fstab::decode;
use std::path::{Path, PathBuf};

/// The path of the table.
pub(super) const TABLE: &str = "/proc/self/mountinfo";

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    /// The major and minor number of the file system's device, as text.
    number: String,
    /// The mounted directory within its file system.
    root: PathBuf,
    pub(super) point: PathBuf,
    /// The options of the mount: `rw,nosuid,relatime`.
    pub(super) flags: String,
    pub(super) kind: String,
    /// The device as the kernel names it.
    pub(super) source: String,
    /// The options of the file system.
    pub(super) superblock: String,
}

/// All mounts, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(Vec<Mounted>);

impl Table {
    /// Parses the table; lines of an unknown form are left out.
    pub(super) fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(parse_line).collect())
    }

    /// Returns the topmost mount at a path, and the number of mounts there.
    pub(super) fn at(&self, point: &Path) -> Option<(&Mounted, usize)> {
        let here: Vec<&Mounted> = self.0.iter().filter(|mount| mount.point == point).collect();
        here.last().map(|top| (*top, here.len()))
    }

    /// Returns the position of a directory: the number of its file system, and the path within.
    fn position(&self, directory: &Path) -> Option<(&str, PathBuf)> {
        let above = |mount: &&Mounted| directory.starts_with(&mount.point);
        let nearest =
            self.0.iter().filter(above).max_by_key(|mount| mount.point.components().count())?;
        let rest = directory.strip_prefix(&nearest.point).ok()?;
        Some((&nearest.number, nearest.root.join(rest)))
    }

    /// Returns true if the mount shows this directory, as a bind mount does. The mount itself and those below it do not
    /// count, because the directory was there before.
    pub(super) fn is_bound_to(&self, mount: &Mounted, directory: &Path) -> bool {
        let others = self.0.iter().filter(|other| !other.point.starts_with(&mount.point));
        let others = Self(others.cloned().collect());
        let position = others.position(directory);
        position.is_some_and(|(number, root)| *number == mount.number && root == mount.root)
    }

    /// Returns a directory that a bind mount shows, by another mount of the file system; none for a mount of a whole
    /// file system.
    pub(super) fn bound_directory(&self, mount: &Mounted) -> Option<PathBuf> {
        let is_other =
            |other: &&Mounted| other.number == mount.number && other.point != mount.point;
        let whole = mount.root == Path::new("/");
        self.0.iter().filter(|_| !whole).filter(is_other).find_map(|other| {
            let rest = mount.root.strip_prefix(&other.root).ok()?;
            Some(if rest.as_os_str().is_empty() {
                other.point.clone()
            } else {
                other.point.join(rest)
            })
        })
    }
}

/// Parses a line: number, parent, device, root, mount point, options, optional fields, `-`, type, source, options of
/// the file system.
fn parse_line(line: &str) -> Option<Mounted> {
    let mut words = line.split(' ');
    let number = words.nth(2)?.to_owned();
    let (root, point) = (decode(words.next()?).into(), decode(words.next()?).into());
    let flags = words.next()?.to_owned();
    words.find(|word| *word == "-")?;
    let (kind, source) = (words.next()?.to_owned(), decode(words.next()?));
    let superblock = words.next().unwrap_or_default().to_owned();
    Some(Mounted { number, root, point, flags, kind, source, superblock })
}

#[cfg(test)]
mod tests {
    use super::Table;
    use proptest::prelude::*;
    use std::path::{Path, PathBuf};

    const INFO: &str = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
        30 22 8:1 /srv/a\\040b /mnt/bound ro,nosuid - ext4 /dev/sda1 rw\n\
        31 22 0:40 / /run rw master:2 propagate_from:1 - tmpfs tmpfs rw,size=65536k\n\
        broken\n\
        32 31 0:41 / /run rw - tmpfs other rw\n\
        33 22 0:40 / /mnt/run rw - tmpfs tmpfs rw\n";

    #[test]
    fn the_topmost_mount_is_found() {
        let table = Table::parse(INFO);
        let (top, count) = table.at(Path::new("/run")).unwrap();
        assert_eq!((top.source.as_str(), count), ("other", 2));
        assert!(table.at(Path::new("/srv")).is_none());
        let (bound, _) = table.at(Path::new("/mnt/bound")).unwrap();
        assert_eq!((bound.kind.as_str(), bound.flags.as_str()), ("ext4", "ro,nosuid"));
        assert!(table.is_bound_to(bound, Path::new("/srv/a b")));
        assert!(!table.is_bound_to(bound, Path::new("/srv")));
        assert!(!table.is_bound_to(bound, Path::new("/run/a b")));
        assert_eq!(table.bound_directory(bound), Some(PathBuf::from("/srv/a b")));
        assert_eq!(table.bound_directory(top), None);
    }

    proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn any_table_is_read(text in "\\PC{0,200}", line in "[0-9: /a-z\\\\-]{0,80}") {
            let table = Table::parse(&format!("{text}\n{line}\n{INFO}"));
            prop_assert!(table.at(Path::new("/run")).is_some());
        }
    }
}
