//! Compares the simulated host with the kernel: random sequences of calls on both, with every result
//! compared.

use proptest::prelude::*;
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Uid, XattrFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use steadfast_resources::host::calls;
use steadfast_resources::host::simulated::Machine;

/// Names with many interactions.
const NAMES: [&str; 9] = ["a", "b", "d", "d/a", "d/e", "d/e/b", "l", "d/l", "d/."];
const TARGETS: [&str; 6] = ["a", "d", "../a", "l", "e", "/nowhere/at/all"];

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Open(usize, u8),
    Close(usize),
    Unnamed(usize),
    Name(usize, usize),
    Write(usize, Vec<u8>, u8),
    Read(usize),
    Truncate(usize, u8),
    Directory(usize),
    Link(usize, usize),
    Hard(usize, usize),
    Unlink(usize, bool),
    Rename(usize, usize, u8),
    Mode(usize, u16),
    ModeOf(usize, u16),
    Owner(usize, u32, u32),
    Attribute(usize, u8),
    List(usize),
    Target(usize),
    Strict(usize),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    let file = 0..3_usize;
    prop_oneof![
        4 => (name.clone(), 0..6_u8).prop_map(|(n, how)| Step::Open(n, how)),
        1 => file.clone().prop_map(Step::Close),
        2 => name.clone().prop_map(Step::Unnamed),
        2 => (file.clone(), name.clone()).prop_map(|(f, n)| Step::Name(f, n)),
        3 => (file.clone(), prop::collection::vec(any::<u8>(), 0..5), 0..6_u8)
            .prop_map(|(f, bytes, at)| Step::Write(f, bytes, at)),
        2 => file.clone().prop_map(Step::Read),
        1 => (file.clone(), 0..6_u8).prop_map(|(f, to)| Step::Truncate(f, to)),
        4 => name.clone().prop_map(Step::Directory),
        3 => (0..TARGETS.len(), name.clone()).prop_map(|(t, n)| Step::Link(t, n)),
        2 => (name.clone(), name.clone()).prop_map(|(a, b)| Step::Hard(a, b)),
        3 => (name.clone(), any::<bool>()).prop_map(|(n, d)| Step::Unlink(n, d)),
        5 => (name.clone(), name.clone(), 0..3_u8).prop_map(|(a, b, f)| Step::Rename(a, b, f)),
        2 => (name.clone(), 0..0o10000_u16).prop_map(|(n, m)| Step::Mode(n, m)),
        1 => (file.clone(), 0..0o10000_u16).prop_map(|(f, m)| Step::ModeOf(f, m)),
        2 => (name.clone(), 0..3_u32, 0..3_u32).prop_map(|(n, u, g)| Step::Owner(n, u, g)),
        1 => (file, any::<u8>()).prop_map(|(f, v)| Step::Attribute(f, v)),
        2 => name.clone().prop_map(Step::List),
        1 => name.clone().prop_map(Step::Target),
        1 => name.prop_map(Step::Strict),
    ]
}

/// Performs steps below a folder and returns their results.
pub(crate) struct Actor {
    folder: PathBuf,
    files: [Option<OwnedFd>; 3],
    next: usize,
}

impl Actor {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), files: [None, None, None], next: 0 }
    }

    fn path(&self, name: usize) -> PathBuf {
        // Joined as text, because `d/.` must stay unchanged.
        PathBuf::from(format!("{}/{}", self.folder.display(), NAMES[name]))
    }

    fn keep(&mut self, opened: Result<OwnedFd, Errno>) -> Result<String, Errno> {
        self.files[self.next] = Some(opened?);
        self.next = (self.next + 1) % 3;
        Ok(String::new())
    }

    fn file(&self, number: usize) -> Result<&OwnedFd, Errno> {
        self.files[number].as_ref().ok_or(Errno::BADF)
    }

    #[expect(clippy::too_many_lines, reason = "a table of calls")]
    pub(crate) fn act(&mut self, step: &Step) -> Result<String, Errno> {
        let done = |()| String::new();
        match step {
            Step::Open(name, how) => {
                let flags = [
                    OFlags::RDONLY,
                    OFlags::RDWR,
                    OFlags::RDWR | OFlags::CREATE,
                    OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
                    OFlags::RDONLY | OFlags::NOFOLLOW,
                    OFlags::PATH | OFlags::NOFOLLOW,
                ][*how as usize];
                let mode = Mode::from_raw_mode(0o600);
                let opened = calls::openat(CWD, self.path(*name), flags | OFlags::CLOEXEC, mode);
                self.keep(opened)
            }
            Step::Close(file) => {
                Ok(self.files[*file].take().map(|_| String::new()).unwrap_or_default())
            }
            Step::Unnamed(name) => {
                let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
                let opened = calls::openat(CWD, self.path(*name), flags, Mode::RUSR);
                self.keep(opened)
            }
            Step::Name(file, name) => {
                let file = self.file(*file)?;
                let flags = AtFlags::EMPTY_PATH;
                calls::linkat(file, "", CWD, self.path(*name), flags).map(done)
            }
            Step::Write(file, bytes, at) => {
                let count = calls::pwrite(self.file(*file)?, bytes, u64::from(*at))?;
                Ok(count.to_string())
            }
            Step::Read(file) => {
                let mut buffer = Vec::with_capacity(3);
                calls::read(self.file(*file)?, &mut buffer)?;
                Ok(format!("{buffer:?}"))
            }
            Step::Truncate(file, to) => {
                calls::ftruncate(self.file(*file)?, u64::from(*to)).map(done)
            }
            Step::Directory(name) => {
                calls::mkdirat(CWD, self.path(*name), Mode::from_raw_mode(0o700)).map(done)
            }
            Step::Link(target, name) => {
                calls::symlinkat(TARGETS[*target], CWD, self.path(*name)).map(done)
            }
            Step::Hard(old, new) => {
                let flags = AtFlags::empty();
                calls::linkat(CWD, self.path(*old), CWD, self.path(*new), flags).map(done)
            }
            Step::Unlink(name, directory) => {
                let flags = if *directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                calls::unlinkat(CWD, self.path(*name), flags).map(done)
            }
            Step::Rename(old, new, flags) => {
                let flags = [RenameFlags::empty(), RenameFlags::NOREPLACE, RenameFlags::EXCHANGE]
                    [*flags as usize];
                calls::renameat_with(CWD, self.path(*old), CWD, self.path(*new), flags).map(done)
            }
            Step::Mode(name, mode) => {
                let mode = Mode::from_raw_mode(u32::from(*mode));
                calls::chmodat(CWD, self.path(*name), mode, AtFlags::empty()).map(done)
            }
            Step::ModeOf(file, mode) => {
                calls::fchmod(self.file(*file)?, Mode::from_raw_mode(u32::from(*mode))).map(done)
            }
            Step::Owner(name, uid, gid) => {
                let uid = (*uid > 0).then(|| Uid::from_raw(*uid));
                let gid = (*gid > 0).then(|| Gid::from_raw(*gid));
                // Through a handle, as this crate does.
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let handle = calls::openat(CWD, self.path(*name), flags, Mode::empty())?;
                calls::chownat(&handle, "", uid, gid, AtFlags::EMPTY_PATH).map(done)
            }
            Step::Attribute(file, value) => {
                let file = self.file(*file)?;
                calls::fsetxattr(file, "user.test", &[*value], XattrFlags::empty())?;
                let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
                let mut value = [0; 8];
                let length = calls::getxattr(path, "user.test", &mut value)?;
                Ok(format!("{:?}", &value[..length]))
            }
            Step::List(name) => {
                let mut names = Vec::new();
                let directory = calls::openat(
                    CWD,
                    self.path(*name),
                    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                    Mode::empty(),
                )?;
                for name in calls::names(&directory)? {
                    names.push(name?);
                }
                names.sort();
                Ok(format!("{names:?}"))
            }
            Step::Target(name) => {
                let target = calls::readlinkat(CWD, self.path(*name), Vec::new())?;
                Ok(format!("{target:?}"))
            }
            Step::Strict(name) => {
                let flags = OFlags::PATH | OFlags::CLOEXEC;
                let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
                let opened = calls::openat2(CWD, self.path(*name), flags, Mode::empty(), resolve);
                self.keep(opened)
            }
        }
    }

    /// Returns all properties of every name and of every open file.
    fn look(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (number, name) in NAMES.iter().enumerate() {
            let stat = calls::statat(CWD, self.path(number), AtFlags::SYMLINK_NOFOLLOW);
            all.push(format!("{name}: {:?}", stat.map(|stat| told(&stat))));
        }
        for file in self.files.iter().flatten() {
            all.push(format!("{:?}", calls::fstat(file).map(|stat| told(&stat))));
        }
        all
    }
}

/// Returns the properties that are equal on two machines.
fn told(stat: &rustix::fs::Stat) -> (u32, u32, u32, Option<u64>, Option<i64>) {
    let is_directory = stat.st_mode & 0o170_000 == 0o040_000;
    // The size of a directory depends on the file system.
    let size = (!is_directory).then_some(stat.st_size);
    (stat.st_mode, stat.st_uid, stat.st_gid, Some(stat.st_nlink), size)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    /// Every result and the final state are equal on the simulated host and on the kernel.
    #[test]
    fn the_twin_is_one(steps in prop::collection::vec(step(), 1..40)) {
        super::support::demand_root();
        rustix::process::umask(Mode::from_raw_mode(0o077));
        let scratch = tempfile::tempdir_in("/dev/shm").expect("a file system with every call");
        let machine = Machine::default();
        let there = scratch.path().join("top");
        std::fs::create_dir(&there).expect("made");
        machine.make_directories(&there).expect("made");
        machine.chmod(&there, 0o700).expect("changed");
        let (mut real, mut simulated) = (Actor::new(&there), Actor::new(&there));
        for step in &steps {
            let by_kernel = (real.act(step), real.look());
            let by_twin = {
                let _entered = machine.enter();
                (simulated.act(step), simulated.look())
            };
            prop_assert_eq!(by_kernel, by_twin, "{:?} of {:?}", step, steps);
        }
    }
}
