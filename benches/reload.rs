//! The cost of a reload that changes one definition, for the driver's loop and for the engine alone; and the cost of a
//! changed fact that turns 10 of 10 000 conditions, with a limit of 10 ms.
//!
//! `cargo bench --bench reload`: medians of nine rounds, in processor time of the thread. Another thread has read and
//! checked the graph. The files exist, are watched and converged; nothing is stored.

mod compiled;

use compiled::for_the_engine;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use steadfast::config::{LoadedGraph, Options, load};
use steadfast::driver::{
    Driver, DriverDeps, DriverEvent, DriverHealth, Inbox, Notification, Observer, PingReply,
    Settings, local_minute,
};
use steadfast::expressions::Value;
use steadfast::store::StoredState;
use steadfast_engine::{Action, Engine, Event, Graph, RunVerdict, Slots, Swap, Tick};
use steadfast_resources::{Host, MintKey};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 9;

/// The resources of the measurement of conditions, and those whose condition follows the changed fact.
const CONDITIONS: (usize, usize) = (10_000, 10);

/// Returns the processor time of this thread so far.
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("since the start")
}

/// An observer that reports the number of changed and unchanged definitions of each graph.
struct NullSink(Sender<(usize, usize)>);

impl Observer for NullSink {
    fn hear(&mut self, news: &Notification<'_>) {
        if let Notification::Loaded { change, .. } = news {
            self.0.send((change.changed.count, change.unchanged)).expect("the bench listens");
        }
    }
}

/// Creates this many files and their graph; the last file has another content in each round.
fn graph(folder: &Path, count: usize, round: usize) -> LoadedGraph {
    let mut text = String::from("graph: bench\nresources:\n  file:\n");
    for i in 0..count {
        let path = folder.join(format!("d{}", i / 1000)).join(format!("f{i}"));
        let content = if i + 1 == count { round } else { 0 };
        writeln!(
            text,
            "  - name: f{i}\n    path: {}\n    content: x{content}\n    mode: \"0644\"",
            path.display()
        )
        .expect("a string takes everything");
    }
    let path: PathBuf = folder.join("graph.yaml");
    std::fs::write(&path, text).expect("room for the graph");
    load(std::slice::from_ref(&path), &Options::new(steadfast::config::KindSet::of_this_build()))
        .expect("a valid graph")
}

/// Creates the graph of as many files with conditions. The round selects the value of the fact that the last ones use.
fn conditional_graph(folder: &Path, round: usize) -> LoadedGraph {
    let (count, turned) = CONDITIONS;
    let mut text = String::from("graph: bench\nresources:\n  file:\n");
    for i in 0..count {
        let path = folder.join(format!("d{}", i / 1000)).join(format!("f{i}"));
        let fact = if i + turned < count { "facts.cpu.count > 0" } else { "facts.reboot_required" };
        writeln!(
            text,
            "  - name: f{i}\n    path: {}\n    content: x0\n    mode: \"0644\"\n    when: {fact}",
            path.display()
        )
        .expect("a string takes everything");
    }
    let path: PathBuf = folder.join("graph.yaml");
    std::fs::write(&path, text).expect("room for the graph");
    let facts =
        serde_json::json!({"cpu": {"count": 2}, "reboot_required": round.is_multiple_of(2)});
    let mut options = Options::new(steadfast::config::KindSet::of_this_build());
    options.facts = Some(Arc::new(Value::from_json(facts).expect("facts")));
    let loaded = load(std::slice::from_ref(&path), &options).expect("a valid graph");
    assert_eq!(loaded.inactive.len(), if round.is_multiple_of(2) { 0 } else { turned });
    loaded
}

fn make_files(folder: &Path, count: usize) {
    for i in 0..count {
        let directory = folder.join(format!("d{}", i / 1000));
        std::fs::create_dir_all(&directory).expect("room for a directory");
        std::fs::write(directory.join(format!("f{i}")), "x0").expect("room for a file");
    }
}

/// Starts a driver on its own thread and returns its inbox.
fn driver(ear: NullSink, key: Arc<MintKey>) -> Inbox<DriverEvent> {
    let (told, inbox) = mpsc::channel();
    let settings = Settings {
        one_shot: false,
        slots: Slots::default(),
        sweep: None,
        pause_limit: Duration::from_hours(8),
        whole: true,
        removes: true,
        repair_limit: None,
        clock: local_minute,
        guard: None,
    };
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let parts = DriverDeps {
                host: Host::default(),
                key,
                journal: None,
                recalled: StoredState::default(),
                history: None,
                read_only: None,
                kinds: steadfast::config::KindSet::of_this_build(),
                observer: Box::new(ear),
            };
            let driver = Driver::new(settings, parts);
            told.send(driver.inbox()).expect("the bench waits");
            driver.run().await;
        });
    });
    inbox.recv().expect("a driver")
}

/// Creates a ping that is answered with the processor time of the driver's thread.
fn ping() -> (DriverEvent, Receiver<(Duration, DriverHealth)>) {
    let (sender, answer) = mpsc::channel();
    let reply = move |pulse| sender.send((now(), pulse)).expect("the bench waits");
    (DriverEvent::Ping(PingReply(Box::new(reply))), answer)
}

/// Returns the processor time of the driver's thread for a reload.
fn reload(inbox: &Inbox<DriverEvent>, loaded: LoadedGraph) -> Duration {
    let ((before, began), (after, ended)) = (ping(), ping());
    let graph = DriverEvent::Graph { graph: Ok(Box::new(loaded)), operator: true };
    inbox.put_all([before, graph, after]);
    let end = ended.recv().expect("a driver").0;
    end.saturating_sub(began.recv().expect("a driver").0)
}

/// Returns the processor time of the engine for a swap, without the runs that follow.
fn swap(engine: &mut Engine, tick: &mut u64, graph: Arc<Graph>) -> Duration {
    let swap = Swap { graph, recall: BTreeMap::new(), operator: true };
    let start = now();
    let mut actions = engine.handle(Tick(*tick), Event::Swap(swap));
    let spent = now().saturating_sub(start);
    loop {
        let event = |action: &Action| match action {
            Action::Watch(id) => Some(Event::Watching(*id)),
            Action::Start(start) => Some(Event::Checked(start.run, RunVerdict::Same)),
            _ => None,
        };
        let events: Vec<Event> = actions.iter().filter_map(event).collect();
        if events.is_empty() {
            return spent;
        }
        actions = events
            .into_iter()
            .flat_map(|event| {
                *tick += 1;
                engine.handle(Tick(*tick), event)
            })
            .collect();
    }
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Waits until the driver has converged.
fn wait_until_converged(inbox: &Inbox<DriverEvent>) {
    loop {
        let (query, answer) = ping();
        inbox.put(query);
        if answer.recv().expect("a driver").1.converged {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[expect(clippy::print_stdout, reason = "the measurement is its output")]
fn measure(count: usize, key: &Arc<MintKey>) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    make_files(folder.path(), count);
    let (news, loaded) = mpsc::channel();
    let inbox = driver(NullSink(news), Arc::clone(key));
    let first = graph(folder.path(), count, 0);
    let (mut engine, mut tick) = (Engine::new(Slots::default(), false), 1);
    swap(&mut engine, &mut tick, Arc::new(for_the_engine(&first)));
    reload(&inbox, first);
    wait_until_converged(&inbox);
    loaded.recv().expect("the first graph");
    let (mut whole, mut alone) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let next = graph(folder.path(), count, round);
        alone.push(swap(&mut engine, &mut tick, Arc::new(for_the_engine(&next))));
        whole.push(reload(&inbox, next));
        let changed = loaded.recv().expect("another graph");
        assert_eq!(changed, (1, count - 1), "one definition differs");
        // Time for the check of the changed file.
        std::thread::sleep(Duration::from_millis(200));
    }
    inbox.put(DriverEvent::Stop(Duration::ZERO));
    let (whole, alone) = (median(&mut whole), median(&mut alone));
    println!(
        "{count:>7} files, one definition differs: the loop is held up for {whole:>7.2} ms, of which the engine {alone:>6.2} ms"
    );
}

#[expect(clippy::print_stdout, reason = "the measurement is its output")]
fn measure_conditions(key: &Arc<MintKey>) {
    let (count, turned) = CONDITIONS;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    make_files(folder.path(), count);
    let (news, loaded) = mpsc::channel();
    let inbox = driver(NullSink(news), Arc::clone(key));
    reload(&inbox, conditional_graph(folder.path(), 0));
    wait_until_converged(&inbox);
    loaded.recv().expect("the first graph");
    let mut times = Vec::new();
    for round in 1..=ROUNDS {
        times.push(reload(&inbox, conditional_graph(folder.path(), round)));
        let (_, unchanged) = loaded.recv().expect("another graph");
        assert_eq!(unchanged, count - turned, "all other resources stay");
        wait_until_converged(&inbox);
    }
    inbox.put(DriverEvent::Stop(Duration::ZERO));
    let time = median(&mut times);
    let verdict = if time < 10.0 { "met" } else { "MISSED" };
    println!(
        "{turned} of {count} conditions turn: the loop is held up for {time:>7.2} ms, limit 10 ms: {verdict}"
    );
}

fn main() {
    let key = Arc::new(MintKey::take().expect("nobody had it before"));
    for count in [1_000, 10_000, 100_000] {
        measure(count, &key);
    }
    measure_conditions(&key);
}
