//! The watch manager: the hub, the states of all watches, the sweeps, and events that are collected for a moment.

use super::debounce::Debounce;
use super::state::WatchStates;
use super::sweep::Sweep;
use crate::metrics::WatchCounts;
use crate::watch::WatchHub;
use std::collections::BTreeMap;
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;
use steadfast_resources::host::world::WorldKey;
use tokio::time::Instant;

/// All watches of a driver. A one-shot command has no hub and watches nothing.
pub(in crate::driver) struct WatchManager {
    hub: Option<WatchHub>,
    /// The state of each watch.
    pub(in crate::driver) states: WatchStates,
    /// The sweep over all resources.
    sweep: Sweep,
    /// File events that are collected for a moment, so that one write causes one run of a command.
    pub(in crate::driver) debounce: Debounce,
    /// Vertices with their watch sources; the watches are requested after the current actions.
    requested: Vec<(VertexId, Vec<WatchSource>)>,
    /// The keys of the world that vertices watch.
    world: BTreeMap<VertexId, Vec<WorldKey>>,
}

impl WatchManager {
    /// Creates the manager of a hub, with the duration of one sweep over all resources.
    pub(in crate::driver) fn new(hub: Option<WatchHub>, sweep: Option<Duration>) -> Self {
        Self {
            hub,
            states: WatchStates::new(),
            sweep: Sweep::new(sweep),
            debounce: Debounce::default(),
            requested: Vec::new(),
            world: BTreeMap::new(),
        }
    }

    /// Requests a watch of these sources. Returns false if none is needed: nothing outside can change the resource, or
    /// the driver has no hub. Sources without events are left to the sweep.
    pub(in crate::driver) fn request(
        &mut self,
        id: VertexId,
        mut sources: Vec<WatchSource>,
    ) -> bool {
        let all = sources.len();
        sources.retain(|source| !matches!(source, WatchSource::Polled(_)));
        if sources.len() < all {
            self.states.polled.poll_without_events(id);
        }
        let keys = sources.extract_if(.., |source| matches!(source, WatchSource::World(_)));
        let key = |source| match source {
            WatchSource::World(key) => Some(key),
            _ => None,
        };
        let keys: Vec<WorldKey> = keys.filter_map(key).collect();
        if !keys.is_empty() {
            self.world.insert(id, keys);
        }
        let is_needed = self.hub.is_some() && !sources.is_empty();
        if is_needed {
            self.states.ask(id);
            self.states.note_files(id, &sources);
            self.requested.push((id, sources));
        }
        is_needed
    }

    /// Arms the requested watches in one call.
    pub(in crate::driver) fn arm_requested(&mut self) {
        if let Some(hub) = self.hub.as_ref().filter(|_| !self.requested.is_empty()) {
            hub.arm_all(std::mem::take(&mut self.requested));
        }
    }

    /// Returns the number of watches by source; `None` without a hub.
    pub(in crate::driver) fn counts(&self) -> Option<WatchCounts> {
        self.hub.as_ref().map(WatchHub::counts)
    }

    /// Closes the watch of a vertex.
    pub(in crate::driver) fn close(&mut self, id: VertexId) {
        self.arm_requested();
        self.states.close(id);
        self.world.remove(&id);
        self.debounce.forget(id);
        if let Some(hub) = &self.hub {
            hub.disarm(id);
        }
    }

    /// Returns the vertices that watch one of these keys of the world.
    pub(in crate::driver) fn of_world(&self, changed: &[WorldKey]) -> Vec<VertexId> {
        let hears = |keys: &Vec<WorldKey>| keys.iter().any(|key| changed.contains(key));
        self.world.iter().filter(|(_, keys)| hears(keys)).map(|(id, _)| *id).collect()
    }

    /// Stops the signals of a vertex, or lets them pass again.
    pub(in crate::driver) fn mute(&self, id: VertexId, is_mute: bool) {
        match &self.hub {
            Some(hub) if is_mute => hub.mute(id),
            Some(hub) => hub.unmute(id),
            None => {}
        }
    }

    /// Arms the sources of a refreshed vertex again: a refresh restarts the interval of a timer.
    pub(in crate::driver) fn restart_intervals(&self, id: VertexId, sources: Vec<WatchSource>) {
        let is_timer = |source: &WatchSource| matches!(source, WatchSource::Every(_));
        if let Some(hub) = self.hub.as_ref().filter(|_| sources.iter().any(is_timer)) {
            hub.arm(id, sources);
        }
    }

    /// Forgets a vertex that has left the graph.
    pub(in crate::driver) fn forget(&mut self, id: VertexId) {
        self.states.forget(id);
        self.world.remove(&id);
        self.debounce.forget(id);
    }

    /// Starts another sweep with this duration.
    pub(in crate::driver) fn set_sweep(&mut self, sweep: Option<Duration>) {
        self.sweep = Sweep::new(sweep);
    }

    /// Looks for missed changes after the load of a graph: a mount makes no event, and an operator who reloads the
    /// graph need not wait for the sweep.
    pub(in crate::driver) fn search_missed(&self, sweeps: bool) {
        match &self.hub {
            Some(hub) if sweeps => hub.walk_all(),
            Some(hub) => hub.try_failed(),
            None => {}
        }
    }

    /// Notes a failed watch, and disarms it unless it is to be tried again. Returns true if the failure must be
    /// reported.
    pub(in crate::driver) fn note_failed(&mut self, id: VertexId, rewatch: bool) -> bool {
        let is_news = self.states.poll_instead_of_watch(id, Instant::now());
        if let Some(hub) = self.hub.as_ref().filter(|_| !rewatch) {
            hub.disarm(id);
        }
        is_news
    }

    /// Returns the requested watches that do not reply in time, as on a hanging file system (E-6, F-12).
    pub(in crate::driver) fn late(&mut self, now: Instant) -> Vec<VertexId> {
        match self.hub.as_ref().map(WatchHub::progress) {
            Some(progress) => self.states.late(now, progress),
            None => Vec::new(),
        }
    }

    /// Returns the vertices without a working watch that a sweep checks now.
    pub(in crate::driver) fn polled_now(&mut self, now: Instant) -> Vec<VertexId> {
        if self.states.next_poll().is_none_or(|at| at > now) {
            return Vec::new();
        }
        let polled = self.states.polled.all();
        self.states.sweep.due(now, || polled)
    }

    /// Returns the vertices that the sweep over all resources checks now. `all` lists the vertices of the graph.
    pub(in crate::driver) fn swept_now(
        &mut self,
        now: Instant,
        all: impl FnOnce() -> Vec<VertexId>,
    ) -> Vec<VertexId> {
        let begins = self.sweep.is_new_round();
        let due = self.sweep.due(now, all);
        if begins
            && !self.sweep.is_new_round()
            && let Some(hub) = &self.hub
        {
            hub.walk_all();
        }
        due
    }

    /// Returns the next time at which anything is due here.
    pub(in crate::driver) fn due(&self) -> Option<Instant> {
        [self.sweep.next(), self.states.next_due(), self.debounce.due()].into_iter().flatten().min()
    }

    /// Closes the hub.
    pub(in crate::driver) fn end(&mut self) {
        if let Some(hub) = self.hub.take() {
            hub.close();
        }
    }
}
