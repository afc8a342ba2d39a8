//! One run: a seed gives a graph, a host and faults. After the faults end, the host must become as declared.

use crate::environment::{Event, Shared, Stage, here, lock};
use crate::host::adversary::{meddle, probe, put_back};
use crate::host::commands;
use crate::input::chance::Chance;
use crate::input::profile::Profile;
use crate::input::shape::{Shape, Thing, load_outside};
use crate::judgement::coverage::Sights;
use crate::judgement::oracle::{Since, complaints};
use crate::life::Life;
use std::future::poll_fn;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use steadfast::config::LoadedGraph;
use steadfast::driver::{DriverEvent, LoadError, Query};
use steadfast::store::{MemoryStore, Store as _};
use steadfast_resources::host::simulated::Machine;

/// The interval of sweeps, in milliseconds.
pub(crate) const SWEEP: u64 = 60_000;
/// The time that the host must stay as declared and idle, in milliseconds.
const QUIET: u64 = SWEEP + 5_000;
/// The longest time from the end of faults to that state, in milliseconds.
const PATIENCE: u64 = 30 * 60_000;
/// The wall-clock time at the start of every run, since the Unix epoch.
pub(crate) const WALL: Duration = Duration::from_secs(1_790_000_000);
/// The limit of events in one run.
const MOST_EVENTS: u64 = 100_000;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Played {
    /// The complaints; empty for a good run.
    pub(crate) wrong: Vec<String>,
    /// The hash of the trace and its number of lines.
    pub(crate) sum: (u64, u64),
    pub(crate) sights: Sights,
    /// The lines of the trace, if requested.
    pub(crate) lines: Vec<String>,
}

/// Plays the run of a seed.
pub(crate) fn play(seed: u64, keep: bool, folder: &Path) -> Played {
    run(|| Player::new(seed, keep, folder, false))
}

/// Plays a run with a busy operator and `realize` set for every resource.
pub(crate) fn play_realizing(seed: u64, folder: &Path) -> Played {
    run(|| Player::new(seed, false, folder, true))
}

fn run<'f>(player: impl FnOnce() -> Player<'f>) -> Played {
    let machine = Machine::default();
    let _entered = machine.enter();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(tokio::task::unconstrained(async {
        let mut player = player();
        player.play().await;
        player.end()
    }))
}

struct Player<'f> {
    stage: Shared,
    kept: MemoryStore,
    /// The graph that the operator wants, and the folder of its file.
    shape: Shape,
    folder: &'f Path,
    life: Option<Life>,
    /// The random numbers for the operator and the graphs.
    chance: Chance,
    since: Since,
    loaded: u64,
    events: u64,
    faults_ended_at: Option<u64>,
    /// The number of probes left: each changes something in the calm phase, and the daemon must repair the change.
    probes: u64,
    /// True until the operator has loaded the graph again.
    reloads: bool,
    /// The time since which all is as declared, and the number of changes reported soon after that time.
    good: Option<(u64, Option<u64>)>,
    is_over: bool,
    /// True if every graph sets `realize` for all its resources.
    realizes: bool,
}

impl<'f> Player<'f> {
    fn new(seed: u64, keep: bool, folder: &'f Path, realizes: bool) -> Self {
        let mut chance = Chance::of(seed, "graph");
        let mut profile = Profile::draw(&mut Chance::of(seed, "profile"));
        if realizes {
            profile.operator = 1_000;
        }
        let profile = profile.with_repair_limit(&mut Chance::of(seed, "repair limit"));
        let mut stage = Stage::new(profile.clone(), Chance::of(seed, "stage"), keep);
        let mut aside = Chance::of(seed, "aside");
        let mut shape = Shape::draw_with(&mut chance, aside.percent(25).then_some(aside));
        if realizes {
            shape.realize_all();
        }
        let machine = here();
        put_back(&mut stage, &machine, |_| false);
        for _ in 0..chance.below(12) {
            meddle(&mut stage, &machine);
        }
        stage.after(0, Event::Start);
        stage.after(profile.rough_for, Event::FaultsEnd);
        if profile.foreign > 0 {
            stage.after(profile.foreign, Event::Foreign);
        }
        if profile.operator > 0 {
            stage.after(profile.operator, Event::Operator);
        }
        for _ in 0..profile.kills {
            let at = chance.below(profile.rough_for);
            stage.after(at, Event::Kill);
        }
        let probes = chance.below(3);
        let stage = Arc::new(Mutex::new(stage));
        commands::install(&machine, &stage);
        let hooked = Arc::clone(&stage);
        machine.set_hook(Some(Box::new(move |machine, _| lock(&hooked).between_calls(machine))));
        Self {
            stage,
            kept: MemoryStore::default(),
            shape,
            folder,
            life: None,
            chance,
            since: Since::new(),
            loaded: 0,
            events: 0,
            faults_ended_at: None,
            probes,
            reloads: false,
            good: None,
            is_over: false,
            realizes,
        }
    }

    async fn play(&mut self) {
        while !self.is_over {
            let event = self.next().await;
            self.events += 1;
            if self.events > MOST_EVENTS {
                lock(&self.stage).wrong.push("it goes on for ever".to_owned());
                return;
            }
            match event {
                Some(event) => self.act(event),
                None => self.stopped(),
            }
            if !lock(&self.stage).wrong.is_empty() {
                return;
            }
        }
    }

    /// Lets the daemon work and waits for the next event; returns none once the daemon has ended.
    async fn next(&mut self) -> Option<Event> {
        let mut sleep = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
        poll_fn(|context| {
            loop {
                let mut stage = lock(&self.stage);
                stage.waker = None;
                here().set_wall(WALL + Duration::from_millis(stage.now()));
                drop(stage);
                if let Some(life) = &mut self.life
                    && life.driver.as_mut().poll(context).is_ready()
                {
                    return Poll::Ready(None);
                }
                if let Some(life) = &self.life {
                    life.plan(&self.stage);
                }
                self.note_loads();
                let mut stage = lock(&self.stage);
                let Some(due) = stage.due() else {
                    stage.wrong.push("nothing is left to happen".to_owned());
                    return Poll::Ready(Some(Event::Judge));
                };
                if due <= stage.now() {
                    return Poll::Ready(stage.take());
                }
                sleep.as_mut().reset(stage.moment(due));
                stage.waker = Some(context.waker().clone());
                drop(stage);
                if sleep.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    fn act(&mut self, event: Event) {
        match event {
            Event::Start => self.start(),
            Event::Kill => {
                let mut stage = lock(&self.stage);
                if stage.chance.percent(50) {
                    // The kill happens within one of the next system calls.
                    let calls = stage.chance.within(1, 20);
                    stage.dies_in = Some(calls);
                } else {
                    drop(stage);
                    self.kill();
                }
            }
            Event::FaultsEnd => self.end_faults(),
            Event::Operator => self.operate(),
            Event::Look => self.ask(),
            Event::Judge => self.judge(),
            Event::Foreign => {
                let mut stage = lock(&self.stage);
                if stage.rough {
                    meddle(&mut stage, &here());
                    let most = stage.profile.foreign;
                    let delay = stage.chance.below(most) + 1;
                    stage.after(delay, Event::Foreign);
                }
            }
            event => {
                if let Some(life) = &mut self.life {
                    life.act(event, &self.stage);
                }
            }
        }
        // A planned kill took place within the last call.
        if lock(&self.stage).dead && self.life.is_some() {
            self.kill();
        }
    }

    fn start(&mut self) {
        if self.life.is_some() {
            return;
        }
        lock(&self.stage).say(format_args!("starts"));
        let life = Life::begin(&self.stage, &self.kept);
        life.inbox.put(DriverEvent::Graph { graph: self.read(), operator: true });
        self.life = Some(life);
    }

    /// Writes the operator's graph to its file and reads the file as the daemon does.
    fn read(&self) -> Result<Box<LoadedGraph>, LoadError> {
        let path = self.folder.join("graph.yaml");
        let text = self.shape.text();
        lock(&self.stage).say(format_args!("the graph is now\n{text}"));
        std::fs::write(&path, &text).expect("a graph file");
        match load_outside(&path) {
            Ok(loaded) => {
                let each = loaded.vertices.iter();
                let each = each.map(|vertex| (vertex.identity.to_string(), vertex.definition));
                lock(&self.stage).definitions = each.collect();
                Ok(Box::new(loaded))
            }
            Err(rejected) => {
                let wrong = format!("a drawn graph is refused: {rejected}\n{text}");
                lock(&self.stage).wrong.push(wrong.clone());
                Err(LoadError::Invalid(wrong))
            }
        }
    }

    fn kill(&mut self) {
        let Some(life) = self.life.take() else { return };
        let mut stage = lock(&self.stage);
        stage.say(format_args!("is killed"));
        drop(stage);
        life.killed(&self.stage);
        let mut stage = lock(&self.stage);
        let delay = stage.chance.below(3_000);
        stage.after(delay, Event::Start);
    }

    /// Ends a daemon that has stopped on request, and schedules its next start.
    fn stopped(&mut self) {
        let Some(life) = self.life.take() else { return };
        lock(&self.stage).say(format_args!("has stopped"));
        life.stopped(&self.stage);
        let mut stage = lock(&self.stage);
        let delay = stage.chance.below(3_000);
        stage.after(delay, Event::Start);
    }

    /// Records the load time of each edge of a newly accepted graph.
    fn note_loads(&mut self) {
        let mut stage = lock(&self.stage);
        if stage.heard.loaded == self.loaded {
            return;
        }
        self.loaded = stage.heard.loaded;
        let now = stage.now();
        if stage.running.values().any(|count| *count > 0) {
            stage.saw("a swap while something ran");
        }
        let before = std::mem::take(&mut self.since);
        for (edge, _) in self.shape.edges.iter().filter(|(_, notify)| **notify) {
            let began = before.get(edge).copied().unwrap_or(now);
            self.since.insert(edge.clone(), began);
        }
        let paths = self.shape.resources.iter().filter_map(|(name, declared)| {
            Some((self.shape.identity(name), declared.thing.path()?.to_owned()))
        });
        stage.paths = paths.collect();
        let watched = self.shape.resources.values().filter_map(|declared| match &declared.thing {
            Thing::Exec { watched, .. } => Some(watched.clone()),
            _ => None,
        });
        stage.watched = watched.flatten().collect();
        let deeds = self.shape.resources.iter().filter(|(_, declared)| declared.thing.is_deed());
        stage.deeds = deeds.map(|(name, _)| self.shape.identity(name)).collect();
    }

    fn operate(&mut self) {
        let mut stage = lock(&self.stage);
        if !stage.rough {
            return;
        }
        let most = stage.profile.operator;
        let delay = stage.chance.below(most) + 1;
        stage.after(delay, Event::Operator);
        drop(stage);
        let Some(inbox) = self.life.as_ref().map(|life| life.inbox.clone()) else { return };
        let names: Vec<String> =
            self.shape.resources.keys().map(|name| self.shape.identity(name)).collect();
        let one =
            if names.is_empty() { Vec::new() } else { vec![self.chance.pick(&names).clone()] };
        let act = self.chance.below(12);
        lock(&self.stage).say(format_args!("the operator does {act} {one:?}"));
        let (answer, _) = tokio::sync::oneshot::channel();
        match act {
            0..2 => {
                let limit = Some(Duration::from_millis(self.chance.below(40_000)));
                let drain = act == 0;
                inbox.put(DriverEvent::Pause { reason: "simulated".to_owned(), limit, drain });
            }
            2..4 => inbox.put(DriverEvent::Resume),
            4..8 => {
                let mut shape = self.shape.altered(&mut self.chance);
                if self.realizes {
                    shape.realize_all();
                }
                if shape.moves_a_value(&self.shape) {
                    lock(&self.stage).saw("a value that changed");
                }
                let mut removed = self.shape.to_realize();
                let stays = shape.to_realize();
                removed.retain(|identity| !stays.contains(identity));
                lock(&self.stage).heard.removed = removed;
                self.shape = shape;
                inbox.put(DriverEvent::Graph { graph: self.read(), operator: true });
            }
            8 => {
                let why = LoadError::Invalid("simulated: not valid".to_owned());
                inbox.put(DriverEvent::Graph { graph: Err(why), operator: true });
            }
            9 => inbox.put(DriverEvent::Query(Query::CheckNow(one, answer))),
            10 => inbox.put(DriverEvent::Query(Query::Retry(one, answer))),
            _ => inbox.put(DriverEvent::Stop(Duration::from_millis(self.chance.below(5_000)))),
        }
    }

    fn end_faults(&mut self) {
        let mut stage = lock(&self.stage);
        stage.say(format_args!("from now on nothing goes wrong"));
        stage.rough = false;
        stage.dies_in = None;
        stage.world.longest_queue = 1 << 14;
        stage.world.most_watched = usize::MAX;
        let shape = &self.shape;
        here().set_faults([]);
        put_back(&mut stage, &here(), |path| {
            let is_it =
                |thing: &Thing| matches!(thing, Thing::Directory { path: p, .. } if p == path);
            shape.resources.values().any(|d| is_it(&d.thing) && !d.is_noop())
        });
        self.faults_ended_at = Some(stage.now());
        stage.hurry();
        stage.after(5_000, Event::Look);
        self.reloads = !stage.profile.sweeps;
        drop(stage);
        if let Some(life) = &self.life {
            life.inbox.put(DriverEvent::Resume);
        }
    }

    fn ask(&mut self) {
        let Some(life) = &self.life else {
            lock(&self.stage).after(1_000, Event::Look);
            return;
        };
        if std::mem::take(&mut self.reloads) {
            // A reload by the operator retries failed resources; no other resource is checked for it.
            life.inbox.put(DriverEvent::Graph { graph: self.read(), operator: true });
        }
        let stage = Arc::clone(&self.stage);
        let keep = move |pulse| lock(&stage).pulse = Some(pulse);
        lock(&self.stage).pulse = None;
        life.inbox.put(DriverEvent::Ping(steadfast::driver::PingReply(Box::new(keep))));
        lock(&self.stage).after(1, Event::Judge);
    }

    /// Ends the run if the oracle has no complaint for long enough; records a complaint that comes back.
    fn judge(&mut self) {
        let kept = self.kept.fork().recall().expect("memory tells all");
        let mut stage = lock(&self.stage);
        let mut wrong = complaints(&stage, &self.shape, (&self.since, &kept));
        let at_work = self.at_work(&stage);
        let (now, changes) = (stage.now(), stage.heard.changes);
        let faults_ended_at = self.faults_ended_at.expect("it is calm");
        if let Some((since, before)) = &mut self.good {
            // The last change can be reported a moment after the host is as declared.
            if *before.get_or_insert(changes) != changes {
                wrong.push("something was changed".to_owned());
            }
            if wrong.is_empty() {
                // A check can be active at this moment.
                self.is_over = now >= *since + QUIET && at_work.is_none();
            } else {
                wrong.insert(0, "it was as declared, and is not any more".to_owned());
                stage.wrong.append(&mut wrong);
            }
        } else if wrong.is_empty() && at_work.is_none() {
            if self.probes > 0 {
                self.probes -= 1;
                probe(&mut stage, &here(), &self.shape);
            } else {
                self.good = Some((now, None));
            }
        }
        if now > faults_ended_at + PATIENCE {
            stage.wrong.append(&mut wrong);
            stage.wrong.extend(at_work);
        }
        if !self.is_over {
            stage.after(5_000, Event::Look);
        }
    }

    /// Returns the counts of the engine unless all is as declared, apart from noop resources.
    fn at_work(&self, stage: &Stage) -> Option<String> {
        let Some(pulse) = stage.pulse else { return Some("the loop does not answer".to_owned()) };
        let counts = pulse.counts;
        let noop = self.shape.resources.values().filter(|declared| declared.is_noop()).count();
        let off = counts.failed + counts.delayed + counts.stuck + counts.contended;
        let busy = counts.waiting + counts.running;
        let is_held = noop > 0 && off == 0 && busy == 0 && counts.held as usize <= noop;
        let is_whole = counts.total as usize == self.shape.resources.len();
        // In the calm phase nothing prevents a watch.
        let is_well = is_whole && (pulse.converged || is_held) && pulse.unwatched == 0;
        (!is_well).then(|| format!("the engine says {pulse:?}"))
    }

    fn end(self) -> Played {
        let Self { stage, life, .. } = self;
        if let Some(life) = life {
            life.killed(&stage);
        }
        let mut stage = lock(&stage);
        Played {
            wrong: std::mem::take(&mut stage.wrong),
            sum: stage.trace.sum(),
            sights: std::mem::take(&mut stage.sights),
            lines: stage.trace.kept.take().unwrap_or_default(),
        }
    }
}
