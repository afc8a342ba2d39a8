//! What a run plays on: the clock, the agenda of what happens when, the machine, chance, and the trace.

use crate::adversary::{meddle, shown};
use crate::chance::Chance;
use crate::coverage::Sights;
use crate::listener::Heard;
use crate::profile::Profile;
use crate::trace::Trace;
use crate::world::{FileEvent, Who, World};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Arguments;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;
use steadfast::driver::{DriverEvent, DriverHealth, Job};
use steadfast_resources::host::simulated::{self, Fault, Machine};
use tokio::time::Instant;

/// The stage, as everybody who plays holds it. They all play on one thread.
pub(crate) type Shared = Arc<Mutex<Stage>>;

pub(crate) fn lock(shared: &Shared) -> MutexGuard<'_, Stage> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The machine that this thread stands in.
pub(crate) fn here() -> Machine {
    simulated::here().expect("a run stands in its machine")
}

/// Something that happens at its time.
pub(crate) enum Event {
    /// A check or an apply on a thread is at its system calls; it was asked for then, and changes something or not.
    Job {
        life: u32,
        asked: u64,
        applies: bool,
        work: Job,
    },
    /// The same for one that blocks nobody.
    Task {
        life: u32,
        work: Job,
    },
    /// Its result reaches the driver.
    Result {
        life: u32,
        input: DriverEvent,
    },
    /// The journal writes.
    Write {
        life: u32,
    },
    /// What became of what it wrote is told.
    Written {
        life: u32,
    },
    /// The hub takes some steps.
    Hub {
        life: u32,
    },
    /// The kernel tells what it has to tell.
    FileEvents,
    /// Somebody else does something to the machine.
    Foreign,
    /// The operator does something.
    Operator,
    /// The daemon is killed.
    Kill,
    /// The daemon is started.
    Start,
    /// From now on nothing goes wrong any more.
    Calm,
    /// Is all as declared? The loop is asked, and then judged.
    Look,
    Judge,
}

/// All of it.
pub(crate) struct Stage {
    began: Instant,
    agenda: BTreeMap<(u64, u32, u64), Event>,
    number: u64,
    pub(crate) waker: Option<Waker>,
    pub(crate) trace: Trace,
    pub(crate) sights: Sights,
    pub(crate) world: World,
    pub(crate) profile: Profile,
    pub(crate) chance: Chance,
    /// Faults happen, and somebody else is at work.
    pub(crate) rough: bool,
    /// Which life of the daemon this is.
    pub(crate) life: u32,
    /// So many system calls of the daemon until it is killed within one.
    pub(crate) dies_in: Option<u64>,
    /// It was: nothing that it does has any effect.
    pub(crate) dead: bool,
    /// How often each command runs now, and when its runs began that ended well.
    pub(crate) running: BTreeMap<(u32, String), u32>,
    pub(crate) ran: BTreeMap<String, Vec<u64>>,
    /// When the last run of each was over, however it ended.
    pub(crate) done: BTreeMap<String, u64>,
    pub(crate) heard: Heard,
    /// Changes of these were not told.
    pub(crate) untold: BTreeMap<PathBuf, u64>,
    /// Those whose begin must be kept before they run.
    pub(crate) deeds: BTreeSet<String>,
    /// The paths that commands wait for.
    pub(crate) watched: BTreeSet<PathBuf>,
    /// What each is, as of the graph that was read last.
    pub(crate) definitions: BTreeMap<String, u64>,
    /// Which path each identity is about.
    pub(crate) paths: BTreeMap<String, PathBuf>,
    /// How the loop answered when it was asked last.
    pub(crate) pulse: Option<DriverHealth>,
    /// The begin of these was refused, and none was kept since.
    pub(crate) refused: BTreeSet<String>,
    /// Those that are owed what came while they ran, and have not begun again.
    pub(crate) owed_again: BTreeSet<String>,
    /// What was moved when all was calm, and when.
    pub(crate) probed: BTreeMap<PathBuf, u64>,
    /// The kernel's events are on the agenda.
    pub(crate) telling: bool,
    /// What must never be, and was.
    pub(crate) wrong: Vec<String>,
}

impl Stage {
    pub(crate) fn new(profile: Profile, chance: Chance, keep: bool) -> Self {
        Self {
            began: Instant::now(),
            agenda: BTreeMap::new(),
            number: 0,
            waker: None,
            trace: Trace::new(keep),
            sights: Sights::default(),
            world: World::new(profile.queue, profile.watches),
            profile,
            chance,
            rough: true,
            life: 0,
            dies_in: None,
            dead: false,
            running: BTreeMap::new(),
            ran: BTreeMap::new(),
            done: BTreeMap::new(),
            heard: Heard::default(),
            untold: BTreeMap::new(),
            deeds: BTreeSet::new(),
            watched: BTreeSet::new(),
            definitions: BTreeMap::new(),
            paths: BTreeMap::new(),
            pulse: None,
            refused: BTreeSet::new(),
            owed_again: BTreeSet::new(),
            probed: BTreeMap::new(),
            telling: false,
            wrong: Vec::new(),
        }
    }

    /// Milliseconds since the run began.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).expect("a run is short")
    }

    pub(crate) fn moment(&self, at: u64) -> Instant {
        self.began + Duration::from_millis(at)
    }

    /// Puts an event on the agenda; of those at one moment chance says which comes first.
    pub(crate) fn after(&mut self, delay: u64, event: Event) {
        let at = (self.now() + delay, u32::from(self.chance.percent(20)), self.number);
        self.number += 1;
        self.agenda.insert(at, event);
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    /// When the next event is due.
    pub(crate) fn due(&self) -> Option<u64> {
        self.agenda.keys().next().map(|(at, ..)| *at)
    }

    pub(crate) fn take(&mut self) -> Option<Event> {
        self.agenda.pop_first().map(|(_, event)| event)
    }

    /// What hangs does so no longer.
    pub(crate) fn hurry(&mut self) {
        let soon = self.now() + 1_000;
        let late = self.agenda.split_off(&(soon, 0, 0));
        for ((at, tie, number), event) in late {
            let is_ours = !matches!(event, Event::Start | Event::Kill | Event::Look | Event::Judge);
            self.agenda.insert((if is_ours { soon } else { at }, tie, number), event);
        }
    }

    pub(crate) fn say(&mut self, line: Arguments<'_>) {
        let now = self.now();
        self.trace.line(now, line);
    }

    pub(crate) fn say_event(&mut self, event: &FileEvent, is_lost: bool) {
        match event {
            FileEvent::Entry { directory, name, structural } => {
                let name = shown(Path::new(OsStr::from_bytes(&[b"/", name.as_slice()].concat())));
                self.say(format_args!("in {directory:?} {name} {structural} lost: {is_lost}"));
            }
            other => self.say(format_args!("{other:?}")),
        }
    }

    /// Something that must be seen in some run was seen.
    pub(crate) fn saw(&mut self, what: &'static str) {
        self.sights.note(what);
    }

    /// Before each system call of ours: it may fail, the daemon may be killed at it, somebody else may come in before
    /// it.
    pub(crate) fn between_calls(&mut self, machine: &Machine) {
        if let Some(left) = &mut self.dies_in {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.dies_in = None;
                machine.add_fault(0, Fault::Dies);
            }
        }
        let times = self.profile.errors;
        if self.rough && self.chance.once_in(times) {
            self.saw("a system call failed");
            let errno = *self.chance.pick(&[Errno::IO, Errno::NOSPC, Errno::NOMEM, Errno::MFILE]);
            machine.add_fault(0, Fault::Fails(errno));
        }
        self.meddle_maybe(machine);
    }

    /// Somebody else may do something just now.
    pub(crate) fn meddle_maybe(&mut self, machine: &Machine) {
        let times = self.profile.meddling;
        if self.rough && self.chance.once_in(times) {
            self.saw("somebody came in between two system calls");
            meddle(self, machine);
        }
    }

    /// Takes in what was changed on the machine since this was called last, all by one.
    pub(crate) fn take_in(&mut self, machine: &Machine, who: Who) {
        let now = self.now();
        let watched = self.watched.iter().cloned();
        self.world.take_in(machine, (who, now), self.paths.values().cloned().chain(watched));
    }

    pub(crate) fn note_begin(&mut self, identity: &str, is_kept: bool) {
        if is_kept {
            self.refused.remove(identity);
        } else {
            self.refused.insert(identity.to_owned());
        }
    }

    /// A command runs.
    pub(crate) fn note_deed(&mut self, command: &str) {
        let name = command.rsplit(' ').next().unwrap_or_default();
        let identity = format!("exec[{name}]");
        if self.deeds.contains(&identity) && self.refused.contains(&identity) {
            let what = format!("{command} runs although its begin was refused");
            self.wrong.push(what);
        }
    }

    /// An event has reached us, or was lost: by that a change may be found, or not.
    pub(crate) fn note_told(&mut self, event: &FileEvent, is_lost: bool) {
        let FileEvent::Entry { directory, name, .. } = event else { return };
        let now = self.now();
        let paths: Vec<PathBuf> = self.paths.values().cloned().collect();
        for path in paths {
            let parent = path.parent().and_then(|parent| here().look(|tree| tree.ino(parent)));
            let is_it = parent.and_then(|ino| self.world.directory(ino)) == Some(*directory)
                && path.file_name().is_some_and(|known| known.as_encoded_bytes() == name);
            if is_it && is_lost {
                self.untold.insert(path, now);
            } else if is_it {
                self.untold.remove(&path);
            }
        }
    }

    /// A change of ours that nobody was told of: a sweep has found it.
    pub(crate) fn found_by_sweep(&mut self, identity: &str) {
        let path = self.paths.get(identity);
        if path.and_then(|path| self.untold.remove(path)).is_some() {
            self.saw("a file event was lost, and the sweep found it");
        }
    }
}
