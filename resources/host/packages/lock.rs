//! Finds the owner of the package manager's lock, from the kernel and from the messages of apt and dpkg.

use crate::host::Finished;
use crate::host::process::spawner;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use std::fs::File;

/// The lock files of apt and dpkg.
const LOCKS: [&str; 3] =
    ["/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/cache/apt/archives/lock"];

/// Returns the present owner of a lock. None can also mean unknown: the package manager itself then reports
/// the lock.
pub(super) async fn holder_now() -> Option<String> {
    #[cfg(feature = "simulated-host")]
    if super::simulated::is_here() {
        return None;
    }
    let handle = spawner::handle().ok()?;
    handle.spawn_blocking(|| LOCKS.iter().find_map(|path| holder_of(path))).await.ok()?
}

fn holder_of(path: &str) -> Option<String> {
    let file = File::open(path).ok()?;
    let mut found = libc::flock {
        l_type: i16::try_from(libc::F_WRLCK).ok()?,
        l_whence: i16::try_from(libc::SEEK_SET).ok()?,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_GETLK(&mut found)).ok()?;
    if i32::from(found.l_type) == libc::F_UNLCK {
        return None;
    }
    // A lock of an open file description, or of another process namespace, has no process number.
    if found.l_pid <= 0 {
        return Some("another process".to_owned());
    }
    let name = std::fs::read_to_string(format!("/proc/{}/comm", found.l_pid)).unwrap_or_default();
    Some(format!(
        "process {} ({})",
        found.l_pid,
        crate::secrets::escape::short(name.trim_end(), 40)
    ))
}

/// Returns the owner of the lock if a command failed because of the lock.
pub(super) fn holder(finished: &Finished) -> Option<String> {
    if finished.is_success() {
        return None;
    }
    let text = finished.stderr.text();
    let is_lock = |line: &&str| {
        line.contains("Could not get lock")
            || line.contains("lock was locked by another process")
            // The message of debconf.
            || line.contains("is locked by another process")
    };
    let line = text.lines().find(is_lock)?;
    let process = line.split_once("process ").map(|(_, process)| process);
    let process = process.map(|process| process.trim_start_matches("with pid ").trim());
    let is_named = |process: &&str| process.starts_with(|first: char| first.is_ascii_digit());
    Some(
        process
            .filter(is_named)
            .map_or_else(|| "another process".to_owned(), |it| format!("process {it}")),
    )
}

#[cfg(test)]
mod tests {
    use super::holder;
    use crate::host::{Captured, End, Finished};

    #[test]
    fn the_lock_holder_is_read() {
        for (said, found) in [
            (
                "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 8 (perl)\nN: x\n",
                Some("process 8 (perl)"),
            ),
            (
                "dpkg: error: dpkg frontend lock was locked by another process with pid 9\n",
                Some("process 9"),
            ),
            ("E: Could not get lock /var/lib/dpkg/lock - open (11)\n", Some("another process")),
            (
                "debconf: DbDriver \"config\": /var/cache/debconf/config.dat is locked by another \
                 process: Resource temporarily unavailable\n",
                Some("another process"),
            ),
            ("E: Unable to locate package x\n", None),
        ] {
            let mut stderr = Captured::default();
            stderr.push(said.as_bytes());
            let stdout = Captured::default();
            let finished = Finished { end: End::Exited(100), stdout, stderr, held: false };
            assert_eq!(holder(&finished).as_deref(), found, "{said}");
        }
    }
}
