//! What the hub's thread has in hand, kept where another thread can take it over when a file system does not answer.
//!
//! A turn is what came up since the last one; it is done step by step. The steps that look at the machine may wait for ever. One
//! that waits for too long is given up: its thread is left where it is, the path is left alone until that thread comes
//! back, and a new thread goes on with the rest. So a file system that hangs takes the watches of what is on it, and no other.

use super::Signal;
use super::backend::DirectoryId;
use super::index::{Again, Name, Reason, RouteId, Walked, WatchIndex, Work};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;
use steadfast_engine::VertexId;
use tokio::time::Instant;

/// A step that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(2);

/// At most so many threads are left waiting. Beyond that the hub waits with them.
const MOST_WAITING: usize = 16;

/// What the thread does next.
#[derive(Clone, Debug)]
pub(super) enum WorkStep {
    /// Takes in what came up.
    Begin,
    Walk(RouteId, Reason),
    /// Follows what a path links to.
    Look(RouteId, Name),
    /// Lists the directories in one of a tree.
    Grow(VertexId, RouteId),
    /// Says how it stands.
    End,
}

/// What is in hand.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The thread that works; one with another number was given up.
    pub(super) thread: u64,
    pub(super) work: Work,
    /// To be told at the end.
    pub(super) signals: Vec<Signal>,
    /// After an overflow: the directories whose watch was renewed already; none where watches are trusted.
    pub(super) renewed: Option<HashSet<DirectoryId>>,
    /// Some task looks whether it goes on.
    pub(super) guarded: bool,
    open: bool,
    step: Option<(WorkStep, Instant)>,
    place: Option<Looking>,
    silent: HashMap<PathBuf, Silence>,
    /// How many threads were given up and have not come back.
    waiting: usize,
}

/// Where a step looks.
#[derive(Debug)]
enum Looking {
    At(PathBuf),
    /// The same without a path of its own.
    In(DirectoryId, Name),
}

/// A path that does not answer.
#[derive(Debug, Default)]
struct Silence {
    /// The thread that waits for it.
    thread: u64,
    /// What is to be done again once it answers.
    routes: BTreeSet<RouteId>,
    looks: BTreeSet<(RouteId, Name)>,
}

impl WatchIndex {
    /// What the thread with this number does next. None where there is nothing to do.
    pub(super) fn next_step(&mut self) -> Option<WorkStep> {
        let turn = &mut self.turn;
        (turn.step, turn.place) = (None, None);
        if !turn.open {
            if self.work.is_empty() {
                return None;
            }
            turn.open = true;
            turn.work = self.work.take();
            turn.renewed = turn.work.overflow.then(HashSet::new);
            if turn.work.again == Again::All && turn.waiting < MOST_WAITING / 2 {
                // It may be another file system by now.
                turn.silent.clear();
            }
            return Some(WorkStep::Begin);
        }
        let work = &mut turn.work;
        let step = if let Some((route, reason)) = work.dirty.pop_first() {
            WorkStep::Walk(route, reason)
        } else if let Some((route, name)) = work.looks.pop_first() {
            WorkStep::Look(route, name)
        } else if let Some((vertex, route)) = work.grow.pop_first() {
            // What was found before is watched by now.
            WorkStep::Grow(vertex, route)
        } else {
            turn.open = false;
            return Some(WorkStep::End);
        };
        turn.step = Some((step.clone(), Instant::now()));
        Some(step)
    }

    /// Notes that an entry of a directory is looked at; false where it must be left alone, as it does not answer.
    pub(super) fn look_in(&mut self, directory: DirectoryId, name: Name, route: RouteId) -> bool {
        let silent = self.directories.get(&directory).filter(|_| !self.turn.silent.is_empty());
        let path = silent.map(|known| known.path.join(OsStr::from_bytes(&name)));
        if let Some(silence) = path.and_then(|path| self.turn.silent.get_mut(&path)) {
            silence.routes.insert(route);
            return false;
        }
        self.turn.place = Some(Looking::In(directory, name));
        true
    }

    /// The same for a path.
    pub(super) fn look_at(&mut self, path: PathBuf, route: RouteId) -> bool {
        if let Some(silence) = self.turn.silent.get_mut(&path) {
            silence.routes.insert(route);
            return false;
        }
        self.turn.place = Some(Looking::At(path));
        true
    }

    /// The same for what a path links to.
    pub(super) fn look_through(&mut self, path: PathBuf, leaf: &(RouteId, Name)) -> bool {
        if let Some(silence) = self.turn.silent.get_mut(&path) {
            silence.looks.insert(leaf.clone());
            return false;
        }
        self.turn.place = Some(Looking::At(path));
        true
    }

    /// Gives the thread up where its step takes too long: the number of the one that is to go on, the path that does not answer,
    /// and the directories that only the step used.
    pub(super) fn give_up_step(
        &mut self,
        now: Instant,
    ) -> Option<(u64, PathBuf, Vec<DirectoryId>)> {
        let late = |(_, since): &(WorkStep, Instant)| now.duration_since(*since) >= PATIENCE;
        if self.turn.waiting >= MOST_WAITING || !self.turn.step.as_ref().is_some_and(late) {
            return None;
        }
        let path = match self.turn.place.take()? {
            Looking::At(path) => path,
            Looking::In(directory, name) => {
                self.directories.get(&directory)?.path.join(OsStr::from_bytes(&name))
            }
        };
        let mut silence = Silence { thread: self.turn.thread, ..Silence::default() };
        match self.turn.step.take()?.0 {
            WorkStep::Walk(route, _) | WorkStep::Grow(_, route) => {
                silence.routes.insert(route);
                self.fail(route, &path);
            }
            WorkStep::Look(route, name) => {
                silence.looks.insert((route, name));
            }
            WorkStep::Begin | WorkStep::End => {}
        }
        self.turn.silent.insert(path.clone(), silence);
        self.turn.waiting += 1;
        self.turn.thread += 1;
        let unused = self.directories.iter().filter(|(_, known)| known.routes == 0);
        let unused: Vec<_> = unused.map(|(id, _)| *id).collect();
        for directory in &unused {
            self.remove_directory(*directory);
        }
        Some((self.turn.thread, path, unused))
    }

    /// A route that cannot be followed to its end: what the walk noted on its way is forgotten.
    fn fail(&mut self, id: RouteId, path: &std::path::Path) {
        let Some(route) = self.routes.get_mut(&id) else { return };
        let why = format!("cannot watch {}: the path does not respond", path.display());
        route.walked.failed = Some(why.into());
        self.retry.note(id, true);
        let walked: &Walked = &route.walked;
        for (directory, known) in &mut self.directories {
            known.steps.retain(|name, routes| {
                if !walked.steps.iter().any(|step| step.0 == *directory && step.1 == *name) {
                    routes.remove(&id);
                }
                !routes.is_empty()
            });
            if walked.end != Some(*directory) {
                known.ends.retain(|route| *route != id);
            }
        }
        let mut judge = std::mem::take(&mut self.turn.work.judge);
        self.concern(id, &mut judge);
        self.turn.work.judge = judge;
    }

    /// A thread that was given up has come back: what it waited for answers.
    pub(super) fn came_back(&mut self, thread: u64) {
        self.turn.waiting = self.turn.waiting.saturating_sub(1);
        let answers = self.turn.silent.extract_if(|_, silence| silence.thread == thread);
        let answers: Vec<_> = answers.map(|(_, silence)| silence).collect();
        for silence in answers {
            for route in silence.routes {
                self.work.walk(route, Reason::Lost);
            }
            self.work.looks.extend(silence.looks);
        }
    }

    /// Whether nothing is in hand and nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        !self.turn.open && self.work.is_empty()
    }
}
