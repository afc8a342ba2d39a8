//! The steps of a turn, stored so that another thread can take over when a file system hangs.
//!
//! A turn covers the work since the last turn, and is done in steps. A step that accesses the host may hang. After a
//! time limit its thread is abandoned, its path is left alone until that thread returns, and a new thread continues. So
//! a hanging file system disables only the watches on it.

use super::route::{Name, Reason, RouteId, Walked};
use super::turn::{Looking, Silence, WorkStep};
use super::watch_index::WatchIndex;
use super::work::Again;
use crate::watch::backend::DirectoryId;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// The time limit of a step.
const PATIENCE: Duration = Duration::from_secs(2);

/// The maximum number of abandoned threads. Beyond it the hub waits with them.
const MOST_WAITING: usize = 16;

impl WatchIndex {
    /// Returns the next step for the current thread; `None` if there is no work.
    pub(in crate::watch) fn next_step(&mut self) -> Option<WorkStep> {
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
                // Another file system may be mounted at the path by now.
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
            // The directories found before are watched by now.
            WorkStep::Grow(vertex, route)
        } else {
            turn.open = false;
            return Some(WorkStep::End);
        };
        turn.step = Some((step.clone(), Instant::now()));
        Some(step)
    }

    /// Notes an access to a directory entry. Returns false if the entry hangs and must be left alone; the route is then
    /// walked later.
    pub(in crate::watch) fn look_in(
        &mut self,
        directory: DirectoryId,
        name: Name,
        route: RouteId,
    ) -> bool {
        let silent = self.directories.get(&directory).filter(|_| !self.turn.silent.is_empty());
        let path = silent.map(|known| known.path.join(OsStr::from_bytes(&name)));
        if let Some(silence) = path.and_then(|path| self.turn.silent.get_mut(&path)) {
            silence.routes.insert(route);
            return false;
        }
        self.turn.place = Some(Looking::In(directory, name));
        true
    }

    /// Notes an access to a path. Returns false if the path hangs and must be left alone.
    pub(in crate::watch) fn look_at(&mut self, path: PathBuf, route: RouteId) -> bool {
        if let Some(silence) = self.turn.silent.get_mut(&path) {
            silence.routes.insert(route);
            return false;
        }
        self.turn.place = Some(Looking::At(path));
        true
    }

    /// Notes an access to a symbolic link. Returns false if its path hangs and must be left alone.
    pub(in crate::watch) fn look_through(&mut self, path: PathBuf, leaf: &(RouteId, Name)) -> bool {
        if let Some(silence) = self.turn.silent.get_mut(&path) {
            silence.looks.insert(leaf.clone());
            return false;
        }
        self.turn.place = Some(Looking::At(path));
        true
    }

    /// Abandons the thread if its step has exceeded the time limit. Returns the number of the next thread, the hanging
    /// path, and the directories that only this step used.
    pub(in crate::watch) fn give_up_step(
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

    /// Marks a route as failed, and drops the entries that its interrupted walk has noted.
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

    /// Handles the return of an abandoned thread: its path responds again, and its work is repeated.
    pub(in crate::watch) fn came_back(&mut self, thread: u64) {
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

    /// Returns true if no turn is open and no work waits.
    pub(in crate::watch) fn is_idle(&self) -> bool {
        !self.turn.open && self.work.is_empty()
    }
}
