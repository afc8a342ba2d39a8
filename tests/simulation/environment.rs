//! The environment of a run: clock, agenda of events, simulated host, random numbers and trace.

use crate::host::adversary::{meddle, shown};
use crate::host::world::{FileEvent, Who, World};
use crate::input::chance::Chance;
use crate::input::profile::Profile;
use crate::judgement::coverage::Sights;
use crate::listener::Heard;
use crate::trace::Trace;
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

/// The shared environment. All its users run on one thread.
pub(crate) type Shared = Arc<Mutex<Stage>>;

pub(crate) fn lock(shared: &Shared) -> MutexGuard<'_, Stage> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the simulated host that this thread has entered.
pub(crate) fn here() -> Machine {
    simulated::here().expect("a run stands in its machine")
}

/// An event on the agenda.
pub(crate) enum Event {
    /// A check or an apply on a thread makes its system calls. `asked` is the time of its request, in milliseconds;
    /// `applies` is true for an apply.
    Job {
        life: u32,
        asked: u64,
        applies: bool,
        work: Job,
    },
    /// An asynchronous check or apply makes its system calls.
    Task {
        life: u32,
        work: Job,
    },
    /// The result of a job reaches the driver.
    Result {
        life: u32,
        input: DriverEvent,
    },
    /// The journal commits a batch.
    Write {
        life: u32,
    },
    /// The journal reports the result of its last commit.
    Written {
        life: u32,
    },
    /// The watch hub takes some steps.
    Hub {
        life: u32,
    },
    /// The kernel delivers file events.
    FileEvents,
    /// The adversary changes something on the simulated host.
    Foreign,
    /// The operator does something.
    Operator,
    /// The daemon is killed.
    Kill,
    /// The daemon is started.
    Start,
    /// Faults end here, for the rest of the run.
    FaultsEnd,
    /// The driver loop is pinged (`Look`); the oracle then judges the host (`Judge`).
    Look,
    Judge,
}

/// The state of one run, apart from the daemon itself.
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
    /// True while faults happen and the adversary acts.
    pub(crate) rough: bool,
    /// The number of the current life of the daemon.
    pub(crate) life: u32,
    /// The number of system calls left until the daemon is killed within one.
    pub(crate) dies_in: Option<u64>,
    /// True once the daemon is killed: its further calls have no effect.
    pub(crate) dead: bool,
    /// `running`: the active runs of each command, by life. `ran`: the start times of its successful runs, in
    /// milliseconds.
    pub(crate) running: BTreeMap<(u32, String), u32>,
    pub(crate) ran: BTreeMap<String, Vec<u64>>,
    /// The end of the last run of each command, successful or not, in milliseconds.
    pub(crate) done: BTreeMap<String, u64>,
    pub(crate) heard: Heard,
    /// The paths with a change by the daemon whose file event was lost, with the time of the change.
    pub(crate) untold: BTreeMap<PathBuf, u64>,
    /// The resources whose begin must be recorded before they run.
    pub(crate) deeds: BTreeSet<String>,
    /// The paths that commands watch.
    pub(crate) watched: BTreeSet<PathBuf>,
    /// The hash of each definition in the last loaded graph.
    pub(crate) definitions: BTreeMap<String, u64>,
    /// The path of each resource.
    pub(crate) paths: BTreeMap<String, PathBuf>,
    /// The last reply of the driver loop to a ping.
    pub(crate) pulse: Option<DriverHealth>,
    /// The resources whose last begin the store rejected.
    pub(crate) refused: BTreeSet<String>,
    /// The resources that are owed a refresh from the time of their last run and have not run again.
    pub(crate) owed_again: BTreeSet<String>,
    /// The paths that the calm-phase probe has changed, with the time.
    pub(crate) probed: BTreeMap<PathBuf, u64>,
    /// True while the delivery of file events is on the agenda.
    pub(crate) is_delivering: bool,
    /// Violations found during the run.
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
            is_delivering: false,
            wrong: Vec::new(),
        }
    }

    /// Returns the milliseconds since the run began.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).expect("a run is short")
    }

    pub(crate) fn moment(&self, at: u64) -> Instant {
        self.began + Duration::from_millis(at)
    }

    /// Puts an event on the agenda. A random draw orders events of the same millisecond.
    pub(crate) fn after(&mut self, delay: u64, event: Event) {
        let at = (self.now() + delay, u32::from(self.chance.percent(20)), self.number);
        self.number += 1;
        self.agenda.insert(at, event);
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    /// Returns the time of the next event, in milliseconds.
    pub(crate) fn due(&self) -> Option<u64> {
        self.agenda.keys().next().map(|(at, ..)| *at)
    }

    pub(crate) fn take(&mut self) -> Option<Event> {
        self.agenda.pop_first().map(|(_, event)| event)
    }

    /// Moves the pending events of the daemon, hung jobs too, to at most one second from now.
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

    /// Notes that this run has reached a situation of the coverage list.
    pub(crate) fn saw(&mut self, what: &'static str) {
        self.sights.note(what);
    }

    /// Runs before each system call of the daemon: injects an error, kills the daemon, or lets the adversary act.
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

    /// Lets the adversary act with the probability of the profile.
    pub(crate) fn meddle_maybe(&mut self, machine: &Machine) {
        let times = self.profile.meddling;
        if self.rough && self.chance.once_in(times) {
            self.saw("somebody came in between two system calls");
            meddle(self, machine);
        }
    }

    /// Attributes all changes since the last call to one actor.
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

    /// Checks that the begin of a command was not rejected when the command runs.
    pub(crate) fn note_deed(&mut self, command: &str) {
        let name = command.rsplit(' ').next().unwrap_or_default();
        let identity = format!("exec[{name}]");
        if self.deeds.contains(&identity) && self.refused.contains(&identity) {
            let what = format!("{command} runs although its begin was refused");
            self.wrong.push(what);
        }
    }

    /// Notes the delivery or the loss of a file event: a change without an event must be found by a sweep.
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

    /// Notes that a sweep has found a change whose file event was lost.
    pub(crate) fn found_by_sweep(&mut self, identity: &str) {
        let path = self.paths.get(identity);
        if path.and_then(|path| self.untold.remove(path)).is_some() {
            self.saw("a file event was lost, and the sweep found it");
        }
    }
}
