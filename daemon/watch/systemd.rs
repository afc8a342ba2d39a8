//! Watches of systemd units: one subscription per bus, for any number of units.
//!
//! A unit is known by its object path. The path is queried when the unit is armed and after each reload of systemd,
//! with calls that do not load the unit, since loading would itself cause an event. Events that do not change the
//! activity of a unit (a service that updates its status line every second) are not reported.

use super::hub::Shared;
use super::index::{Running, WatchIndex};
use super::{Signal, SourceError, SourceFuture};
use futures_util::StreamExt as _;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::host::systemd::{Activity, Bus, Happening, Sink};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The first wait before another attempt to reach a bus; it doubles up to `AT_MOST`.
const AGAIN: Duration = Duration::from_millis(100);
const AT_MOST: Duration = Duration::from_secs(2);
/// A bus that returns within this time, as after a restart, does not count as lost: all units are suspect, and no
/// failure is reported.
const GRACE: Duration = Duration::from_secs(1);
/// The maximum number of queries at the same time.
const AT_ONCE: usize = 32;

/// A source of systemd events.
pub trait UnitSource: Send + Sync {
    /// Subscribes to the events of a bus; `sink` receives them until the stream is dropped.
    fn subscribe(
        &self,
        bus: Bus,
        sink: Sink,
    ) -> SourceFuture<'_, Result<Box<dyn UnitStream>, SourceError>>;

    /// Returns the object path of a unit, given any of its names; `None` if the unit is not loaded. Must not load the
    /// unit.
    fn find<'s>(
        &'s self,
        bus: Bus,
        unit: &'s str,
    ) -> SourceFuture<'s, Result<Option<String>, SourceError>>;

    /// Returns all names of the unit with this object path.
    fn names<'s>(
        &'s self,
        bus: Bus,
        path: &'s str,
    ) -> SourceFuture<'s, Result<Vec<String>, SourceError>>;
}

/// A subscription to one bus.
pub trait UnitStream: Send {
    /// Completes when no more events will come.
    fn lost(&mut self) -> SourceFuture<'_, ()>;
}

/// All watched units, by bus.
#[derive(Debug, Default)]
pub(super) struct Units(BTreeMap<Bus, Followed>);

/// The watched units of one bus.
#[derive(Debug)]
pub(super) struct Followed {
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
    pub(super) fn count(&self) -> usize {
        self.0.values().map(|followed| followed.names.len()).sum()
    }
}

/// The queries that the task of a bus must make next.
struct Questions {
    fresh: Vec<Arc<str>>,
    strangers: Vec<Arc<str>>,
    suspect: bool,
}

/// The results of the queries.
struct Answers {
    found: Vec<(Arc<str>, Option<String>)>,
    names: Vec<(Arc<str>, Vec<String>)>,
    suspect: bool,
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
    fn hear(&mut self, happening: Happening<'_>) -> Vec<VertexId> {
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
    pub(super) fn place(&mut self, vertex: VertexId, bus: Bus, unit: &Arc<str>) -> bool {
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

    /// Ends the wait of a vertex for a unit.
    pub(super) fn displace(&mut self, vertex: VertexId, bus: Bus, unit: &Arc<str>) {
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
    pub(super) fn unit_state(&self, bus: Bus, unit: &str) -> Running {
        let Some(followed) = self.0.get(&bus) else { return Running::Starting };
        match &followed.standing {
            Running::Yes if !followed.names.get(unit).is_some_and(|watched| watched.known) => {
                Running::Starting
            }
            standing => standing.clone(),
        }
    }

    /// Marks the bus as failed: no source of systemd events exists.
    pub(super) fn refuse(&mut self, bus: Bus, why: &str) {
        if let Some(followed) = self.0.get_mut(&bus) {
            followed.standing = Running::Failed(why.to_owned());
        }
    }
}

/// Follows one bus until the hub is closed.
pub(super) async fn follow(shared: Arc<Shared>, source: Arc<dyn UnitSource>, bus: Bus) {
    let mut wait = AGAIN;
    let mut lost: Option<Instant> = None;
    loop {
        #[cfg(feature = "fault-injection")]
        if crate::fault_injection::take("units").is_some() {
            std::panic::panic_any("a fault was put into it");
        }
        let sink: Sink = {
            let shared = Arc::downgrade(&shared);
            Box::new(move |happening| {
                if let Some(shared) = shared.upgrade() {
                    shared.take_in_unit(bus, happening);
                }
            })
        };
        let why = match source.subscribe(bus, sink).await {
            Ok(mut stream) => {
                let began = Instant::now();
                let why = serve(&shared, &*source, bus, &mut *stream).await;
                if began.elapsed() > GRACE {
                    (wait, lost) = (AGAIN, Some(Instant::now()));
                }
                why
            }
            Err(error) => error.0,
        };
        let in_grace = lost.is_some_and(|at| at.elapsed() < GRACE);
        shared.lose_units(bus, (!in_grace).then_some(why));
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(AT_MOST);
    }
}

/// Makes the due queries while a subscription lasts; returns the reason for its end.
async fn serve(
    shared: &Shared,
    source: &dyn UnitSource,
    bus: Bus,
    stream: &mut dyn UnitStream,
) -> String {
    let Some(wake) = shared.units_found(bus) else { return "nobody waits".to_owned() };
    loop {
        let questions = shared.questions(bus);
        let answers = tokio::select! {
            biased;
            () = stream.lost() => return "the connection to systemd was lost".to_owned(),
            answers = ask(source, bus, questions) => answers,
        };
        match answers {
            Ok(answers) => shared.learn(bus, answers),
            Err(error) => return error.0,
        }
        tokio::select! {
            () = wake.notified() => {}
            () = stream.lost() => return "the connection to systemd was lost".to_owned(),
        }
    }
}

async fn ask(
    source: &dyn UnitSource,
    bus: Bus,
    questions: Questions,
) -> Result<Answers, SourceError> {
    let mut answers = Answers { found: Vec::new(), names: Vec::new(), suspect: questions.suspect };
    let asked = questions.fresh.into_iter().map(|name| async move {
        let found = source.find(bus, &name).await;
        found.map(|found| (name, found))
    });
    let mut asked = futures_util::stream::iter(asked).buffer_unordered(AT_ONCE);
    while let Some(answer) = asked.next().await {
        answers.found.push(answer?);
    }
    for path in questions.strangers {
        let names = source.names(bus, &path).await?;
        answers.names.push((path, names));
    }
    Ok(answers)
}

impl Shared {
    /// Processes an event of systemd, in the order of the events.
    fn take_in_unit(&self, bus: Bus, happening: Happening<'_>) {
        let mut state = self.lock();
        let Some(followed) = state.units.0.get_mut(&bus) else { return };
        let concerned = followed.hear(happening);
        self.signal_units(&state, &concerned, Signal::Changed);
    }

    /// Starts the queries of all units after a new subscription.
    fn units_found(&self, bus: Bus) -> Option<Arc<Notify>> {
        let mut state = self.lock();
        let followed = state.units.0.get_mut(&bus)?;
        followed.forget();
        followed.ask_for_all();
        Some(Arc::clone(&followed.wake))
    }

    fn questions(&self, bus: Bus) -> Questions {
        let mut state = self.lock();
        let Some(followed) = state.units.0.get_mut(&bus) else {
            return Questions { fresh: Vec::new(), strangers: Vec::new(), suspect: false };
        };
        Questions {
            fresh: std::mem::take(&mut followed.fresh).into_iter().collect(),
            strangers: std::mem::take(&mut followed.strangers).into_iter().collect(),
            suspect: std::mem::take(&mut followed.suspect),
        }
    }

    fn learn(&self, bus: Bus, answers: Answers) {
        let mut state = self.lock();
        let Some(followed) = state.units.0.get_mut(&bus) else { return };
        // After a failure, the return of the bus is itself reported with a `Suspect`.
        let was_up = followed.standing == Running::Yes;
        let (mut changed, mut suspect, mut news) = (Vec::new(), Vec::new(), Vec::new());
        for (name, path) in answers.found {
            followed.is_at(&name, path.as_deref());
            let Some(watched) = followed.names.get_mut(&name) else { continue };
            watched.known = true;
            news.extend(&watched.vertices);
            if answers.suspect && was_up {
                suspect.extend(&watched.vertices);
            }
        }
        for (path, names) in answers.names {
            for name in names {
                let Some((name, watched)) = followed.names.get_key_value(&*name) else { continue };
                if watched.path.is_none() {
                    changed.extend(&watched.vertices);
                    let name = Arc::clone(name);
                    followed.is_at(&name, Some(&path));
                }
            }
        }
        followed.standing = Running::Yes;
        // Suspects come before `Established` signals: those vertices are checked anyway.
        self.signal_units(&state, &suspect, Signal::Suspect);
        self.signal_units(&state, &changed, Signal::Changed);
        self.judge_units(&mut state, &news);
    }

    /// Handles the loss of a bus. `why` is `None` during the grace time; then no failure is reported.
    fn lose_units(&self, bus: Bus, why: Option<String>) {
        let mut state = self.lock();
        let Some(followed) = state.units.0.get_mut(&bus) else { return };
        followed.forget();
        let Some(why) = why else { return };
        followed.standing = Running::Failed(why);
        let vertices: Vec<VertexId> =
            followed.names.values().flat_map(|watched| watched.vertices.clone()).collect();
        self.judge_units(&mut state, &vertices);
    }

    fn judge_units(&self, state: &mut WatchIndex, vertices: &[VertexId]) {
        let mut signals = Vec::new();
        for vertex in vertices {
            state.judge(*vertex, &mut signals);
        }
        self.send(state, signals);
    }

    fn signal_units(
        &self,
        state: &WatchIndex,
        vertices: &[VertexId],
        signal: fn(VertexId) -> Signal,
    ) {
        let mut signals = Vec::new();
        for vertex in vertices {
            state.send(*vertex, signal, &mut signals);
        }
        self.send(state, signals);
    }
}
