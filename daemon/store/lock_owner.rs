//! Who holds a state directory: the one that has its lock file locked.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Of whom it is not known.
const UNKNOWN: &str = "unknown";

/// Process, epoch, since when (in seconds since 1970), on which host.
pub(super) struct LockOwner {
    pub(super) pid: String,
    pub(super) epoch: u64,
    pub(super) since: Option<u64>,
    pub(super) host: Option<String>,
}

impl LockOwner {
    /// Who has this file locked, as the kernel tells, with what the file says of that one; who has written nothing yet is not in it. Of a
    /// process that the kernel does not show us, such as one of another container, the file alone is asked.
    pub(super) fn find(file: &mut File) -> std::io::Result<Self> {
        let said = Self::said(file)?;
        Ok(match locker(file) {
            Some(pid) if pid != said.pid => {
                Self { pid, since: None, host: Some(host()), epoch: said.epoch }
            }
            _ => said,
        })
    }

    /// What the file says: of who holds it, or of the last who has written.
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

    /// Killed a moment ago: a child that it was starting has the file open until its exec.
    pub(super) fn is_gone(&self) -> bool {
        self.pid.parse::<u32>().is_ok_and(|pid| !Path::new(&format!("/proc/{pid}")).exists())
    }
}

/// Who has locked a file (`proc_locks(5)`). Its device is not told there as everywhere else (btrfs, overlayfs): who has this very file
/// open, and a file of that number locked, is the one.
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
    // One that was killed a moment ago has nothing open any more, and a child of it has.
    let gone = |pid: &&String| !Path::new(&format!("/proc/{pid}")).exists();
    let found = candidates.iter().find(|pid| has_open(pid));
    found.or_else(|| candidates.iter().find(gone)).cloned()
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Says that it is this process.
pub(super) fn name(mut file: &File, epoch: u64) -> std::io::Result<()> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_secs());
    let text = format!("{}\n{epoch}\n{since}\n{}\n", std::process::id(), host());
    // In one piece, and cut afterwards: whoever reads meanwhile finds a holder.
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)?;
    file.sync_data()
}
