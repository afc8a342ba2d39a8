//! systemd units as a source: one subscription for all units, and the signals that each vertex gets.

use crate::listener::{Ears, LONG};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use steadfast::watch::{ExternalSources, SourceError, SourceFuture, UnitSource, UnitStream};
use steadfast_engine::VertexId;
use steadfast_resources::WatchSource;
use steadfast_resources::host::systemd::{Activity, Bus, Happening, Sink};
use tokio_util::sync::CancellationToken;

/// A simulated systemd.
#[derive(Default)]
struct Script {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The loaded units: name and D-Bus object.
    loaded: BTreeMap<String, String>,
    sink: Option<Sink>,
    lost: CancellationToken,
    refuse: bool,
    subscriptions: usize,
    questions: usize,
}

struct Stream(CancellationToken);

impl UnitStream for Stream {
    fn lost(&mut self) -> SourceFuture<'_, ()> {
        Box::pin(self.0.cancelled())
    }
}

impl UnitSource for Script {
    fn subscribe(
        &self,
        _bus: Bus,
        sink: Sink,
    ) -> SourceFuture<'_, Result<Box<dyn UnitStream>, SourceError>> {
        Box::pin(async {
            let mut state = self.state.lock().expect("not poisoned");
            if state.refuse {
                return Err(SourceError("no bus".to_owned()));
            }
            state.subscriptions += 1;
            state.sink = Some(sink);
            state.lost = CancellationToken::new();
            Ok(Box::new(Stream(state.lost.clone())) as Box<dyn UnitStream>)
        })
    }

    fn find<'s>(
        &'s self,
        _bus: Bus,
        unit: &'s str,
    ) -> SourceFuture<'s, Result<Option<String>, SourceError>> {
        Box::pin(async move {
            let mut state = self.state.lock().expect("not poisoned");
            state.questions += 1;
            Ok(state.loaded.get(unit).cloned())
        })
    }

    fn names<'s>(
        &'s self,
        _bus: Bus,
        path: &'s str,
    ) -> SourceFuture<'s, Result<Vec<String>, SourceError>> {
        Box::pin(async move {
            let state = self.state.lock().expect("not poisoned");
            let names = state.loaded.iter().filter(|(_, known)| *known == path);
            Ok(names.map(|(name, _)| name.clone()).collect())
        })
    }
}

impl Script {
    fn with(loaded: &[(&str, &str)]) -> (Arc<Self>, Ears) {
        let script = Arc::new(Self::default());
        for (name, path) in loaded {
            script.load(name, path);
        }
        let units = Some(Arc::clone(&script) as Arc<dyn UnitSource>);
        let ears = Ears::with(ExternalSources { lines: None, units });
        (script, ears)
    }

    fn load(&self, name: &str, path: &str) {
        let mut state = self.state.lock().expect("not poisoned");
        state.loaded.insert(name.to_owned(), path.to_owned());
    }

    fn say(&self, happening: Happening<'_>) {
        // The sink is called without this lock, since another connection may need it meanwhile.
        let sink = self.state.lock().expect("not poisoned").sink.take().expect("subscribed");
        sink(happening);
        self.state.lock().expect("not poisoned").sink.get_or_insert(sink);
    }

    fn moves(&self, path: &str, activity: Activity) {
        self.say(Happening::Unit { path, activity: Some(activity), known: false });
    }

    fn lose(&self, refuse: bool) {
        let mut state = self.state.lock().expect("not poisoned");
        state.refuse = refuse;
        state.lost.cancel();
    }

    fn subscriptions(&self) -> usize {
        self.state.lock().expect("not poisoned").subscriptions
    }
}

fn arm(ears: &Ears, vertex: u32, unit: &str) {
    let source = WatchSource::Unit { bus: Bus::System, unit: unit.into() };
    ears.hub.arm(VertexId(vertex), vec![source]);
}

fn heard(ears: &Ears, vertex: u32) -> crate::listener::Heard {
    ears.notes.heard.lock().expect("not poisoned").get(&vertex).cloned().unwrap_or_default()
}

#[track_caller]
fn until(what: &str, mut reached: impl FnMut() -> bool) {
    let limit = Instant::now() + LONG;
    while !reached() {
        assert!(Instant::now() < limit, "waited for {what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn established(ears: &Ears, vertex: u32) {
    until("the watch", || heard(ears, vertex).established == 1);
}

#[test]
fn only_those_concerned_hear_and_only_what_is_new() {
    let (script, ears) = Script::with(&[("a.service", "/a"), ("b.service", "/b")]);
    for (vertex, unit) in [(1, "a.service"), (2, "b.service"), (3, "a.service")] {
        arm(&ears, vertex, unit);
        established(&ears, vertex);
    }
    assert_eq!(script.subscriptions(), 1, "one for all");
    for _ in 0..100 {
        script.moves("/a", Activity::Inactive);
        script.moves("/stranger", Activity::Active);
    }
    assert_eq!((heard(&ears, 1).changed, heard(&ears, 3).changed), (1, 1));
    assert_eq!(heard(&ears, 2).news(), 0);
    // A state that the daemon's own run has caused causes no signal.
    script.say(Happening::Unit { path: "/a", activity: Some(Activity::Active), known: true });
    script.moves("/a", Activity::Active);
    assert_eq!(heard(&ears, 1).changed, 1);
    script.say(Happening::Unit { path: "/a", activity: None, known: false });
    assert_eq!(heard(&ears, 1).changed, 2, "what is not told may be anything");
    ears.hub.disarm(VertexId(1));
    script.moves("/a", Activity::Failed);
    assert_eq!((heard(&ears, 1).changed, heard(&ears, 3).changed), (2, 3));
}

#[test]
fn a_unit_that_comes_is_known_by_any_of_its_names() {
    let (script, ears) = Script::with(&[]);
    arm(&ears, 1, "a.service");
    arm(&ears, 2, "alias.service");
    established(&ears, 1);
    established(&ears, 2);
    script.load("a.service", "/a");
    script.load("alias.service", "/a");
    script.say(Happening::New { name: "a.service", path: "/a", known: false });
    assert_eq!(heard(&ears, 1).changed, 1);
    until("the other name", || heard(&ears, 2).changed == 1);
    script.moves("/a", Activity::Active);
    assert_eq!((heard(&ears, 1).changed, heard(&ears, 2).changed), (2, 2));
    // A unit is unloaded after its end was reported; later signals of its object are ignored.
    script.say(Happening::Removed { name: "a.service", path: "/a" });
    script.moves("/a", Activity::Failed);
    assert_eq!((heard(&ears, 1).changed, heard(&ears, 2).changed), (2, 2));
}

/// During a reload of systemd all units go and come; each vertex becomes suspect once, after the reload.
#[test]
fn a_reload_is_one_suspicion() {
    let (script, ears) = Script::with(&[("a.service", "/a")]);
    arm(&ears, 1, "a.service");
    established(&ears, 1);
    script.say(Happening::Reloading(true));
    for _ in 0..10 {
        script.say(Happening::Removed { name: "a.service", path: "/a" });
        script.say(Happening::New { name: "a.service", path: "/a", known: false });
        script.moves("/a", Activity::Active);
    }
    assert_eq!(heard(&ears, 1).news(), 0);
    script.load("a.service", "/other");
    script.say(Happening::Reloading(false));
    until("the suspicion", || heard(&ears, 1).suspect == 1);
    script.moves("/other", Activity::Failed);
    assert_eq!(heard(&ears, 1).changed, 1, "its object is asked for again");
    script.say(Happening::Files);
    until("the suspicion", || heard(&ears, 1).suspect == 2);
}

#[test]
fn a_bus_that_is_lost_is_told_and_told_again_when_it_is_back() {
    let (script, ears) = Script::with(&[("a.service", "/a")]);
    script.state.lock().expect("not poisoned").refuse = true;
    arm(&ears, 1, "a.service");
    until("the absence", || heard(&ears, 1).absent == ["no bus"]);
    script.state.lock().expect("not poisoned").refuse = false;
    established(&ears, 1);
    until("the suspicion", || heard(&ears, 1).suspect == 1);
    script.lose(true);
    until("the second absence", || heard(&ears, 1).absent.len() == 2);
    script.state.lock().expect("not poisoned").refuse = false;
    until("the return", || heard(&ears, 1).established == 2);
    script.moves("/a", Activity::Failed);
    assert_eq!(heard(&ears, 1).changed, 1);
}

/// A bus that restarts quickly only makes the vertices suspect.
#[test]
fn a_bus_that_is_back_at_once_is_only_a_suspicion() {
    let (script, ears) = Script::with(&[("a.service", "/a")]);
    arm(&ears, 1, "a.service");
    established(&ears, 1);
    // Only a connection that lasted some time is expected back.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    script.lose(false);
    until("the suspicion", || heard(&ears, 1).suspect == 1);
    assert_eq!((heard(&ears, 1).absent.len(), script.subscriptions()), (0, 2));
}

#[test]
fn a_hundred_thousand_units_are_one_subscription() {
    let (script, ears) = Script::with(&[]);
    let all = (0..100_000).map(|vertex| {
        let unit = format!("a{vertex}.service").into();
        (VertexId(vertex), vec![WatchSource::Unit { bus: Bus::System, unit }])
    });
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").count();
    ears.hub.arm_all(all.collect());
    until("all of them", || {
        let heard = ears.notes.heard.lock().expect("not poisoned");
        heard.values().filter(|heard| heard.established == 1).count() == 100_000
    });
    assert_eq!(script.subscriptions(), 1);
    assert!(std::fs::read_dir("/proc/self/task").expect("threads").count() <= tasks + 1);
    script.say(Happening::New { name: "a77.service", path: "/a77", known: false });
    assert_eq!(heard(&ears, 77).changed, 1);
}
