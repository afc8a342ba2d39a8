//! The check of the package manager: its lock, and interrupted work.

use super::Finding;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

const LOCKS: [&str; 2] = ["/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock"];
/// The directory of unfinished updates.
const UPDATES: &str = "/var/lib/dpkg/updates";

pub(super) fn look() -> Vec<Finding> {
    if !Path::new(steadfast_resources::host::packages::STATUS).exists() {
        return vec![Finding::ok("dpkg", "not installed: `pkg` cannot be used")];
    }
    let held = fs::read_to_string("/proc/locks").unwrap_or_default();
    let holder = LOCKS.iter().find_map(|path| {
        let found = fs::metadata(path).ok()?;
        Some((path, holder(&held, found.dev(), found.ino())?))
    });
    let lock = match holder {
        None => Finding::ok("lock", "free"),
        Some((path, pid)) => {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let says = format!("{path} is held by process {pid} ({})", name.trim());
            Finding::warning(
                "lock",
                says,
                format!("`pkg` waits for this process: `ps -fp {pid}` shows it"),
            )
        }
    };
    let cut_off = fs::read_dir(UPDATES).is_ok_and(|mut entries| entries.next().is_some());
    let whole = if cut_off {
        let advice = "run `dpkg --configure -a`; `pkg` also does so first";
        Finding::warning("state", "an earlier dpkg run was interrupted", advice)
    } else {
        Finding::ok("state", "no interrupted dpkg run")
    };
    vec![lock, whole]
}

/// Returns the process that has a lock on a file, from lines like `1: POSIX  ADVISORY  WRITE 123 fe:01:4567 0 EOF`.
fn holder(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "WRITE").skip(1);
        let pid = words.next()?.parse().ok()?;
        (words.next()? == file).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::holder;

    #[test]
    fn the_holder_of_a_lock_is_found() {
        let locks = "1: POSIX  ADVISORY  WRITE 12 fe:01:7 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 13 fe:01:70 0 EOF\n\
                     2: -> POSIX ADVISORY  WRITE 14 fe:01:71 0 EOF\n";
        let device = rustix::fs::makedev(0xfe, 1);
        assert_eq!(holder(locks, device, 7), Some(12));
        assert_eq!(holder(locks, device, 70), Some(13));
        assert_eq!(holder(locks, device, 700), None);
    }
}
