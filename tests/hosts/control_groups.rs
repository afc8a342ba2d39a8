//! The control groups of test hosts: two hosts in one group would confuse each other's processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MOUNT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "steadfast-host-";

/// The groups of one host, one in each hierarchy that systemd writes to.
#[derive(Debug)]
pub(crate) struct ControlGroups {
    paths: Vec<PathBuf>,
}

impl ControlGroups {
    /// Creates the groups. Their names contain this process id, so that later runs recognise leftovers.
    pub(crate) fn make(name: &str) -> Self {
        let hierarchies = hierarchies();
        for hierarchy in &hierarchies {
            sweep(hierarchy);
        }
        let paths: Vec<_> =
            hierarchies.iter().map(|each| each.join(format!("{PREFIX}{name}"))).collect();
        for path in &paths {
            fs::create_dir(path).unwrap_or_else(|error| {
                panic!("expected to make the control group {}: {error}", path.display())
            });
        }
        Self { paths }
    }

    /// Returns the files that move a process into the groups.
    pub(crate) fn doors(&self) -> Vec<PathBuf> {
        self.paths.iter().map(|path| path.join("cgroup.procs")).collect()
    }

    /// Removes the groups once their processes are gone.
    pub(crate) fn remove(&self) {
        let limit = Instant::now() + Duration::from_secs(10);
        while self.paths.iter().any(|path| !remove_tree(path)) && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the hierarchies of systemd: the unified one, or its own beside those of version 1.
fn hierarchies() -> Vec<PathBuf> {
    let mount = Path::new(MOUNT);
    if mount.join("cgroup.controllers").exists() {
        return vec![mount.to_path_buf()];
    }
    let found: Vec<_> = ["systemd", "unified"]
        .iter()
        .map(|name| mount.join(name))
        .filter(|path| path.join("cgroup.procs").exists())
        .collect();
    assert!(
        !found.is_empty(),
        "expected control groups at {MOUNT}, found none; mount -t cgroup2 none {MOUNT}"
    );
    found
}

/// Removes the groups of test processes that were killed.
fn sweep(hierarchy: &Path) {
    for entry in fs::read_dir(hierarchy).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if maker.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            remove_tree(&entry.path());
        }
    }
}

/// Removes a group with its subgroups; returns false if a group still has processes.
fn remove_tree(path: &Path) -> bool {
    let children = fs::read_dir(path).into_iter().flatten().flatten();
    for child in children.filter(|child| child.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_tree(&child.path());
    }
    fs::remove_dir(path).is_ok() || !path.exists()
}
