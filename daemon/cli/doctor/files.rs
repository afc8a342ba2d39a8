//! The check of the file system of the state directory: its type, its free space, and the time of a sync.

use super::Finding;
use rustix::fs::{Mode, OFlags, StatFs};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The free space in bytes below which there is a problem, and a warning.
const SPACE: (u64, u64) = (32 << 20, 256 << 20);
/// The sync times from which there is a warning, and a problem: each change waits for a sync.
const SLOW: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// The name of a file system; then the reason against it, if there is one, and true if that is a problem.
type Kind = (&'static str, Option<(&'static str, bool)>);

/// File systems by the magic number of the kernel.
const KINDS: [(u64, Kind); 15] = [
    (0x0102_1994, ("tmpfs", Some(("the state is lost when the host restarts", false)))),
    (0x8584_58f6, ("ramfs", Some(("the state is lost when the host restarts", false)))),
    (0x6969, ("nfs", Some(("another host may use the same state, and locks may be lost", true)))),
    (0xff53_4d42, ("cifs", Some(("locks and syncs of a network share are unreliable", true)))),
    (0xfe53_4d42, ("smb", Some(("locks and syncs of a network share are unreliable", true)))),
    (0x0102_1997, ("9p", Some(("locks and syncs of a network share are unreliable", true)))),
    (0x6573_5546, ("fuse", Some(("a FUSE file system may hang or lose synced data", false)))),
    (0x794c_7630, ("overlay", Some(("the upper layer may be removed with the container", false)))),
    (0x9123_683e, ("btrfs", None)),
    (0xef53, ("ext4", None)),
    (0x5846_5342, ("xfs", None)),
    (0x2fc1_2fc1, ("zfs", None)),
    (0xf2f5_2010, ("f2fs", None)),
    (0xca45_1a4e, ("bcachefs", None)),
    (0x7373_6e75, ("squashfs", Some(("the file system is read-only", true)))),
];

pub(super) fn look(state: &Path) -> Vec<Finding> {
    let Some(there) = state.ancestors().find(|folder| folder.exists()) else { return Vec::new() };
    let mut findings = match rustix::fs::statfs(there) {
        Ok(found) => vec![kind(there, &found), space(&found)],
        Err(error) => {
            let says = format!("{}: {error}", there.display());
            vec![Finding::problem("kind", says, "see `findmnt`")]
        }
    };
    findings.extend(sync_time(there));
    findings
}

fn kind(there: &Path, found: &StatFs) -> Finding {
    // The type of the number differs between architectures.
    #[expect(clippy::cast_sign_loss, reason = "the numbers of some file systems fill 32 bits")]
    let number = found.f_type as u64 & 0xffff_ffff;
    let shown = there.display();
    let Some((_, (name, wrong))) = KINDS.iter().find(|(known, _)| *known == number) else {
        return Finding::ok("kind", format!("{shown} is on a file system of type {number:#x}"));
    };
    let on = format!("{shown} is on {name}");
    let advice =
        "store the state on a local disk (`--state-dir`); `findmnt` lists the file systems";
    match wrong {
        None => Finding::ok("kind", on),
        Some((why, false)) => Finding::warning("kind", format!("{on}: {why}"), advice),
        Some((why, true)) => Finding::problem("kind", format!("{on}: {why}"), advice),
    }
}

fn space(found: &StatFs) -> Finding {
    let block = u64::try_from(found.f_bsize).unwrap_or(4096);
    let free = found.f_bavail.saturating_mul(block);
    let says = format!("{} MiB, {} files free", free >> 20, found.f_ffree);
    let advice =
        "free disk space (`df -h`, `df -i`): no changes are made while the state cannot be written";
    // Some file systems have no limit of files.
    let no_files = found.f_files > 0 && found.f_ffree < 64;
    match free {
        free if free < SPACE.0 || no_files => Finding::problem("space", says, advice),
        free if free < SPACE.1 => Finding::warning("space", says, advice),
        _ => Finding::ok("space", says),
    }
}

/// Measures the time to sync a few bytes to an unnamed file; returns `None` without write permission.
fn sync_time(there: &Path) -> Option<Finding> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(there, flags, Mode::RUSR | Mode::WUSR).ok()?;
    let mut file = std::fs::File::from(file);
    let began = Instant::now();
    if let Err(error) = file.write_all(&[0; 4096]).and_then(|()| file.sync_data()) {
        return Some(Finding::problem("sync", error.to_string(), "see the kernel log: `dmesg`"));
    }
    let took = began.elapsed();
    let says = format!("{:.1} ms for 4 KiB", took.as_secs_f64() * 1000.0);
    let advice = "each change waits for this sync: `iostat -x 1` shows the load of the disk";
    Some(match took {
        took if took > SLOW.1 => Finding::problem("sync", says, advice),
        took if took > SLOW.0 => Finding::warning("sync", says, advice),
        _ => Finding::ok("sync", says),
    })
}
