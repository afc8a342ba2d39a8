//! S-11: whoever can change a graph that root reads is root. So root reads no file that others could change.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, open, statat};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// Whose files are believed besides those of root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    own: u32,
    /// Who has become root by `sudo`: that user could have run anything.
    through_sudo: Option<u32>,
}

impl Reader {
    /// This process.
    pub(super) fn here() -> Self {
        let own = rustix::process::geteuid().as_raw();
        let sudo = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        Self { own, through_sudo: sudo.filter(|_| own == 0) }
    }

    /// Whether what is wrong is refused, or only told.
    pub(super) fn is_strict(self) -> bool {
        self.own == 0
    }

    fn believes(self, uid: u32) -> bool {
        uid == 0 || uid == self.own || Some(uid) == self.through_sudo
    }

    /// Who could change an open file besides those who are believed: the file, or a folder above it. Judged by what was
    /// opened, whatever its path leads to by now.
    pub(super) fn doubts(self, file: &File) -> Option<String> {
        let opened = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        let stat = fstat(file).ok()?;
        if let Some(why) = self.wrong_with(&stat) {
            return Some(format!("{} {why}", shown(&opened)));
        }
        let mut below = stat;
        for folder in opened.ancestors().skip(1) {
            let Ok(stat) = statat(CWD, folder, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            // In a sticky folder nobody else renames or removes what is ours.
            let is_held = stat.st_mode & 0o1000 != 0 && self.believes(below.st_uid);
            let wrong = self.wrong_with(&stat).filter(|_| !(is_held && self.believes(stat.st_uid)));
            if let Some(why) = wrong {
                return Some(format!("{} {why}", shown(folder)));
            }
            below = stat;
        }
        None
    }

    fn wrong_with(self, stat: &Stat) -> Option<String> {
        if !self.believes(stat.st_uid) {
            return Some(format!("belongs to uid {}", stat.st_uid));
        }
        let by_group = stat.st_mode & 0o020 != 0 && stat.st_gid != 0;
        let mode = stat.st_mode & 0o7777;
        // The group of a user who is believed is most often that user's alone.
        let own_group = stat.st_gid == stat.st_uid && self.believes(stat.st_uid);
        if stat.st_mode & 0o002 != 0 || (by_group && !own_group) {
            return Some(format!("may be written by others (mode {mode:04o})"));
        }
        None
    }
}

/// Who could change this file or folder besides those who are believed: for who asks before it is read.
pub fn doubts(path: &Path) -> std::io::Result<Option<String>> {
    // A pipe that nobody writes to is not waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    Ok(Reader::here().doubts(&file))
}

fn shown(path: &Path) -> String {
    PathBuf::from(path).display().to_string()
}
