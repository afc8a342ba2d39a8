//! Safe resolution of the directory that holds a file: no link that somebody else could turn is ever followed (S-1).

use super::fault::{Fault, printable, said};
use crate::failure::Failure;
use crate::host::kernel::{fstat, getxattr, openat, openat2, readlinkat};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows.
const LINKS_AT_MOST: usize = 40;

const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A descriptor of the directory at this absolute path, for lookups in it.
///
/// One call where no component is a link; else a walk that looks at each link and at the directories that hold it.
pub(super) fn open_directory(path: &Path, own_uid: u32) -> Result<OwnedFd, Fault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, flags, Mode::empty(), resolve) {
        Ok(directory) => Ok(directory),
        // A link on the way; or a kernel or a sandbox that does not know the call.
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::AGAIN | Errno::NOTDIR) => {
            SafeWalk::start(path, own_uid)?.finish()
        }
        Err(errno) => Err(Fault::os("open the directory of")(errno)),
    }
}

/// What is at a path to read from, its last part followed by the same rules: the directory that holds it, and its name there
/// (`.` for a directory itself).
pub(super) fn open_followed(path: &Path, own_uid: u32) -> Result<(OwnedFd, OsString), Fault> {
    let mut walk = SafeWalk::start(path, own_uid)?;
    let (name, owner) = match walk.run()? {
        Some((name, stat)) => (name, stat.st_uid),
        None => (".".into(), walk.here().stat.st_uid),
    };
    Ok((walk.arrive(owner)?, name))
}

/// A directory that was passed, and what is known of it.
struct Passed {
    handle: OwnedFd,
    stat: Stat,
}

struct SafeWalk<'a> {
    asked: &'a Path,
    own_uid: u32,
    /// From the root down to where the walk is: `..` in a link goes back here, never through the file system.
    passed: Vec<Passed>,
    left: VecDeque<OsString>,
    links: usize,
    /// Users who could have turned a link that was followed: the target must be theirs.
    turners: BTreeSet<u32>,
    /// The first link of those.
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

    /// To the end of the path; where that is no directory, its name and what it is.
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

    /// Follows a link that nobody but root, we ourselves or (as seen on arrival) the owner of the target could have made.
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
                "declare the target path of the link, or make root the owner of the link and its directory",
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

/// Whether somebody besides its owner and root could put another entry in the place of one. A sticky directory above does
/// not let strangers rename; one that holds the link itself does let them make links.
fn others_can_write(directory: &Passed, above: bool) -> bool {
    let mode = directory.stat.st_mode;
    if above && mode & 0o1000 != 0 {
        return false;
    }
    let by_group = mode & 0o020 != 0 && (directory.stat.st_gid != 0 || has_acl(&directory.handle));
    mode & 0o002 != 0 || by_group
}

/// With an access list the group bits are its mask: named users may be able to write.
pub(super) fn has_acl(directory: &OwnedFd) -> bool {
    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let mut value = [0_u8; 4];
    match getxattr(path, "system.posix_acl_access", &mut value) {
        Ok(_) | Err(Errno::RANGE) => true,
        Err(errno) => errno != Errno::NODATA && errno != Errno::OPNOTSUPP,
    }
}

/// The parent directory is not there.
pub(super) fn no_parent(path: &Path) -> Failure {
    said("reach", path, "the parent directory does not exist")
        .hint("declare the directory too: the graph then orders it first")
}
