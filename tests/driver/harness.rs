//! The harness: a driver in virtual time, a kind whose resources can share one transaction, and a recorder of
//! notifications.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use steadfast::config::{Link, LoadedGraph, Vertex, Window};
use steadfast::driver::{
    Driver, DriverDeps, DriverEvent, Inbox, Notification, Observer, Query, Settings, local_minute,
};
use steadfast::store::{Journal, MemoryStore, Store as _, StoredState};
use steadfast_engine::{Meta, Slots};
use steadfast_resources::{
    Answer, Change, CheckRequest, CheckResult, Difference, ExecutorKind, Failure, Footprint,
    Grouping, Host, Member, MintKey, Outcome, Permit, Resource, Sent, SentValue, Traits,
    Transaction, ValueRetention,
};
use tokio::sync::{Notify, oneshot};

/// The simulated host, and the transactions that have run on it.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) there: BTreeSet<String>,
    /// The names that cannot be applied.
    pub(crate) broken: BTreeSet<String>,
    /// True if the resource `gate` does not pass.
    pub(crate) shut: bool,
    /// The members of each transaction, in order.
    pub(crate) together: Vec<Vec<String>>,
}

/// The secret value that the resource `secret` sends.
pub(crate) const CANARY: &str = "canary-77e0";

/// A resource. All can share a transaction, except `gate`, `last` and `secret`.
#[derive(Clone, Debug)]
struct Thing {
    name: String,
    world: Arc<Mutex<World>>,
    opened: Arc<Notify>,
}

impl Thing {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("nobody panics with it")
    }

    fn look(&self) -> CheckResult {
        if self.world().there.contains(&self.name) {
            return CheckResult::Same;
        }
        let difference =
            Difference { aspect: "state", from: "absent".into(), to: "there".into(), diff: None };
        CheckResult::Differs(Change { creates: true, ..Change::of(vec![difference]) })
    }

    fn make(&self) -> Outcome {
        let mut world = self.world();
        if world.broken.contains(&self.name) {
            return Outcome::Failed { failure: Failure::new("it is broken"), touched: false };
        }
        world.there.insert(self.name.clone());
        Outcome::Changed(Vec::new())
    }
}

impl Resource for Thing {
    fn traits(&self) -> Traits {
        Traits { executor: ExecutorKind::Command, ..Traits::default() }
    }

    fn footprint(&self) -> Footprint {
        let is_alone = ["gate", "last", "secret"].contains(&self.name.as_str());
        let unite = |members: Vec<Member>| -> Arc<dyn Transaction> {
            let thing = |member: Member| member.downcast::<Self>().expect("one of ours");
            Arc::new(Several(members.into_iter().map(thing).collect()))
        };
        let part: Member = Arc::new(self.clone());
        let grouping = (!is_alone).then(|| Grouping { key: "thing".to_owned(), part, unite });
        Footprint { grouping, ..Footprint::default() }
    }

    fn sends(&self) -> Sent {
        let secret = SentValue::Secret { secret: CANARY.into(), saved: true };
        if self.name == "secret" { vec![("text", secret)] } else { Vec::new() }
    }

    fn with_sent(&self, _kept: ValueRetention) -> Option<Arc<dyn Resource>> {
        (self.name == "secret").then(|| Arc::new(self.clone()) as Arc<dyn Resource>)
    }

    fn check<'a>(&'a self, _host: &'a Host, _ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async {
            while self.name == "gate" && self.world().shut {
                self.opened.notified().await;
            }
            self.look()
        })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        _permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async { self.make() })
    }
}

#[derive(Debug)]
struct Several(Vec<Arc<Thing>>);

impl Transaction for Several {
    fn check<'a>(&'a self, _host: &'a Host, _ask: CheckRequest) -> Answer<'a, Vec<CheckResult>> {
        Box::pin(async {
            let names = self.0.iter().map(|thing| thing.name.clone()).collect();
            self.0[0].world().together.push(names);
            self.0.iter().map(|thing| thing.look()).collect()
        })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        _permit: &'a Permit,
        changes: Vec<Option<Change>>,
    ) -> Answer<'a, Vec<Outcome>> {
        Box::pin(async {
            let each = self.0.iter().zip(changes);
            let made = |(thing, change): (&Arc<Thing>, Option<Change>)| match change {
                Some(_) => thing.make(),
                None => Outcome::Unchanged,
            };
            each.map(made).collect()
        })
    }
}

type Said = Arc<(Mutex<Vec<String>>, Notify)>;

struct RecordingSink(Said);

impl Observer for RecordingSink {
    fn hear(&mut self, news: &Notification<'_>) {
        let line = match news {
            Notification::Loaded { change, .. } => {
                format!("loaded: {} removed", change.removed.count + change.retained.count)
            }
            Notification::Loading { waits, .. } => format!("waits for {}", waits.join(" ")),
            Notification::Changed { identity, class, .. } => {
                format!("changed {identity}: {class:?}")
            }
            Notification::Failed { identity, .. } => format!("failed {identity}"),
            Notification::Contended { identity, .. } => format!("contended {identity}"),
            Notification::GroupSplit { identity, .. } => format!("apart {identity}"),
            Notification::GroupJoined(identity) => format!("joined {identity}"),
            Notification::Converged { .. } => "converged".to_owned(),
            Notification::Stuck(identity) => format!("stuck {identity}"),
            Notification::Rejected(why) => format!("refused: {why}"),
            _ => return,
        };
        self.0.0.lock().expect("nobody panics with it").push(line);
        self.0.1.notify_one();
    }
}

/// The mint key; a process has only one.
static KEY: OnceLock<Arc<MintKey>> = OnceLock::new();

fn key() -> Arc<MintKey> {
    Arc::new(MintKey::take().expect("nobody else takes it"))
}

/// Runs a test with a running driver, on one thread, in virtual time.
pub(crate) fn play<F: Future<Output = ()>>(test: impl FnOnce(Ground) -> F) {
    play_on(Host::default(), test);
}

/// Runs a test as [`play`], on a host.
pub(crate) fn play_on<F: Future<Output = ()>>(host: Host, test: impl FnOnce(Ground) -> F) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async { test(Ground::new(host)).await });
}

/// A running driver with its simulated host.
pub(crate) struct Ground {
    pub(crate) inbox: Inbox<DriverEvent>,
    world: Arc<Mutex<World>>,
    opened: Arc<Notify>,
    kept: MemoryStore,
    said: Said,
    seen: usize,
    /// The maintenance windows of the graphs.
    pub(crate) windows: Vec<(String, Window)>,
}

impl Ground {
    fn new(host: Host) -> Self {
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
        let kept = MemoryStore::default();
        let (journal, mut writer) = Journal::by_hand(Box::new(kept.clone()));
        // The journal is stepped by a task: virtual time would run on while a thread is awaited.
        let keeping = async move {
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                if writer.due().is_some() {
                    writer.write_next();
                }
            }
        };
        drop(tokio::spawn(keeping));
        let said = Said::default();
        let parts = DriverDeps {
            host,
            key: Arc::clone(KEY.get_or_init(key)),
            journal: Some(journal),
            recalled: StoredState::default(),
            history: None,
            read_only: None,
            kinds: steadfast::config::KindSet::of_this_build(),
            observer: Box::new(RecordingSink(Arc::clone(&said))),
        };
        let driver = Driver::new(settings, parts);
        let inbox = driver.inbox();
        drop(tokio::task::spawn_local(driver.run()));
        let (world, opened) = (Arc::default(), Arc::default());
        Self { inbox, world, opened, kept, said, seen: 0, windows: Vec::new() }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("nobody panics with it")
    }

    /// Returns the stored state after all pending writes.
    pub(crate) async fn kept(&mut self) -> StoredState {
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.kept.recall().expect("memory tells all")
    }

    /// Loads a graph of resources, each with the names that run before it.
    pub(crate) fn load(&self, things: &[(&str, &[&str])], meta: Meta) {
        let meta = Arc::new(meta);
        let vertex = |(name, _): &(&str, &[&str])| {
            let (world, opened) = (Arc::clone(&self.world), Arc::clone(&self.opened));
            Vertex {
                identity: format!("thing[{name}]").into(),
                resource: Arc::new(Thing { name: (*name).to_owned(), world, opened }),
                recipe: None,
                definition: name.bytes().fold(7, |sum, byte| sum * 31 + u64::from(byte)),
                labels: Arc::default(),
                meta: Arc::clone(&meta),
                rewatch: true,
                autogroup: true,
                delete: false,
                protect: false,
                removes: false,
                failure_blocks: false,
                aliases: Box::default(),
                after: Arc::default(),
                notifies: Arc::default(),
                place: (0, 1),
            }
        };
        let number = |name: &str| things.iter().position(|it| it.0 == name).expect("declared");
        let edges = things.iter().flat_map(|(to, all)| all.iter().map(move |from| (*from, *to)));
        let link = |(from, to)| Link { from: number(from), to: number(to), notify: false };
        let mut edges: Vec<Link> = edges.map(link).collect();
        edges.sort_unstable();
        let loaded = LoadedGraph {
            name: "things".to_owned(),
            comment: None,
            vertices: things.iter().map(vertex).collect(),
            edges,
            semaphores: Vec::new(),
            windows: self.windows.clone(),
            usual: Arc::clone(&meta),
            origins: Vec::new(),
            warnings: Vec::new(),
            files: Vec::new(),
            hash: 0,
            text_bytes: 0,
            texts: Vec::new(),
            ..LoadedGraph::default()
        };
        self.inbox.put(DriverEvent::Graph { graph: Ok(Box::new(loaded)), operator: true });
    }

    pub(crate) fn open(&self) {
        self.world().shut = false;
        self.opened.notify_one();
    }

    /// Removes an object and requests its check.
    pub(crate) fn take_away(&self, name: &str) {
        self.world().there.remove(name);
        self.look(name);
    }

    pub(crate) fn look(&self, name: &str) {
        let (to, _) = oneshot::channel();
        let look = Query::CheckNow(vec![format!("thing[{name}]")], to);
        self.inbox.put(DriverEvent::Query(look));
    }

    /// Waits for a notification, after those waited for before.
    pub(crate) async fn hears(&mut self, line: &str) {
        loop {
            {
                let said = self.said.0.lock().expect("nobody panics with it");
                if let Some(at) = said.iter().skip(self.seen).position(|it| it == line) {
                    self.seen += at + 1;
                    return;
                }
            }
            self.said.1.notified().await;
        }
    }

    /// Returns the number of equal notifications so far.
    pub(crate) fn count(&self, line: &str) -> usize {
        let said = self.said.0.lock().expect("nobody panics with it");
        said.iter().filter(|it| *it == line).count()
    }

    /// Returns the members of the last transaction.
    pub(crate) fn last_together(&self) -> Vec<String> {
        self.world().together.last().cloned().unwrap_or_default()
    }
}
