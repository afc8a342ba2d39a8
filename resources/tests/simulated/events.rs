//! Compares the events of the simulated host with those of inotify, for random sequences of calls on both.
//!
//! An extra event of the simulated host would hide a drift that a real host does not report.

use crate::matches_kernel::{Actor, Step, step};
use proptest::prelude::*;
use rustix::fs::Mode;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::LazyLock;
use steadfast_resources::host::simulated::{Changed, Machine};

/// The directories that can exist.
const DIRECTORIES: [&str; 8] = ["", "a", "b", "d", "d/a", "d/e", "d/e/b", "l"];

/// The events that the daemon watches, except the end of writing: the simulated host does not see descriptors
/// being closed.
const MASK: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);

const STRUCTURAL: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

/// An event: the directory by its path before the step, a name inside, and true if the name appeared or
/// disappeared.
type Events = (String, Vec<u8>, bool);

/// One instance for all tests: the kernel takes long to close an instance.
static INOTIFY: LazyLock<OwnedFd> = LazyLock::new(|| {
    inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("an instance")
});

/// Returns the kernel's events of one step.
fn by_kernel(folder: &Path, act: impl FnOnce()) -> BTreeSet<Events> {
    let mut watched = BTreeMap::new();
    // Uses each directory's own name and no link above, as the simulated host does.
    let own = |path: &&str| {
        let above = folder.join(path);
        let above = above.parent().expect("a folder");
        std::fs::canonicalize(above).is_ok_and(|found| found == above)
    };
    for directory in DIRECTORIES.into_iter().filter(own) {
        match inotify::add_watch(&*INOTIFY, folder.join(directory), MASK) {
            Ok(number) => drop(watched.insert(number, directory.to_owned())),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => panic!("{directory}: {errno}"),
        }
    }
    drop(news(&watched));
    act();
    news(&watched)
}

/// Returns the events since the last call, for the presently watched directories.
fn news(watched: &BTreeMap<i32, String>) -> BTreeSet<Events> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 8192];
    let mut reader = Reader::new(&*INOTIFY, &mut buffer);
    let mut told = BTreeSet::new();
    while let Ok(event) = reader.next() {
        let is_end = event.events().contains(ReadFlags::IGNORED);
        let Some(directory) = watched.get(&event.wd()).filter(|_| !is_end) else { continue };
        let name = event.file_name().map(|name| name.to_bytes().to_vec()).unwrap_or_default();
        let is_structural = event.events().intersects(STRUCTURAL);
        told.insert((directory.clone(), name, is_structural));
    }
    told
}

/// Returns the simulated host's events of one step. The disappearance of a directory itself is left out,
/// because the simulated host reports it differently.
fn by_twin(machine: &Machine, folder: &Path, act: impl FnOnce()) -> BTreeSet<Events> {
    let inos = machine.look(|tree| {
        let there =
            DIRECTORIES.iter().filter_map(|path| Some((tree.ino(folder.join(path))?, *path)));
        there.collect::<BTreeMap<_, _>>()
    });
    drop(machine.take_changes());
    {
        let _entered = machine.enter();
        act();
    }
    let changes = machine.take_changes().into_iter().filter_map(|change| {
        let Changed { directory, name, structural } = change;
        let is_itself_gone = name.is_empty() && structural;
        let path = inos.get(&directory)?;
        (!is_itself_gone).then(|| ((*path).to_owned(), name, structural))
    });
    changes.collect()
}

/// Returns true if the step works through a descriptor: if the file has lost its name since the opening, the
/// kernel still reports that name.
fn is_by_descriptor(step: &Step) -> bool {
    matches!(step, Step::Write(..) | Step::Truncate(..) | Step::ModeOf(..) | Step::Attribute(..))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    /// The simulated host reports no event that the kernel does not report, and every name that appears or
    /// disappears.
    #[test]
    fn the_twin_tells_what_inotify_tells(steps in prop::collection::vec(step(), 1..40)) {
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
            let kernel = by_kernel(&there, || drop(real.act(step)));
            let simulated = by_twin(&machine, &there, || drop(simulated.act(step)));
            let more: Vec<_> = simulated.difference(&kernel).collect();
            let less: Vec<_> = kernel
                .difference(&simulated)
                .filter(|(_, _, structural)| *structural || !is_by_descriptor(step))
                .collect();
            prop_assert!(more.is_empty(), "more: {:?} by {:?} of {:?}", more, step, steps);
            prop_assert!(less.is_empty(), "less: {:?} by {:?} of {:?}", less, step, steps);
        }
    }
}
