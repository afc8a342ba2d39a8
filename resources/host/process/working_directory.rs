//! The working directory of a command: entered with the rights of the command's user, or, for root, without
//! links of other users.
//!
//! A user can replace a directory by a link at any moment, so root's command enters the directory that was
//! opened on a walk without links, and another user's command enters its directory after the change of user.

use super::capture::Captured;
use super::{End, run_as::Switch};
use crate::failure::Failure;
use crate::host::Command;
use crate::host::files::is_from_before;
use crate::host::input_trust::{LINKS_AT_MOST, Reader, name};
use crate::secrets::escape::short;
use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The exit code of `env` for its own failures.
const ENV_FAILED: i32 = 125;

/// The words of `env` for a directory that it cannot enter.
const NOT_ENTERED: &str = ": cannot change directory to ";

/// The way into a working directory.
#[derive(Debug)]
pub(in crate::host) enum Entry {
    /// The directory is entered at the start, by its path.
    Named(PathBuf),
    /// The directory is entered at the start, by its open descriptor.
    Opened(OwnedFd),
    /// The directory is entered after the change of user.
    AfterSwitch(PathBuf),
}

impl Entry {
    /// Finds the way into a directory for a command with this change of user. Fails for a directory that is
    /// missing, and for a link that root must not follow.
    pub(in crate::host) fn new(cwd: &Path, switch: Option<&Switch>) -> Result<Self, Failure> {
        if cwd == Path::new("/") {
            return Ok(Self::Named(cwd.to_owned()));
        }
        let reader = Reader::here();
        if switch.is_some_and(|switch| switch.uid() != 0) {
            return match exists(cwd) {
                // The user may have rights that root lacks, as on a network file system.
                Err(Errno::ACCESS) | Ok(()) => Ok(Self::AfterSwitch(cwd.to_owned())),
                Err(why) => Err(unusable(cwd, why)),
            };
        }
        if !reader.is_strict() {
            return exists(cwd).map_err(|why| unusable(cwd, why)).map(|()| Self::Named(cwd.into()));
        }
        Walk::begin(reader).and_then(|walk| walk.follow(cwd)).map(Self::Opened).map_err(|stop| {
            match stop {
                Stop::Errno(why) => unusable(cwd, why),
                Stop::Link(doubt) => Failure::new(format!(
                    "cwd {} leads through a link of somebody else\n{doubt}",
                    short(&cwd.to_string_lossy(), 50)
                ))
                .hint("declare the directory itself, or let root own the link and all folders above it"),
            }
        })
    }

    /// Returns the directory in which the first program starts. The path is valid while this value lives.
    pub(in crate::host) fn at_start(&self) -> PathBuf {
        match self {
            Self::Named(path) => path.clone(),
            Self::Opened(opened) => format!("/proc/self/fd/{}", opened.as_raw_fd()).into(),
            Self::AfterSwitch(_) => "/".into(),
        }
    }

    /// Returns the option of `env` that enters the directory.
    pub(in crate::host) fn option(&self) -> Option<OsString> {
        let Self::AfterSwitch(path) = self else { return None };
        let mut option = OsString::from("--chdir=");
        option.push(path);
        Some(option)
    }
}

/// Returns the failure of a command whose user may not enter the directory. The program was not started then,
/// so its exit code is no answer.
pub(in crate::host) fn not_entered(
    command: &Command,
    end: End,
    stderr: &Captured,
) -> Option<Failure> {
    let cwd = command.cwd.as_ref()?;
    let user = command.user.as_ref()?;
    let first = stderr.last_lines(1).pop()?;
    let (_, why) = first.split_once(NOT_ENTERED).filter(|_| end == End::Exited(ENV_FAILED))?;
    let why = why.rsplit_once(": ").map_or(why, |(_, why)| why);
    let (cwd, user) = (short(&cwd.to_string_lossy(), 50), short(user, 20));
    let what = format!("user {user} cannot enter cwd {cwd}");
    let hint =
        "let the user enter the directory and all folders above it, or declare another `cwd`";
    Some(Failure::new(format!("{what}\n{why}")).hint(hint))
}

fn exists(cwd: &Path) -> Result<(), Errno> {
    match cwd.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Errno::NOTDIR),
        Err(why) => Err(Errno::from_io_error(&why).unwrap_or(Errno::IO)),
    }
}

fn unusable(cwd: &Path, why: Errno) -> Failure {
    let cwd = short(&cwd.to_string_lossy(), 60);
    if why == Errno::NOTDIR {
        return Failure::new(format!("cwd {cwd} is not a directory"));
    }
    Failure::new(format!("cwd {cwd} cannot be used: {}", std::io::Error::from(why)))
        .hint("make the directory first: a `file` resource before this one")
}

/// The reason why a walk ends early.
#[derive(Debug)]
enum Stop {
    Errno(Errno),
    /// An untrusted user's access to a link.
    Link(String),
}

impl From<Errno> for Stop {
    fn from(why: Errno) -> Self {
        Self::Errno(why)
    }
}

/// A walk from directory to directory, each opened without following a link. The verdict concerns what was
/// opened, even if somebody renames or replaces it meanwhile.
#[derive(Debug)]
struct Walk {
    reader: Reader,
    here: PathBuf,
    folder: OwnedFd,
    stat: Stat,
    links: usize,
    /// An untrusted user can change what is found from here on.
    doubt: Option<String>,
}

impl Walk {
    fn begin(reader: Reader) -> Result<Self, Stop> {
        let (folder, stat) = open(CWD, OsStr::new("/"))?;
        Ok(Self { reader, here: "/".into(), folder, stat, links: 0, doubt: None })
    }

    fn follow(mut self, path: &Path) -> Result<OwnedFd, Stop> {
        let mut left: VecDeque<OsString> = path.components().filter_map(name).collect();
        while let Some(step) = left.pop_front() {
            let (found, stat) = open(&self.folder, &step)?;
            if step == ".." {
                self.here.pop();
                (self.folder, self.stat) = (found, stat);
                continue;
            }
            let next = self.here.join(&step);
            if self.doubt.is_none() {
                self.doubt = self.reader.wrong_above(&self.here, &self.stat, &stat);
            }
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    (self.here, self.folder, self.stat) = (next, found, stat);
                }
                FileType::Symlink => {
                    self.judge(&next, &stat)?;
                    let target = readlinkat(&found, "", Vec::new()).map_err(Stop::Errno)?;
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        self.here = "/".into();
                        (self.folder, self.stat) = open(CWD, OsStr::new("/"))?;
                    }
                    let steps: Vec<OsString> = target.components().filter_map(name).collect();
                    steps.into_iter().rev().for_each(|step| left.push_front(step));
                }
                _ => return Err(Stop::Errno(Errno::NOTDIR)),
            }
        }
        Ok(self.folder)
    }

    /// Rejects a link that an untrusted user owns or could have placed.
    fn judge(&mut self, link: &Path, stat: &Stat) -> Result<(), Stop> {
        self.links += 1;
        if self.links > LINKS_AT_MOST {
            return Err(Stop::Errno(Errno::LOOP));
        }
        let (path, link) = (link, short(&link.to_string_lossy(), 200));
        if !self.reader.believes(stat.st_uid) {
            return Err(Stop::Link(format!("the link {link} belongs to uid {}", stat.st_uid)));
        }
        if is_from_before(path, stat.st_uid) {
            return Err(Stop::Link(format!(
                "the link {link} is older than the present rights of its directory"
            )));
        }
        match &self.doubt {
            Some(doubt) => Err(Stop::Link(format!("the link {link} can be replaced: {doubt}"))),
            None => Ok(()),
        }
    }
}

/// Opens a directory, or else the object itself, without following a link.
fn open(folder: impl AsFd, name: &OsStr) -> Result<(OwnedFd, Stat), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // With DIRECTORY the kernel also mounts what is mounted on demand.
    let opened = match openat(&folder, name, flags | OFlags::DIRECTORY, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => openat(&folder, name, flags, Mode::empty()),
        result => result,
    }?;
    let stat = fstat(&opened)?;
    Ok((opened, stat))
}
