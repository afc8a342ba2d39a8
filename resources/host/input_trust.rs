//! Trust in paths (S-11): a user who can change a file that root reads or runs has the rights of root, so
//! root uses only files that no untrusted user can change.

use super::files::{EntryStat, has_open_mark_at, is_from_before, printable};
use super::kernel::{fstat, getxattr, readlinkat, statat};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// The limit of followed links, equal to the kernel's limit.
pub(in crate::host) const LINKS_AT_MOST: usize = 40;

/// The trusted users of one read or execution, besides root.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    own: u32,
    /// The user who became root by `sudo`: that user could have run anything as root.
    through_sudo: Option<u32>,
    /// The user for whom the file is read or run: that user may change the result anyway.
    beneficiary: Option<u32>,
    /// The graph allows copies of root's private files for the beneficiary, wherever they are.
    lends: bool,
}

impl Reader {
    /// Makes a reader for this process.
    #[must_use]
    pub fn here() -> Self {
        let own = rustix::process::geteuid().as_raw();
        let sudo = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
        Self { own, through_sudo: sudo.filter(|_| own == 0), beneficiary: None, lends: false }
    }

    /// Adds a user who benefits from the read and is therefore trusted.
    #[must_use]
    pub fn on_behalf_of(self, uid: Option<u32>) -> Self {
        Self { beneficiary: uid, ..self }
    }

    /// Sets the graph's consent: with it, files that only root may read may be copied for the beneficiary.
    #[must_use]
    pub fn with_consent(self, lends: bool) -> Self {
        Self { lends, ..self }
    }

    /// Returns true if the reader serves another user without the graph's consent to copy root's private files.
    pub(super) fn reads_for_another(self) -> bool {
        !self.lends && self.beneficiary.is_some_and(|uid| uid != 0 && uid != self.own)
    }

    /// Returns true if doubts are errors; otherwise they are only warnings.
    #[must_use]
    pub fn is_strict(self) -> bool {
        self.own == 0
    }

    /// Returns true if the user is trusted.
    pub(in crate::host) fn believes(self, uid: u32) -> bool {
        uid == 0 || [Some(self.own), self.through_sudo, self.beneficiary].contains(&Some(uid))
    }

    /// Returns a description of an untrusted user's access to an open file or to a folder above. The verdict
    /// concerns the opened file, even if its path leads elsewhere by now.
    #[must_use]
    pub fn untrusted_writer(self, file: &File) -> Option<String> {
        let handle = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let opened = std::fs::read_link(&handle).ok()?;
        let stat = fstat(file).ok()?;
        if let Some(why) = self.wrong_with(&handle, &stat) {
            return Some(format!("{} {why}", printable(&opened)));
        }
        let mut below = stat;
        for folder in opened.ancestors().skip(1) {
            let Ok(stat) = statat(CWD, folder, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if let Some(why) = self.wrong_above(folder, &stat, &below) {
                return Some(why);
            }
            below = stat;
        }
        None
    }

    /// Returns a description of an untrusted user's access to an open file, or to a folder or link on the path by
    /// which the file is named. The path must still lead to the opened file; otherwise the verdict would concern
    /// another path than the one that was used.
    #[must_use]
    pub fn doubts_as_named(self, file: &File, path: &Path) -> Option<String> {
        if let Some(why) = self.untrusted_writer(file) {
            return Some(why);
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if is_own_descriptor(&path) {
            return None;
        }
        let opened = fstat(file).ok()?;
        match self.follow_path(&path) {
            Some(Ok(reached)) if is_same(&reached, &opened) => None,
            Some(Err(why)) => Some(why),
            Some(Ok(_)) | None => {
                Some(format!("{} was replaced after being opened", printable(&path)))
            }
        }
    }

    /// Returns a description of an untrusted user's access to an absolute path: to its object, or to a folder or
    /// link on the way. None if there is no object or no doubt.
    #[must_use]
    pub fn untrusted_on_the_way(self, path: &Path) -> Option<String> {
        self.follow_path(path)?.err()
    }

    /// Follows an absolute path and returns its object, or a description of an untrusted user's access; none if
    /// the path leads nowhere.
    fn follow_path(self, path: &Path) -> Option<Result<Stat, String>> {
        let mut left: VecDeque<OsString> = path.components().filter_map(name).collect();
        let (mut here, mut links) = (PathBuf::from("/"), 0);
        let mut folder = look(&here)?;
        while let Some(name) = left.pop_front() {
            if name == ".." {
                here.pop();
                folder = look(&here)?;
                continue;
            }
            let next = here.join(&name);
            let found = look(&next)?;
            if let Some(why) = self.wrong_above(&here, &folder, &found) {
                return Some(Err(why));
            }
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => (here, folder) = (next, found),
                FileType::Symlink => {
                    links += 1;
                    if !self.believes(found.st_uid) || links > LINKS_AT_MOST {
                        let uid = found.st_uid;
                        return Some(Err(format!(
                            "the link {} belongs to uid {uid}",
                            printable(&next)
                        )));
                    }
                    if is_from_before(&next, found.st_uid) {
                        return Some(Err(format!(
                            "the link {} is older than its directory's present rights",
                            printable(&next)
                        )));
                    }
                    let target = readlinkat(CWD, &next, Vec::new()).ok()?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        here = PathBuf::from("/");
                        folder = look(&here)?;
                    }
                    let names: Vec<OsString> = target.components().filter_map(self::name).collect();
                    names.into_iter().rev().for_each(|name| left.push_front(name));
                }
                _ => return Some(self.judged(&next, found)),
            }
        }
        Some(self.judged(&here, folder))
    }

    fn judged(self, path: &Path, found: Stat) -> Result<Stat, String> {
        match self.wrong_with(path, &found) {
            Some(why) => Err(format!("{} {why}", printable(path))),
            None => Ok(found),
        }
    }

    /// Returns a description of an untrusted user's access to one object in a folder that was examined before.
    #[must_use]
    pub fn doubts_seen(self, path: &Path, seen: &EntryStat) -> Option<String> {
        let why = self.wrong(path, seen.kind, (seen.uid, seen.gid, seen.mode))?;
        Some(format!("{} {why}", printable(path)))
    }

    /// Returns a description of an untrusted user's right to replace an entry of a folder.
    pub(in crate::host) fn wrong_above(
        self,
        folder: &Path,
        stat: &Stat,
        below: &Stat,
    ) -> Option<String> {
        // In a sticky folder, nobody else can rename or remove a trusted user's entry.
        let is_held = stat.st_mode & 0o1000 != 0 && self.believes(below.st_uid);
        if is_held && self.believes(stat.st_uid) {
            return None;
        }
        self.wrong_with(folder, stat).map(|why| format!("{} {why}", printable(folder)))
    }

    fn wrong_with(self, path: &Path, stat: &Stat) -> Option<String> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        self.wrong(path, kind, (stat.st_uid, stat.st_gid, stat.st_mode))
    }

    fn wrong(
        self,
        path: &Path,
        kind: FileType,
        (uid, gid, mode): (u32, u32, u32),
    ) -> Option<String> {
        if !self.believes(uid) {
            return Some(format!("belongs to uid {uid}"));
        }
        if kind == FileType::Symlink {
            let why = "is older than the present rights of its directory";
            return is_from_before(path, uid).then(|| why.to_owned());
        }
        // With an access list, the group bits are its mask: the list may name other users.
        let by_group = mode & 0o020 != 0 && (gid != 0 || has_access_list(path));
        // The group of a trusted user is most often that user's alone.
        let own_group = gid == uid && self.believes(uid) && gid != 0;
        if mode & 0o002 != 0 || (by_group && !own_group) {
            let mode = mode & 0o7777;
            return Some(format!("is writable by others (mode {mode:04o})"));
        }
        if kind == FileType::RegularFile && has_open_mark_at(path) {
            let why = "was writable by others, who may have it open; read it, and put a copy (cp) in its place";
            return Some(why.to_owned());
        }
        None
    }
}

/// Returns a description of another user's access to a file, or to a folder or link on its path, for callers
/// that only report the doubt.
///
/// # Errors
///
/// Returns the error of opening the file.
pub fn untrusted_writer(path: &Path) -> std::io::Result<Option<String>> {
    // O_NONBLOCK: a pipe without a writer must not block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    Ok(Reader::here().doubts_as_named(&file, path))
}

fn look(path: &Path) -> Option<Stat> {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// Returns true for paths of this process's own descriptors, as a shell passes them for `<(…)`: the parent
/// process has opened them, and they may have no other path.
fn is_own_descriptor(path: &Path) -> bool {
    let ours = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];
    let climbs = path.components().any(|part| part == Component::ParentDir);
    !climbs && ours.iter().any(|place| path.starts_with(place))
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Returns the name of a step on a path; none for the root and for `.`.
pub(in crate::host) fn name(component: Component<'_>) -> Option<OsString> {
    match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    }
}

fn has_access_list(path: &Path) -> bool {
    let mut value = [0_u8; 4];
    matches!(getxattr(path, "system.posix_acl_access", &mut value), Ok(_) | Err(Errno::RANGE))
}
