//! Units of systemd: one subscription for each bus, whatever is declared.
//!
//! A unit is known by the path of its object. It is asked for once, when it is armed and whenever all units were read anew, and
//! never in a way that would load it: that would be an event by itself. What of a unit tells nothing new about how far it is (a
//! service that changes its status line every second) is not told on.

use super::hub::Shared;
use super::index::{Running, WatchIndex};
use super::{Signal, SourceFuture};
use futures_util::StreamExt as _;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use steadfast_engine::VertexId;
use steadfast_resources::host::systemd::{Activity, Bus, Happening, Sink};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The wait before another attempt to reach a bus: it doubles from the first to the last.
const AGAIN: Duration = Duration::from_millis(100);
const AT_MOST: Duration = Duration::from_secs(10);
/// A bus that comes back within this time, as when it is restarted, was not lost: all is looked at again, and nobody told.
const GRACE: Duration = Duration::from_secs(1);
/// So many units are asked for at once.
const AT_ONCE: usize = 32;

/// Who can listen to systemd.
pub trait UnitSource: Send + Sync {
    /// Calls `sink` for all that systemd tells on a bus, until the stream is dropped.
    fn subscribe(
        &self,
        bus: Bus,
        sink: Sink,
    ) -> SourceFuture<'_, Result<Box<dyn UnitStream>, String>>;

    /// The object of a unit, by any of its names; none where it is not in memory. It must not load the unit.
    fn find<'s>(
        &'s self,
        bus: Bus,
        unit: &'s str,
    ) -> SourceFuture<'s, Result<Option<String>, String>>;

    /// All names of the unit that is this object.
    fn names<'s>(
        &'s self,
        bus: Bus,
        path: &'s str,
    ) -> SourceFuture<'s, Result<Vec<String>, String>>;
}

/// A subscription.
pub trait UnitStream: Send {
    /// Returns when nothing more will be told.
    fn lost(&mut self) -> SourceFuture<'_, ()>;
}

/// All units that somebody waits for.
#[derive(Debug, Default)]
pub(super) struct Units(BTreeMap<Bus, Followed>);

/// One bus.
#[derive(Debug)]
pub(super) struct Followed {
    standing: Running,
    names: HashMap<Arc<str>, Watched>,
    paths: HashMap<Arc<str>, Vec<Arc<str>>>,
    /// Who is to be asked for.
    fresh: BTreeSet<Arc<str>>,
    /// Objects that may be ours under another name.
    strangers: BTreeSet<Arc<str>>,
    /// Something may have been missed: all that are asked for are suspect.
    suspect: bool,
    /// All units are being read anew, which tells of each that it goes and comes.
    reloading: bool,
    wake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Watched {
    vertices: Vec<VertexId>,
    path: Option<Arc<str>>,
    /// It was asked for.
    known: bool,
    activity: Option<Activity>,
}

/// What the task of a bus is to do next.
struct Questions {
    fresh: Vec<Arc<str>>,
    strangers: Vec<Arc<str>>,
    suspect: bool,
}

/// What it has learned.
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

    /// What was known of objects is not true any more.
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

    /// Whom an event concerns.
    fn hear(&mut self, happening: Happening<'_>) -> Vec<VertexId> {
        match happening {
            Happening::Reloading(true) => self.reloading = true,
            Happening::Reloading(false) => {
                self.reloading = false;
                self.ask_for_all();
            }
            Happening::Files => self.ask_for_all(),
            // All of them are asked for when it is over.
            Happening::Unit { .. } | Happening::New { .. } | Happening::Removed { .. }
                if self.reloading => {}
            Happening::Unit { path, activity, known } => {
                return unless(known, self.moved(path, activity));
            }
            Happening::New { name, path, known } => return unless(known, self.came(name, path)),
            Happening::Removed { path, .. } => self.went(path),
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

    fn came(&mut self, name: &str, path: &str) -> Vec<VertexId> {
        let suffix = |name: &str| name.rsplit('.').next().map(str::to_owned);
        let wanted = suffix(name);
        // One of those that are not in memory may be another name of it.
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

    /// A unit was let go: it had ended before, which was told then.
    fn went(&mut self, path: &str) {
        for name in self.paths.remove(path).unwrap_or_default() {
            let Some(watched) = self.names.get_mut(&name) else { continue };
            (watched.path, watched.activity) = (None, None);
        }
    }
}

/// Who is at work on a unit knows of it.
fn unless(known: bool, concerned: Vec<VertexId>) -> Vec<VertexId> {
    if known { Vec::new() } else { concerned }
}

impl Units {
    /// Lets a vertex wait for a unit; true where nobody follows that bus yet.
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

    /// A vertex does not wait any more.
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

    /// How it stands with a unit.
    pub(super) fn unit_state(&self, bus: Bus, unit: &str) -> Running {
        let Some(followed) = self.0.get(&bus) else { return Running::Starting };
        match &followed.standing {
            Running::Yes if !followed.names.get(unit).is_some_and(|watched| watched.known) => {
                Running::Starting
            }
            standing => standing.clone(),
        }
    }

    /// The bus will not be followed: there is nobody who could.
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
        #[cfg(debug_assertions)]
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
            Err(why) => why,
        };
        let in_grace = lost.is_some_and(|at| at.elapsed() < GRACE);
        shared.lose_units(bus, (!in_grace).then_some(why));
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(AT_MOST);
    }
}

/// Answers what comes up while a subscription holds; returns why it ended.
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
            Err(why) => return why,
        }
        tokio::select! {
            () = wake.notified() => {}
            () = stream.lost() => return "the connection to systemd was lost".to_owned(),
        }
    }
}

async fn ask(source: &dyn UnitSource, bus: Bus, questions: Questions) -> Result<Answers, String> {
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
    /// Called for what systemd tells, in its order.
    fn take_in_unit(&self, bus: Bus, happening: Happening<'_>) {
        let mut state = self.lock();
        let Some(followed) = state.units.0.get_mut(&bus) else { return };
        let concerned = followed.hear(happening);
        self.tell_of_units(&state, &concerned, Signal::Changed);
    }

    /// The subscription holds: everything is asked for.
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
        // Where the bus had been given up, its return is told with a suspicion.
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
        // Before those that hear now for the first time that they are watched: they are checked anyway.
        self.tell_of_units(&state, &suspect, Signal::Suspect);
        self.tell_of_units(&state, &changed, Signal::Changed);
        self.judge_units(&mut state, &news);
    }

    /// Nothing is told any more. Why, where it is time to say so.
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
        self.tell(state, signals);
    }

    fn tell_of_units(
        &self,
        state: &WatchIndex,
        vertices: &[VertexId],
        signal: fn(VertexId) -> Signal,
    ) {
        let mut signals = Vec::new();
        for vertex in vertices {
            state.tell(*vertex, signal, &mut signals);
        }
        self.tell(state, signals);
    }
}
