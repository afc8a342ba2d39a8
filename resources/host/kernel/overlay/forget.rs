//! Bounds the memory of unchanged nodes in an overlay: above a limit they are dropped, and read again on
//! demand.

use super::state::{Entry, Ino, Node, ROOT, State, What};
use std::collections::BTreeSet;

impl Node {
    /// Returns true if the node holds nothing besides the state of the host.
    fn is_of_host(&self) -> bool {
        self.host.is_some() && !self.is_changed
    }
}

impl State {
    /// Drops unchanged nodes if more than the limit were read. Changed nodes, open nodes and the directories
    /// above both stay, as do the names in an open directory.
    pub(super) fn forget_some(&mut self) {
        if self.looked <= self.most_looked {
            return;
        }
        let held: BTreeSet<Ino> =
            self.open.values().map(|open| open.ino).chain(self.opening.iter().copied()).collect();
        let kept = self.kept(&held);
        self.nodes.retain(|ino, _| kept.contains(ino));
        self.known.retain(|_, ino| kept.contains(ino));
        for (ino, node) in self.nodes.iter_mut().filter(|(_, node)| node.host.is_some()) {
            let (is_held, is_changed) = (held.contains(ino), node.is_changed);
            let What::Directory { entries, is_listed } = &mut node.what else { continue };
            let is_kept = |entry: &Entry| match entry {
                Entry::There(ino) => kept.contains(ino),
                Entry::Gone => is_changed,
                Entry::OnHost => false,
            };
            if !is_held {
                entries.retain(|_, entry| is_kept(entry));
                *is_listed = false;
                continue;
            }
            // An iteration over the directory may be in progress.
            for entry in entries.values_mut() {
                if matches!(entry, Entry::There(_)) && !is_kept(entry) {
                    *entry = Entry::OnHost;
                }
            }
        }
        let names = |node: &Node| match &node.what {
            What::Directory { entries, .. } => entries.len() as u64,
            _ => 0,
        };
        self.looked = self.nodes.values().map(|node| 1 + names(node)).sum();
        self.most_looked = self.limits.nodes.max(self.looked.saturating_mul(2));
    }

    /// Returns the nodes that cannot be dropped, with the directories above them.
    fn kept(&self, held: &BTreeSet<Ino>) -> BTreeSet<Ino> {
        let own = |(ino, node): (&Ino, &Node)| {
            (*ino == ROOT || !node.is_of_host() || held.contains(ino)).then_some(*ino)
        };
        let mut next: Vec<Ino> = self.nodes.iter().filter_map(own).collect();
        let mut kept = BTreeSet::new();
        while let Some(ino) = next.pop() {
            if kept.insert(ino) {
                next.extend(self.nodes.get(&ino).map(|node| node.above));
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, Overlay};
    use crate::host::kernel::dispatch;
    use crate::host::kernel::dispatch::unlinkat;
    use crate::host::kernel::dispatch::{Inside, mkdirat, names, openat, renameat, statat};
    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use rustix::io::Errno;
    use std::os::unix::fs::MetadataExt as _;

    const LINK: AtFlags = AtFlags::SYMLINK_NOFOLLOW;

    /// Many more objects are read than the limit allows; changed files, open files and the host's files still
    /// give the same answers.
    #[test]
    fn reads_are_forgotten_and_changes_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for directory in ["a", "b", "c"] {
            std::fs::create_dir(path(directory)).unwrap();
            for file in 0..300 {
                std::fs::write(path(&format!("{directory}/{file}")), "x").unwrap();
            }
        }
        let overlay = Overlay::new(Limits { bytes: 1 << 20, nodes: 100 }).unwrap();
        let inside = Inside { overlay: overlay.clone(), runs_commands: false };
        let entered = dispatch::enter(Some(inside));
        let open =
            openat(CWD, path("c"), OFlags::DIRECTORY | OFlags::RDONLY, Mode::empty()).unwrap();
        mkdirat(CWD, path("a/new"), Mode::RWXU).unwrap();
        mkdirat(CWD, path("a/new/deep"), Mode::RWXU).unwrap();
        unlinkat(CWD, path("b/5"), AtFlags::empty()).unwrap();
        renameat(CWD, path("c/1"), CWD, path("c/moved")).unwrap();
        for _ in 0..3 {
            for directory in ["a", "b", "c"] {
                for file in 0..300 {
                    let name = format!("{directory}/{file}");
                    let found = statat(CWD, path(&name), LINK);
                    let is_gone = matches!(name.as_str(), "b/5" | "c/1");
                    assert_eq!(found.err(), is_gone.then_some(Errno::NOENT), "{name}");
                }
                let held = overlay.lock().nodes.len();
                assert!(held < 500, "{held} of 900 files are held");
            }
            assert!(statat(CWD, path("a/new/deep"), LINK).is_ok());
            let moved = statat(&open, "moved", LINK).unwrap();
            assert_eq!(moved.st_ino, std::fs::metadata(path("c/1")).unwrap().ino());
            for (directory, count) in [("a", 301), ("b", 299), ("c", 300)] {
                let open = openat(CWD, path(directory), OFlags::DIRECTORY, Mode::empty()).unwrap();
                assert_eq!(names(&open).unwrap().count(), count + 2, "{directory}");
            }
        }
        drop(open);
        drop(entered);
        assert!(!path("a/new").exists() && path("b/5").exists() && path("c/1").exists());
    }
}
