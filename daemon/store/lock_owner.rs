//! The owner of a state directory: the process that has its lock file locked.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The text for an unknown owner.
const UNKNOWN: &str = "unknown";

/// The process, epoch, time (in seconds since 1970) and host of an owner.
pub(super) struct LockOwner {
    pub(super) pid: String,
    pub(super) epoch: u64,
    pub(super) since: Option<u64>,
    pub(super) host: Option<String>,
}

impl LockOwner {
    /// Returns the process that has this file locked, according to the kernel, with the details in the file; an owner
    /// that has written nothing yet has no details. If the kernel does not show the process, as in another container,
    /// only the file is used.
    pub(super) fn find(file: &mut File) -> std::io::Result<Self> {
        let said = Self::said(file)?;
        Ok(match locker(file) {
            Some(pid) if pid != said.pid => {
                Self { pid, since: None, host: Some(host()), epoch: said.epoch }
            }
            _ => said,
        })
    }

    /// Returns the owner in the file: the current one, or the last one that has written.
    pub(super) fn said(file: &mut File) -> std::io::Result<Self> {
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        let mut lines = text.lines().map(str::trim);
        let pid = lines.next().filter(|pid| !pid.is_empty()).unwrap_or(UNKNOWN).to_owned();
        let mut number = || lines.next().and_then(|line| line.parse().ok());
        let (epoch, since) = (number().unwrap_or_default(), number());
        let host = lines.next().filter(|host| !host.is_empty()).map(str::to_owned);
        Ok(Self { pid, epoch, since, host })
    }

    /// Returns true if the process was killed a moment ago: a child that it was starting has the file open until its
    /// exec.
    pub(super) fn is_gone(&self) -> bool {
        self.pid.parse::<u32>().is_ok_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    }
}

/// Returns the process that has locked a file (`proc_locks(5)`). Some file systems (btrfs, overlayfs) report another
/// device there, so the inode number is compared, and the process must have this very file open.
pub(super) fn locker(file: &File) -> Option<String> {
    let found = file.metadata().ok()?;
    let number = found.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let candidates = locks.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (sort, pid) = (words.next()?, words.nth(2)?);
        let is_it = sort == "FLOCK" && words.next()?.rsplit(':').next() == Some(&number);
        is_it.then(|| pid.to_owned())
    });
    let has_open = |pid: &String| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut found_by = open.filter_map(|entry| std::fs::metadata(entry.path()).ok());
        found_by.any(|open| (open.dev(), open.ino()) == (found.dev(), found.ino()))
    };
    let candidates: Vec<String> = candidates.collect();
    // A process that was killed a moment ago has no open files; its child still has.
    let gone = |pid: &&String| !Path::new(&format!("/proc/{pid}")).exists();
    let found = candidates.iter().find(|pid| has_open(pid));
    found.or_else(|| candidates.iter().find(gone)).cloned()
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Writes this process into the lock file as its owner.
pub(super) fn name(mut file: &File, epoch: u64) -> std::io::Result<()> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_secs());
    let text = format!("{}\n{epoch}\n{since}\n{}\n", std::process::id(), host());
    // Written in one piece and truncated afterwards, so that a concurrent reader always finds an owner.
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_data()
}
