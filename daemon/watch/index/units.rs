//! Watches of systemd units: one subscription per bus, for any number of units.
//!
//! A unit is known by its object path. The path is queried when the unit is armed and after each reload of systemd,
//! with calls that do not load the unit, since loading would itself cause an event. Events that do not change the
//! activity of a unit (a service that updates its status line every second) are not reported.

use super::vertex_watch::Running;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use steadfast_engine::VertexId;
use steadfast_resources::host::systemd::{Activity, Bus, Happening};
use tokio::sync::Notify;

/// All watched units, by bus.
#[derive(Debug, Default)]
pub(in crate::watch) struct Units(BTreeMap<Bus, Followed>);

/// The watched units of one bus.
#[derive(Debug)]
pub(in crate::watch) struct Followed {
    standing: Running,
    names: HashMap<Arc<str>, Watched>,
    paths: HashMap<Arc<str>, Vec<Arc<str>>>,
    /// Names of units whose object path must be queried.
    fresh: BTreeSet<Arc<str>>,
    /// Object paths that may belong to watched units under other names.
    strangers: BTreeSet<Arc<str>>,
    /// True if events may have been missed: all queried units are suspect.
    suspect: bool,
    /// True while systemd reloads; each unit is then reported as removed and new.
    reloading: bool,
    wake: Arc<Notify>,
}

/// One watched unit.
#[derive(Debug, Default)]
struct Watched {
    vertices: Vec<VertexId>,
    path: Option<Arc<str>>,
    /// True after the first query of the object path.
    known: bool,
    activity: Option<Activity>,
}

impl Units {
    /// Returns the number of watched units of all buses.
    pub(in crate::watch) fn count(&self) -> usize {
        self.0.values().map(|followed| followed.names.len()).sum()
    }
}

/// The queries that the task of a bus must make next.
#[derive(Debug, Default)]
pub(in crate::watch) struct Questions {
    /// The names of units whose object path is asked.
    pub(in crate::watch) fresh: Vec<Arc<str>>,
    /// The object paths whose names are asked.
    pub(in crate::watch) strangers: Vec<Arc<str>>,
    /// True if events may have been missed.
    pub(in crate::watch) suspect: bool,
}

/// The results of the queries.
#[derive(Debug, Default)]
pub(in crate::watch) struct Answers {
    /// Each name, with its object path if the unit is loaded.
    pub(in crate::watch) found: Vec<(Arc<str>, Option<String>)>,
    /// Each object path, with its names.
    pub(in crate::watch) names: Vec<(Arc<str>, Vec<String>)>,
    /// True if events may have been missed before the queries.
    pub(in crate::watch) suspect: bool,
}

/// The vertices that the results of queries concern.
#[derive(Debug, Default)]
pub(in crate::watch) struct Learned {
    /// Vertices with a unit that was found under another name.
    pub(in crate::watch) changed: Vec<VertexId>,
    /// Vertices whose events may have been missed.
    pub(in crate::watch) suspect: Vec<VertexId>,
    /// Vertices with a unit that was queried: the status of their watch may have changed.
    pub(in crate::watch) queried: Vec<VertexId>,
}

impl Followed {
    fn new() -> Self {
        Self {
            standing: Running::Starting,
            names: HashMap::new(),
            paths: HashMap::new(),
            fresh: BTreeSet::new(),
            strangers: BTreeSet::new(),
            suspect: false,
            reloading: false,
            wake: Arc::default(),
        }
    }

    fn ask_for_all(&mut self) {
        self.fresh.extend(self.names.keys().cloned());
        self.suspect = true;
        self.wake.notify_one();
    }

    /// Drops all object paths and activities, which are no longer valid.
    fn forget(&mut self) {
        self.paths.clear();
        self.strangers.clear();
        self.reloading = false;
        for watched in self.names.values_mut() {
            (watched.path, watched.activity) = (None, None);
        }
    }

    /// Starts the queries of all units after a new subscription; returns the signal for further queries.
    pub(in crate::watch) fn begin(&mut self) -> Arc<Notify> {
        self.forget();
        self.ask_for_all();
        Arc::clone(&self.wake)
    }

    /// Takes the queries that are due.
    pub(in crate::watch) fn questions(&mut self) -> Questions {
        Questions {
            fresh: std::mem::take(&mut self.fresh).into_iter().collect(),
            strangers: std::mem::take(&mut self.strangers).into_iter().collect(),
            suspect: std::mem::take(&mut self.suspect),
        }
    }

    /// Stores the results of queries; returns the vertices that they concern.
    pub(in crate::watch) fn learn(&mut self, answers: Answers) -> Learned {
        // After a failure, the return of the bus is itself reported with a `Suspect`.
        let was_up = self.standing == Running::Yes;
        let mut learned = Learned::default();
        for (name, path) in answers.found {
            self.is_at(&name, path.as_deref());
            let Some(watched) = self.names.get_mut(&name) else { continue };
            watched.known = true;
            learned.queried.extend(&watched.vertices);
            if answers.suspect && was_up {
                learned.suspect.extend(&watched.vertices);
            }
        }
        for (path, names) in answers.names {
            for name in names {
                let Some((name, watched)) = self.names.get_key_value(&*name) else { continue };
                if watched.path.is_none() {
                    learned.changed.extend(&watched.vertices);
                    let name = Arc::clone(name);
                    self.is_at(&name, Some(&path));
                }
            }
        }
        self.standing = Running::Yes;
        learned
    }

    /// Handles the loss of the bus; returns the vertices whose watch has failed. `why` is `None` during the grace
    /// time: then no watch has failed.
    pub(in crate::watch) fn lose(&mut self, why: Option<String>) -> Vec<VertexId> {
        self.forget();
        let Some(why) = why else { return Vec::new() };
        self.standing = Running::Failed(why);
        self.names.values().flat_map(|watched| watched.vertices.clone()).collect()
    }

    fn is_at(&mut self, name: &Arc<str>, path: Option<&str>) {
        let Some(watched) = self.names.get_mut(name) else { return };
        if watched.path.as_deref() == path {
            return;
        }
        watched.activity = None;
        let before = watched.path.take();
        watched.path = path.map(Arc::from);
        if let Some(path) = &watched.path {
            self.paths.entry(Arc::clone(path)).or_default().push(Arc::clone(name));
        }
        self.leave(before.as_ref(), name);
    }

    fn leave(&mut self, path: Option<&Arc<str>>, name: &str) {
        let Some((path, names)) = path.and_then(|path| Some((path, self.paths.get_mut(path)?)))
        else {
            return;
        };
        names.retain(|other| **other != *name);
        if names.is_empty() {
            self.paths.remove(path);
        }
    }

    /// Processes an event; returns the vertices that it concerns.
    pub(in crate::watch) fn hear(&mut self, happening: Happening<'_>) -> Vec<VertexId> {
        match happening {
            Happening::Reloading(true) => self.reloading = true,
            Happening::Reloading(false) => {
                self.reloading = false;
                self.ask_for_all();
            }
            Happening::Files => self.ask_for_all(),
            // All units are queried at the end of the reload.
            Happening::Unit { .. } | Happening::New { .. } | Happening::Removed { .. }
                if self.reloading => {}
            Happening::Unit { path, activity, known } => {
                return unless(known, self.moved(path, activity));
            }
            Happening::New { name, path, known } => {
                return unless(known, self.unit_loaded(name, path));
            }
            Happening::Removed { path, .. } => self.unit_unloaded(path),
            Happening::Lost(_) => {}
        }
        Vec::new()
    }

    fn moved(&mut self, path: &str, activity: Option<Activity>) -> Vec<VertexId> {
        let mut concerned = Vec::new();
        for name in self.paths.get(path).into_iter().flatten() {
            let Some(watched) = self.names.get_mut(name) else { continue };
            if activity.is_some() && watched.activity == activity {
                continue;
            }
            watched.activity = activity;
            concerned.extend(&watched.vertices);
        }
        concerned
    }

    fn unit_loaded(&mut self, name: &str, path: &str) -> Vec<VertexId> {
        let suffix = |name: &str| name.rsplit('.').next().map(str::to_owned);
        let wanted = suffix(name);
        // A watched unit that is not loaded may be another name of the new one.
        if self.names.iter().any(|(other, watched)| {
            watched.path.is_none() && **other != *name && suffix(other) == wanted
        }) {
            self.strangers.insert(path.into());
            self.wake.notify_one();
        }
        let Some((name, _)) = self.names.get_key_value(name) else { return Vec::new() };
        let name = Arc::clone(name);
        self.is_at(&name, Some(path));
        self.names.get(&name).map(|watched| watched.vertices.clone()).unwrap_or_default()
    }

    /// Handles an unloaded unit: it had ended before, and that event was reported.
    fn unit_unloaded(&mut self, path: &str) {
        for name in self.paths.remove(path).unwrap_or_default() {
            let Some(watched) = self.names.get_mut(&name) else { continue };
            (watched.path, watched.activity) = (None, None);
        }
    }
}

/// Drops events that a run of the daemon itself causes.
fn unless(known: bool, concerned: Vec<VertexId>) -> Vec<VertexId> {
    if known { Vec::new() } else { concerned }
}

impl Units {
    /// Makes a vertex wait for a unit; returns true if the bus is not followed yet.
    pub(in crate::watch) fn place(&mut self, vertex: VertexId, bus: Bus, unit: &Arc<str>) -> bool {
        let begins = !self.0.contains_key(&bus);
        let followed = self.0.entry(bus).or_insert_with(Followed::new);
        let watched = followed.names.entry(Arc::clone(unit)).or_default();
        watched.vertices.push(vertex);
        if !watched.known {
            followed.fresh.insert(Arc::clone(unit));
            followed.wake.notify_one();
        }
        begins
    }

    /// Returns the watched units of a bus; `None` if no vertex waits for one.
    pub(in crate::watch) fn on(&mut self, bus: Bus) -> Option<&mut Followed> {
        self.0.get_mut(&bus)
    }

    /// Ends the wait of a vertex for a unit.
    pub(in crate::watch) fn displace(&mut self, vertex: VertexId, bus: Bus, unit: &Arc<str>) {
        let Some(followed) = self.0.get_mut(&bus) else { return };
        let Some(watched) = followed.names.get_mut(unit) else { return };
        watched.vertices.retain(|other| *other != vertex);
        if watched.vertices.is_empty() {
            let path = watched.path.take();
            followed.names.remove(unit);
            followed.fresh.remove(unit);
            followed.leave(path.as_ref(), unit);
        }
    }

    /// Returns the state of the watch of a unit.
    pub(in crate::watch) fn unit_state(&self, bus: Bus, unit: &str) -> Running {
        let Some(followed) = self.0.get(&bus) else { return Running::Starting };
        match &followed.standing {
            Running::Yes if !followed.names.get(unit).is_some_and(|watched| watched.known) => {
                Running::Starting
            }
            standing => standing.clone(),
        }
    }

    /// Marks the bus as failed: no source of systemd events exists.
    pub(in crate::watch) fn refuse(&mut self, bus: Bus, why: &str) {
        if let Some(followed) = self.0.get_mut(&bus) {
            followed.standing = Running::Failed(why.to_owned());
        }
    }
}
