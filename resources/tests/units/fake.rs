//! A fake systemd with its bus: it replies, records its requests, and changes its units as a test demands.

use futures_util::StreamExt as _;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use steadfast_resources::{
    Change, CheckRequest, CheckResult, Fields, Host, Invalid, KindSet, MintKey, Outcome, Permit,
    Place, Recorders, Resource, Value,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use zbus::connection::{Builder, Connection};
use zbus::message::Type;
use zbus::wire::OwnedObjectPath;
use zbus::{Guid, Message, MessageStream, Variant};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static KEY: OnceLock<MintKey> = OnceLock::new();

/// The bus name of systemd's connection; only the bus assigns such names.
const OWNER: &str = ":1.1";
const BUS: &str = "org.freedesktop.DBus";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// The result of a unit's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobOutcome {
    /// The jobs succeed, and the signal of their end precedes the reply.
    Done,
    /// The jobs end with this word.
    Ends(&'static str),
    /// The jobs fail before anything is started.
    Refused,
    /// A start succeeds, and the unit ends right afterwards.
    EndsAtOnce,
    /// The jobs do not end, and a sender other than systemd claims an end.
    Hangs,
    /// The connection is lost during the job.
    Cuts,
}

#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) load: &'static str,
    pub(crate) active: &'static str,
    /// The state of the unit file; empty if there is no file.
    pub(crate) file: &'static str,
    pub(crate) stale: bool,
    pub(crate) can_reload: bool,
    pub(crate) result: &'static str,
    pub(crate) fate: JobOutcome,
    /// The number of automatic restarts by systemd.
    pub(crate) restarts: u32,
    /// The next reload finds the file of the unit, which systemd did not know.
    pub(crate) appears: bool,
    /// The number of starts, of which systemd makes the id of the last one.
    pub(crate) starts: u8,
}

impl Unit {
    pub(crate) fn new(active: &'static str, file: &'static str) -> Self {
        let (load, result, fate) = ("loaded", "success", JobOutcome::Done);
        Self {
            load,
            active,
            file,
            stale: false,
            can_reload: true,
            result,
            fate,
            restarts: 0,
            appears: false,
            starts: 0,
        }
    }
}

#[derive(Default)]
struct State {
    units: BTreeMap<String, Unit>,
    asked: Vec<String>,
    jobs: u32,
    /// No call gets a reply.
    mute: bool,
    /// Replies wait.
    held: bool,
    /// No systemd is on the bus.
    empty: bool,
    clients: Vec<Connection>,
    /// The number of requests so far.
    requests: u64,
    /// The number of the request that is rejected.
    failing: Option<u64>,
}

#[derive(Clone)]
pub(crate) struct Fake {
    state: Arc<Mutex<State>>,
    folder: Arc<TempDir>,
    pub(crate) host: Host,
}

impl Fake {
    pub(crate) fn new(units: &[(&str, Unit)]) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let socket = folder.path().join("bus");
        let address = format!("unix:path={}", socket.display());
        let host = Host::with_buses(&address, "unix:path=/nowhere");
        let units = units.iter().map(|(name, unit)| ((*name).to_owned(), unit.clone())).collect();
        let state = Arc::new(Mutex::new(State { units, ..State::default() }));
        let fake = Self { state, folder, host };
        fake.listen();
        fake
    }

    /// Writes a unit file, of which only the emptiness matters.
    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.folder.path().join(name), content).unwrap();
    }

    /// Accepts connections from now on.
    pub(crate) fn listen(&self) {
        let socket = self.folder.path().join("bus");
        let _absent = std::fs::remove_file(&socket);
        let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let fake = self.clone();
        RUNTIME.spawn(async move {
            let listener = tokio::net::UnixListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(fake.clone().serve(stream.into_std().unwrap()));
            }
        });
    }

    /// Rejects new connections and closes the existing ones.
    pub(crate) fn vanish(&self) {
        std::fs::remove_file(self.folder.path().join("bus")).unwrap();
        self.cut();
    }

    fn cut(&self) {
        let clients = std::mem::take(&mut self.lock().clients);
        RUNTIME.spawn(async move {
            for client in clients {
                let _closed_already = client.close().await;
            }
        });
    }

    pub(crate) fn mute(&self, mute: bool) {
        self.lock().mute = mute;
    }

    /// Delays all replies until they are released.
    pub(crate) fn hold(&self, held: bool) {
        self.lock().held = held;
    }

    pub(crate) fn empty(&self, empty: bool) {
        self.lock().empty = empty;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Unit)) {
        change(self.lock().units.get_mut(name).unwrap());
    }

    pub(crate) fn active(&self, name: &str) -> &'static str {
        self.lock().units[name].active
    }

    /// Returns the state of every unit, one a line.
    pub(crate) fn shown(&self) -> Vec<String> {
        let shown = |(name, unit): (&String, &Unit)| {
            format!("unit:{name} {} {} {}", unit.load, unit.active, unit.file)
        };
        self.lock().units.iter().map(shown).collect()
    }

    /// Resets the count of requests, and rejects the request of this number.
    pub(crate) fn set_failing_request(&self, number: Option<u64>) {
        let mut state = self.lock();
        (state.requests, state.failing) = (0, number);
    }

    /// Returns the number of requests since the last reset.
    pub(crate) fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// Counts a request. Returns true if the request is rejected.
    fn count_request(&self) -> bool {
        let mut state = self.lock();
        state.requests += 1;
        state.failing == Some(state.requests)
    }

    /// Returns the requests in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.lock().asked.clone()
    }

    /// Waits for this request.
    pub(crate) fn wait_for(&self, what: &str) {
        let limit = Instant::now() + Duration::from_secs(20);
        while !self.asked().iter().any(|asked| asked == what) {
            assert!(Instant::now() < limit, "{what}: {:?}", self.asked());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    async fn serve(self, stream: std::os::unix::net::UnixStream) {
        let guid = Guid::generate();
        let Ok(connection) = Builder::unix_stream(stream).server(guid).p2p().build().await else {
            return;
        };
        let mut messages = MessageStream::from(&connection);
        self.lock().clients.push(connection.clone());
        while let Some(Ok(message)) = messages.next().await {
            if message.message_type() == Type::MethodCall && !self.lock().mute {
                while self.lock().held {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                self.answer(&connection, &message).await;
            }
        }
    }

    async fn answer(&self, connection: &Connection, call: &Message) {
        let header = call.header();
        let member = header.member().unwrap().to_string();
        let is_bus = header.destination().is_some_and(|name| name.as_str() == BUS);
        for message in
            if is_bus { self.of_bus(call, &member) } else { self.of_systemd(call, &member) }
        {
            let _lost = connection.send(&message).await;
        }
    }

    fn of_bus(&self, call: &Message, member: &str) -> Vec<Message> {
        let header = call.header();
        let answer = || Message::method_return(&header).sender(BUS);
        vec![
            match member {
                "Hello" => answer().build(&":1.7"),
                "GetNameOwner" if self.lock().empty => {
                    let name = "org.freedesktop.DBus.Error.NameHasNoOwner";
                    Message::error(&header, name).sender(BUS).build(&"nobody is systemd")
                }
                "GetNameOwner" => answer().build(&OWNER),
                _ => answer().build(&()),
            }
            .unwrap(),
        ]
    }

    fn of_systemd(&self, call: &Message, member: &str) -> Vec<Message> {
        let header = call.header();
        let answer = || Message::method_return(&header).sender(OWNER);
        let body = call.body();
        let no = |name: &str| {
            let name = format!("org.freedesktop.systemd1.{name}");
            vec![Message::error(&header, name).sender(OWNER).build(&"no such unit").unwrap()]
        };
        if member != "Subscribe" && self.count_request() {
            return no("TestFailure");
        }
        match member {
            "Get" => {
                let (_, property): (&str, &str) = body.deserialize().unwrap();
                let path = header.path().unwrap().to_string();
                if property == "UnitPath" {
                    let folders = vec![self.folder.path().to_str().unwrap().to_owned()];
                    return vec![answer().build(&Variant::from(folders)).unwrap()];
                }
                let units = &self.lock().units;
                let Some((name, unit)) = units.iter().find(|(name, _)| path_of(name) == path)
                else {
                    return no("NoSuchUnit");
                };
                vec![answer().build(&property_of(name, unit, property)).unwrap()]
            }
            "GetUnit" => {
                let name: &str = body.deserialize().unwrap();
                let state = self.lock();
                let loaded = state.units.get(name).is_some_and(|unit| !unit.load.is_empty());
                if !loaded {
                    return no("NoSuchUnit");
                }
                vec![answer().build(&OwnedObjectPath::try_from(path_of(name)).unwrap()).unwrap()]
            }
            "GetUnitFileState" => {
                let name: &str = body.deserialize().unwrap();
                match self.lock().units.get(name) {
                    Some(unit) if !unit.file.is_empty() => {
                        vec![answer().build(&unit.file).unwrap()]
                    }
                    _ => no("NoSuchUnit"),
                }
            }
            "Subscribe" => vec![answer().build(&()).unwrap()],
            "Reload" => {
                let mut state = self.lock();
                state.asked.push("reload all".to_owned());
                for unit in state.units.values_mut() {
                    unit.stale = false;
                    if std::mem::take(&mut unit.appears) {
                        (unit.load, unit.file) = ("loaded", "disabled");
                    }
                }
                vec![answer().build(&()).unwrap()]
            }
            "EnableUnitFiles" | "MaskUnitFiles" | "DisableUnitFiles" | "UnmaskUnitFiles" => {
                self.install(call, member)
            }
            _ => self.job(call, member),
        }
    }

    fn install(&self, call: &Message, member: &str) -> Vec<Message> {
        let body = call.body();
        let word = member.trim_end_matches("UnitFiles").to_lowercase();
        let (names, _): (Vec<String>, bool) = match member {
            "EnableUnitFiles" | "MaskUnitFiles" => {
                let (names, runtime, _): (Vec<String>, bool, bool) = body.deserialize().unwrap();
                (names, runtime)
            }
            _ => body.deserialize().unwrap(),
        };
        let mut state = self.lock();
        state.asked.push(format!("{word} {}", names.join(" ")));
        for name in names {
            if let Some(unit) = state.units.get_mut(&name) {
                unit.file = match &*word {
                    // Without links to make, systemd reports success and does nothing.
                    "enable" if unit.file == "indirect" => "indirect",
                    "enable" => "enabled",
                    "mask" => "masked",
                    _ => "disabled",
                };
            }
        }
        vec![Message::method_return(&call.header()).sender(OWNER).build(&()).unwrap()]
    }

    fn job(&self, call: &Message, member: &str) -> Vec<Message> {
        let body = call.body();
        let (name, _): (&str, &str) = body.deserialize().unwrap();
        let mut state = self.lock();
        state.asked.push(format!("{member} {name}"));
        state.jobs += 1;
        let number = state.jobs;
        let job = OwnedObjectPath::try_from(format!("/job/{number}")).unwrap();
        let answer = Message::method_return(&call.header()).sender(OWNER).build(&job).unwrap();
        let removed = |sender: &'static str, result: &str| {
            Message::signal("/org/freedesktop/systemd1", MANAGER, "JobRemoved")
                .sender(sender)
                .build(&(number, &job, name, result))
                .unwrap()
        };
        let unit = state.units.get_mut(name).unwrap();
        let fate = unit.fate;
        unit.starts += u8::from(member == "StartUnit" && fate != JobOutcome::Refused);
        unit.active = match (member, fate) {
            ("StartUnit", JobOutcome::Done) => "active",
            ("StartUnit", JobOutcome::Ends(_) | JobOutcome::Refused) => "failed",
            ("StartUnit", JobOutcome::EndsAtOnce) | ("StopUnit", _) => "inactive",
            ("StartUnit", JobOutcome::Hangs | JobOutcome::Cuts) => "activating",
            _ => unit.active,
        };
        drop(state);
        match fate {
            JobOutcome::Done | JobOutcome::EndsAtOnce => vec![removed(OWNER, "done"), answer],
            JobOutcome::Ends(word) => vec![answer, removed(OWNER, word)],
            JobOutcome::Refused => vec![answer, removed(OWNER, "failed")],
            JobOutcome::Hangs => vec![answer, removed(":1.666", "done")],
            JobOutcome::Cuts => {
                self.cut();
                vec![answer]
            }
        }
    }
}

fn property_of(name: &str, unit: &Unit, property: &str) -> Variant<'static> {
    match property {
        "Id" => Variant::from(name.to_owned()),
        "LoadState" => Variant::from(unit.load),
        "ActiveState" => Variant::from(unit.active),
        "NeedDaemonReload" => Variant::from(unit.stale),
        "CanReload" => Variant::from(unit.can_reload),
        "ConditionResult" => Variant::from(true),
        "Result" => Variant::from(unit.result),
        "NRestarts" => Variant::from(unit.restarts),
        "MainPID" => Variant::from(if unit.active == "active" { 42_u32 } else { 0 }),
        // 2023-11-14, and no monotonic time.
        "NextElapseUSecRealtime" => Variant::from(1_700_000_000_000_000_u64),
        "NextElapseUSecMonotonic" => Variant::from(u64::MAX),
        "Listen" => Variant::from(vec![("Stream".to_owned(), "[::]:22".to_owned())]),
        "InvocationID" => Variant::from(vec![unit.starts; 16]),
        "Job" => Variant::from((0_u32, OwnedObjectPath::try_from("/").unwrap())),
        other => panic!("{other} was asked for"),
    }
}

fn path_of(name: &str) -> String {
    let letters = name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    format!("/org/freedesktop/systemd1/unit/{letters}")
}

pub(crate) type Given<'a> = (&'static str, &'a str);

pub(crate) fn build(name: &str, given: &[Given<'_>]) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let spec = KindSet::of_this_build().find("svc").unwrap();
    let mut fields = Fields::default();
    for (name, value) in given {
        let value = match *value {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => Value::Text(text.to_owned()),
        };
        fields.insert(name, value);
    }
    (spec.build)(name, fields, &Place { base: PathBuf::from("/") })
}

pub(crate) fn svc(name: &str, given: &[Given<'_>]) -> Arc<dyn Resource> {
    build(name, given).unwrap()
}

pub(crate) fn permit(cancel: &CancellationToken) -> Permit {
    KEY.get_or_init(|| MintKey::take().unwrap()).mint(cancel.clone(), Recorders::None)
}

impl Fake {
    pub(crate) fn check(&self, resource: &Arc<dyn Resource>, refresh: bool) -> CheckResult {
        let ask = CheckRequest { refresh, run: true, ..CheckRequest::default() };
        wait(resource.check(&self.host, ask))
    }

    /// Returns the differences of a check as texts: aspect, from, to.
    pub(crate) fn plan(&self, resource: &Arc<dyn Resource>, refresh: bool) -> Vec<String> {
        match self.check(resource, refresh) {
            CheckResult::Same => Vec::new(),
            CheckResult::Differs(change) => {
                let shown = |d: &steadfast_resources::Difference| {
                    format!("{}: {} -> {}", d.aspect, d.from, d.to)
                };
                change.differences.iter().map(shown).collect()
            }
            CheckResult::Unknown(failure) => vec![format!("unknown: {failure}")],
        }
    }

    pub(crate) fn differs(&self, resource: &Arc<dyn Resource>, refresh: bool) -> Change {
        match self.check(resource, refresh) {
            CheckResult::Differs(change) => change,
            other => panic!("a difference is expected, found {other:?}"),
        }
    }

    pub(crate) fn run(&self, resource: &Arc<dyn Resource>, refresh: bool) -> Outcome {
        let change = self.differs(resource, refresh);
        wait(resource.apply(&self.host, &permit(&CancellationToken::new()), change))
    }
}

pub(crate) fn changed(words: &[&str]) -> Outcome {
    Outcome::Changed(words.iter().map(ToString::to_string).collect())
}

#[track_caller]
pub(crate) fn failure(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed { failure, touched: true } => {
            assert!(failure.what.lines().next().unwrap().chars().count() <= 100, "{failure}");
            format!("{} ({})", failure.what, failure.hint.unwrap_or_default())
        }
        other => panic!("a failure is expected, found {other:?}"),
    }
}
