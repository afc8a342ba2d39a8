//! Bare programs: they parse the same text and make the same system calls on two threads, and do nothing else.
//!
//! They run as processes of their own (`hosts bare …`), so that whole processes are compared.

use super::Failure;
use super::report::say;
use super::tree::{File, Graph};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, inotify};
use rustix::fs::{
    fchmod, fdatasync, fstat, fsync, linkat, openat, openat2, renameat, renameat_with, statat,
};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs a bare program on a graph, as the arguments say.
pub(crate) fn main(arguments: &[String]) -> Result<(), Failure> {
    let [program, graph, rest @ ..] = arguments else {
        return Err("bare wants a program and a graph".into());
    };
    if program == "without_state" {
        return super::persistence::without_state(Path::new(graph));
    }
    let files = Graph::read(Path::new(graph))?.resources.file;
    let commits = || rest.first().map_or(Ok(0), |count| count.parse::<usize>());
    match program.as_str() {
        "look" => two_threads(&files, check),
        "make" => {
            let log = Log::new(Path::new(graph), files.len(), commits()?)?;
            two_threads(&files, |file| make(file, &log))
        }
        "chain" => {
            let log = Log::new(Path::new(graph), files.len(), commits()?)?;
            files.iter().try_for_each(|file| make(file, &log))
        }
        "hold" => hold(&files),
        "rewrite" => {
            let first = files.first().ok_or("no files")?;
            super::contention::rewrite(&first.path, commits()?)
        }
        other => Err(format!("no bare program {other}").into()),
    }
}

fn two_threads<F>(files: &[File], work: F) -> Result<(), Failure>
where
    F: Fn(&File) -> Result<(), Failure> + Sync,
{
    let half = |part: &[File]| part.iter().try_for_each(&work).map_err(|e| e.to_string());
    let (first, second) = files.split_at(files.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| half(second));
        half(first)?;
        other.join().unwrap_or_else(|_| Err("the second thread panicked".to_owned()))?;
        Ok(())
    })
}

fn directory_of(file: &File) -> Result<(OwnedFd, &OsStr), Failure> {
    let (parent, name) = (file.path.parent(), file.path.file_name());
    let (Some(parent), Some(name)) = (parent, name) else {
        return Err("a path without a name".into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok((openat2(CWD, parent, flags, Mode::empty(), resolve)?, name))
}

/// Returns true if a file is as declared: directory, attributes and content.
fn is_right(file: &File) -> Result<bool, Failure> {
    let (directory, name) = directory_of(file)?;
    let seen = match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(seen) => seen,
        Err(Errno::NOENT) => return Ok(false),
        Err(errno) => return Err(errno.into()),
    };
    if seen.st_mode & 0o7777 != file.mode()? || seen.st_size != i64::try_from(file.content.len())? {
        return Ok(false);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(&directory, name, flags, Mode::empty())?;
    let mut buffer = [0_u8; 16 * 1024];
    let count = rustix::io::read(&opened, &mut buffer)?;
    Ok(buffer.get(..count) == Some(file.content.as_bytes()))
}

fn check(file: &File) -> Result<(), Failure> {
    if is_right(file)? {
        Ok(())
    } else {
        Err(format!("{} is not right", file.path.display()).into())
    }
}

/// A log with as many syncs as the journal of the daemon.
struct Log {
    file: fs::File,
    done: AtomicUsize,
    total: usize,
    commits: usize,
}

impl Log {
    fn new(graph: &Path, total: usize, commits: usize) -> Result<Self, Failure> {
        let path = graph.with_file_name("bare.log");
        let file = fs::OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { file, done: AtomicUsize::new(0), total, commits })
    }

    fn note(&self, file: &File) -> Result<(), Failure> {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (&self.file).write_all(format!("{}\n", file.path.display()).as_bytes())?;
        // The syncs are spread evenly over the files.
        if done * self.commits / self.total != (done - 1) * self.commits / self.total {
            fdatasync(&self.file)?;
        }
        Ok(())
    }
}

/// Checks a file and creates it: complete and synced before it gets its name, the directory synced afterwards.
fn make(file: &File, log: &Log) -> Result<(), Failure> {
    if is_right(file)? {
        return Ok(());
    }
    let (directory, name) = directory_of(file)?;
    if !matches!(statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT)) {
        return Err("expected nothing there".into());
    }
    let draft = draft(file, &directory)?;
    linkat(&draft, "", &directory, name, AtFlags::EMPTY_PATH)?;
    sync_directory(&directory)?;
    log.note(file)
}

fn draft(file: &File, directory: &OwnedFd) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let draft = openat(directory, ".", flags, Mode::RUSR | Mode::WUSR)?;
    rustix::io::pwrite(&draft, file.content.as_bytes(), 0)?;
    fstat(&draft)?;
    fchmod(&draft, Mode::from_raw_mode(file.mode()?))?;
    fsync(&draft)?;
    Ok(draft)
}

fn sync_directory(directory: &OwnedFd) -> Result<(), Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(fsync(openat(directory, ".", flags, Mode::empty())?)?)
}

/// Waits for file events, checks the named files and restores them; prints a line once it is ready.
fn hold(files: &[File]) -> Result<(), Failure> {
    let watcher = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    let flags = inotify::WatchFlags::MODIFY
        | inotify::WatchFlags::ATTRIB
        | inotify::WatchFlags::MOVED_FROM
        | inotify::WatchFlags::MOVED_TO
        | inotify::WatchFlags::CREATE
        | inotify::WatchFlags::DELETE;
    let mut numbers = HashMap::new();
    let mut by_name = HashMap::new();
    for file in files {
        let (Some(parent), Some(name)) = (file.path.parent(), file.path.file_name()) else {
            continue;
        };
        let number = match numbers.get(parent) {
            Some(number) => *number,
            None => inotify::add_watch(&watcher, parent, flags)?,
        };
        numbers.insert(parent, number);
        by_name.insert((number, name.as_bytes()), file);
    }
    two_threads(files, check)?;
    say("ready");
    let mut buffer = [const { MaybeUninit::uninit() }; 16 * 1024];
    let mut events = inotify::Reader::new(&watcher, &mut buffer);
    loop {
        let event = events.next()?;
        let Some(name) = event.file_name() else { continue };
        if let Some(file) = by_name.get(&(event.wd(), name.to_bytes()))
            && !is_right(file)?
        {
            put_back(file)?;
        }
    }
}

fn put_back(file: &File) -> Result<(), Failure> {
    let (directory, name) = directory_of(file)?;
    let there = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let draft = draft(file, &directory)?;
    let hidden = OsStr::new(".bare-tmp");
    linkat(&draft, "", &directory, hidden, AtFlags::EMPTY_PATH)?;
    if there {
        renameat(&directory, hidden, &directory, name)?;
    } else {
        renameat_with(&directory, hidden, &directory, name, RenameFlags::NOREPLACE)?;
    }
    sync_directory(&directory)
}
