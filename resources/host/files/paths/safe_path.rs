//! Resolves the directory of a file safely: a link that another user could change is never followed (S-1).

use crate::failure::Failure;
use crate::host::files::fault::{Fault, printable, said};
use crate::host::files::paths::entry::EntryStat;
use crate::host::files::takeover::marks::is_born_before;
use crate::host::kernel::{born_at, fstat, getxattr, openat, openat2, readlinkat};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

/// The limit of followed links, equal to the kernel's limit.
const LINKS_AT_MOST: usize = 40;

const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the directory at an absolute path, for lookups inside.
///
/// One system call is enough if no part is a link; else a walk examines each link and the directories around.
pub(in crate::host::files) fn open_directory(path: &Path, own_uid: u32) -> Result<OwnedFd, Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, flags, Mode::empty(), resolve) {
        Ok(directory) => Ok(directory),
        // A link on the way, or a kernel or sandbox without this system call.
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::AGAIN | Errno::NOTDIR) => {
            SafeWalk::start(path, own_uid)?.finish()
        }
        Err(errno) => Err(Fault::os("open the directory of")(errno)),
    }
}

/// Opens a path for reading, with links as the last part followed by the same rules. Returns the directory
/// and the name inside (`.` for a directory itself).
pub(in crate::host::files) fn open_followed(
    path: &Path,
    own_uid: u32,
) -> Result<(OwnedFd, OsString), Fault> {
    let mut walk = SafeWalk::start(path, own_uid)?;
    let (name, owner) = match walk.run()? {
        Some((name, stat)) => (name, stat.st_uid),
        None => (".".into(), walk.here().stat.st_uid),
    };
    Ok((walk.arrive(owner)?, name))
}

/// Opens all directories on the way to an absolute path, from the root to the path itself.
pub(in crate::host::files) fn open_way(
    path: &Path,
    own_uid: u32,
) -> Result<Vec<(OwnedFd, EntryStat)>, Fault> {
    let mut walk = SafeWalk::start(path, own_uid)?;
    if walk.run()?.is_some() {
        return Err(Fault::os("open the directory of")(Errno::NOTDIR));
    }
    let each = walk.passed.into_iter();
    Ok(each.map(|passed| (passed.handle, EntryStat::of(&passed.stat))).collect())
}

/// A directory on the way, with its state.
struct Passed {
    handle: OwnedFd,
    stat: Stat,
}

struct SafeWalk<'a> {
    asked: &'a Path,
    own_uid: u32,
    /// The directories from the root to the present position: `..` in a link returns to one of these, never
    /// through the file system.
    passed: Vec<Passed>,
    left: VecDeque<OsString>,
    links: usize,
    /// The users who could have changed a followed link: the target must belong to one of them.
    turners: BTreeSet<u32>,
    /// The first link that such a user could have changed.
    turned: Option<OsString>,
}

impl<'a> SafeWalk<'a> {
    fn start(asked: &'a Path, own_uid: u32) -> Result<Self, Fault> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, "/", flags, Mode::empty()).map_err(Fault::os("open / for"))?;
        let stat = fstat(&handle).map_err(Fault::os("look at / for"))?;
        Ok(Self {
            asked,
            own_uid,
            passed: vec![Passed { handle, stat }],
            left: asked.components().filter_map(part).collect(),
            links: 0,
            turners: BTreeSet::new(),
            turned: None,
        })
    }

    fn finish(mut self) -> Result<OwnedFd, Fault> {
        if self.run()?.is_some() {
            return Err(Fault::os("open the directory of")(Errno::NOTDIR));
        }
        let owner = self.here().stat.st_uid;
        self.arrive(owner)
    }

    /// Walks to the end of the path. Returns the last name and its state if the end is no directory.
    fn run(&mut self) -> Result<Option<(OsString, Stat)>, Fault> {
        while let Some(name) = self.left.pop_front() {
            if name.as_bytes() == b".." {
                if self.passed.len() > 1 {
                    self.passed.pop();
                }
                continue;
            }
            let here = &self.here().handle;
            let handle = openat(here, name.as_os_str(), HANDLE, Mode::empty())
                .map_err(Fault::os("open the directory of"))?;
            let stat = fstat(&handle).map_err(Fault::os("look at the directory of"))?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.passed.push(Passed { handle, stat }),
                FileType::Symlink => self.follow(&name, &handle, &stat)?,
                _ if self.left.is_empty() => return Ok(Some((name, stat))),
                _ => return Err(Fault::os("open the directory of")(Errno::NOTDIR)),
            }
        }
        Ok(None)
    }

    fn here(&self) -> &Passed {
        // The root is never popped.
        &self.passed[self.passed.len() - 1]
    }

    /// Follows a link that only root, the user of this process, or the owner of the target (checked on arrival)
    /// could have made.
    fn follow(&mut self, name: &OsStr, link: &OwnedFd, stat: &Stat) -> Result<(), Fault> {
        self.links += 1;
        if self.links > LINKS_AT_MOST {
            return Err(Fault::os("follow the links of")(Errno::LOOP));
        }
        let last = self.passed.len() - 1;
        for (depth, passed) in self.passed.iter().enumerate() {
            if others_can_write(passed, depth < last) {
                return Err(
                    self.refuse(name, "the parent directory of the link is writable by others")
                );
            }
        }
        let born = born_at(&self.here().handle, name);
        let is_old = self.passed.iter().any(|passed| {
            let path = format!("/proc/self/fd/{}", passed.handle.as_raw_fd());
            is_born_before(Path::new(&path), born, stat.st_uid)
        });
        if is_old {
            return Err(self.refuse(name, "it is older than the present rights of its directory"));
        }
        let owners: Vec<u32> = self.passed.iter().map(|passed| passed.stat.st_uid).collect();
        for uid in owners.into_iter().chain([stat.st_uid]) {
            if uid != 0 && uid != self.own_uid {
                self.turners.insert(uid);
                self.turned.get_or_insert_with(|| name.to_owned());
            }
        }
        let text = readlinkat(link, "", Vec::new()).map_err(Fault::os("read a link of"))?;
        let target = PathBuf::from(OsString::from_vec(text.into_bytes()));
        if target.is_absolute() {
            self.passed.truncate(1);
        }
        for name in target.components().filter_map(part).rev() {
            self.left.push_front(name);
        }
        Ok(())
    }

    fn arrive(mut self, owner: u32) -> Result<OwnedFd, Fault> {
        if self.turners.iter().any(|uid| *uid != owner) {
            let name = self.turned.take().unwrap_or_default();
            return Err(
                self.refuse(&name, "the link can be changed by a user who does not own its target")
            );
        }
        match self.passed.pop() {
            Some(passed) => Ok(passed.handle),
            None => Err(Fault::os("open the directory of")(Errno::NOENT)),
        }
    }

    fn refuse(&self, link: &OsStr, why: &str) -> Fault {
        let link = printable(Path::new(link));
        let path = printable(self.asked);
        Fault::refused(
            Failure::new(format!(
                "the link \"{}\" is not followed: {why}\non the way to {path}",
                { link.chars().take(24).collect::<String>() }
            ))
            .hint(
                "declare the target path of the link; or make the link again, as root, in a directory of root",
            ),
        )
    }
}

fn part(component: Component<'_>) -> Option<OsString> {
    match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    }
}

/// Returns true if a user besides root and the owner could replace an entry of the directory. The sticky bit
/// of a directory above prevents renames by other users; in the directory of the link itself, other users can
/// still make links.
fn others_can_write(directory: &Passed, above: bool) -> bool {
    let mode = directory.stat.st_mode;
    if above && mode & 0o1000 != 0 {
        return false;
    }
    let by_group = mode & 0o020 != 0 && (directory.stat.st_gid != 0 || has_acl(&directory.handle));
    mode & 0o002 != 0 || by_group
}

/// Returns true if the directory has an access list: the group bits are then its mask, and named users may be
/// able to write.
pub(in crate::host::files) fn has_acl(directory: &OwnedFd) -> bool {
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let mut value = [0_u8; 4];
    match getxattr(path, "system.posix_acl_access", &mut value) {
        Ok(_) | Err(Errno::RANGE) => true,
        Err(errno) => errno != Errno::NODATA && errno != Errno::OPNOTSUPP,
    }
}

/// Makes the failure of a missing parent directory.
pub(in crate::host::files) fn no_parent(path: &Path) -> Failure {
    said("reach", path, "the parent directory does not exist")
        .hint("declare the directory too: the graph then orders it first")
}
