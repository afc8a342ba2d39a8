//! The harness of the laws: builds, checks and applies a test case on a simulated host, which may have a bus with a
//! simulated systemd.

use crate::bus::{Fake, Unit, wait};
use crate::support;
use futures_util::FutureExt as _;
use rustix::io::Errno;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use steadfast_resources::host::simulated::{Fault, Machine, What};
use steadfast_resources::{
    CheckRequest, CheckResult, FieldType, Fields, Host, KindSet, Outcome, Place, Resource, Value,
};
use tokio_util::sync::CancellationToken;

/// One test case: a kind, its declaration, and the host state before and after.
pub(crate) struct Case {
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    /// The fields; lists and maps (`key=value`) have one entry for each line.
    pub(crate) given: &'static [(&'static str, &'static str)],
    /// The files that exist before, with mode 0644, or 0600 for a sensitive resource: a secret needs a closed file.
    pub(crate) before: &'static [(&'static str, &'static str)],
    /// The files afterwards; none for a file that does not exist.
    pub(crate) after: &'static [(&'static str, Option<&'static str>)],
    /// Prepares more than files: modes, links, the commands of the host.
    pub(crate) prepare: fn(&Machine),
    /// The units that systemd knows, for a host with a bus: name, load state, activity, state of the file. A unit that
    /// is not found appears with the next reload.
    pub(crate) units: &'static [[&'static str; 4]],
}

/// A simulated host.
pub(crate) struct SimulatedHost {
    machine: Machine,
    bus: Option<Fake>,
}

impl Deref for SimulatedHost {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}

impl SimulatedHost {
    /// Runs a future of a check or an apply. Without a bus, nothing waits.
    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        match &self.bus {
            Some(_) => wait(future),
            None => future.now_or_never().expect("nothing waits on a simulated host"),
        }
    }

    fn host(&self) -> Host {
        self.bus.as_ref().map_or_else(Host::default, |bus| bus.host.clone())
    }

    /// Resets all counts, and injects a fault.
    pub(crate) fn inject(&self, fault: Option<Injected>) {
        let call = match fault {
            Some(Injected::Call(number, fault)) => Some((number, fault)),
            _ => None,
        };
        self.set_faults(call);
        self.set_failing_command(match fault {
            Some(Injected::Command(number)) => Some(number),
            _ => None,
        });
        if let Some(bus) = &self.bus {
            bus.set_failing_request(match fault {
                Some(Injected::Request(number)) => Some(number),
                _ => None,
            });
        }
    }
}

/// A fault in one step of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Injected {
    /// This system call of the run.
    Call(u64, Fault),
    /// This command of the run fails, without an effect.
    Command(u64),
    /// systemd rejects this request of the run.
    Request(u64),
}

/// Prepares nothing more.
pub(crate) fn nothing(_: &Machine) {}

impl Case {
    pub(crate) fn title(&self) -> String {
        let fields: Vec<String> =
            self.given.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        format!("{}[{}] {{{}}}", self.kind, self.name, fields.join(", "))
    }

    pub(crate) fn machine(&self) -> SimulatedHost {
        let machine = Machine::default();
        for folder in ["/etc", "/proc", "/run", "/usr", "/var", "/home", "/root", "/tmp"] {
            machine.make_directories(folder).expect("made");
        }
        for (path, content) in self.before {
            if let Some((parent, _)) = path.rsplit_once('/').filter(|(it, _)| !it.is_empty()) {
                machine.make_directories(parent).expect("made");
            }
            machine.write(path, content).expect("written");
            if self.given.contains(&("sensitive", "true")) {
                machine.chmod(path, 0o600).expect("closed");
            }
        }
        (self.prepare)(&machine);
        // Young states are not trusted, which is not the subject here.
        machine.set_wall(machine.wall() + std::time::Duration::from_secs(10));
        machine.foreign(|here| {
            let _entered = here.enter();
            steadfast_resources::host::calls::sync();
        });
        let units = self.units.iter().map(|[name, load, active, file]| {
            let unit = Unit { load, appears: *load == "not-found", ..Unit::new(active, file) };
            (*name, unit)
        });
        let units: Vec<(&str, Unit)> = units.collect();
        let bus = (!units.is_empty()).then(|| Fake::new(&units));
        SimulatedHost { machine, bus }
    }

    pub(crate) fn resource(&self) -> Arc<dyn Resource> {
        let spec = KindSet::of_this_build().find(self.kind).expect("a kind of this build");
        let mut fields = Fields::default();
        for (name, text) in self.given {
            let field = spec.fields.iter().find(|field| field.name == *name);
            let field = field.unwrap_or_else(|| panic!("{} has no field {name}", self.kind));
            fields.insert(field.name, value_of(field.takes, text));
        }
        let place = Place { base: PathBuf::from("/") };
        let built = spec.build_resource(self.name, fields, &place);
        built.unwrap_or_else(|problems| panic!("{}: {problems:?}", self.title()))
    }

    pub(crate) fn removal(&self) -> Option<Arc<dyn Resource>> {
        let spec = KindSet::of_this_build().find(self.kind).expect("a kind of this build");
        let removal = self.resource().footprint().removal?;
        Some(spec.build_removal(&removal, self.name).expect("a valid removal"))
    }

    pub(crate) fn check(&self, machine: &SimulatedHost) -> CheckResult {
        check(machine, &self.resource())
    }

    pub(crate) fn hold(&self, machine: &SimulatedHost) -> Outcome {
        hold(machine, &self.resource())
    }

    /// Returns every fault that can be injected into a run.
    pub(crate) fn faults(&self) -> Vec<Injected> {
        let machine = self.machine();
        machine.inject(None);
        let _outcome = self.hold(&machine);
        let requests = machine.bus.as_ref().map_or(0, Fake::requests);
        let kinds = [Fault::Fails(Errno::IO), Fault::Fails(Errno::NOSPC), Fault::Short];
        let calls = kinds.into_iter().flat_map(|fault| {
            (1..=machine.calls()).map(move |number| Injected::Call(number, fault))
        });
        let calls: Vec<Injected> = calls.collect();
        let commands = (1..=machine.commands()).map(Injected::Command);
        calls.into_iter().chain(commands).chain((1..=requests).map(Injected::Request)).collect()
    }
}

fn value_of(takes: FieldType, text: &str) -> Value {
    match takes {
        FieldType::Bool => Value::Bool(text == "true"),
        FieldType::Int | FieldType::Seconds | FieldType::Milliseconds => {
            Value::Int(text.parse().expect("a number"))
        }
        FieldType::Float | FieldType::Duration => Value::Float(text.parse().expect("a number")),
        FieldType::Texts => Value::Texts(text.lines().map(str::to_owned).collect()),
        FieldType::TextMap => {
            let entries = text.lines().filter_map(|line| line.split_once('='));
            Value::TextMap(entries.map(|(key, text)| (key.to_owned(), text.to_owned())).collect())
        }
        FieldType::Text | FieldType::Choice(_) | FieldType::Anything => {
            Value::Text(text.to_owned())
        }
    }
}

/// Applies another case on a host, which must change something.
pub(crate) fn apply_on(machine: &Machine, case: &Case) {
    let host = SimulatedHost { machine: machine.clone(), bus: None };
    let done = hold(&host, &case.resource());
    assert!(matches!(done, Outcome::Changed(_)), "{}: {done:?}", case.title());
}

pub(crate) fn check(machine: &SimulatedHost, resource: &Arc<dyn Resource>) -> CheckResult {
    let _entered = machine.enter();
    let host = machine.host();
    machine.run(resource.check(&host, CheckRequest::default()))
}

pub(crate) fn hold(machine: &SimulatedHost, resource: &Arc<dyn Resource>) -> Outcome {
    let _entered = machine.enter();
    let host = machine.host();
    match machine.run(resource.check(&host, CheckRequest::default())) {
        CheckResult::Same => Outcome::Unchanged,
        CheckResult::Unknown(failure) => Outcome::Failed { failure, touched: false },
        CheckResult::Differs(change) => {
            let permit = support::permit(&CancellationToken::new());
            machine.run(resource.apply(&host, &permit, change))
        }
    }
}

/// Returns the keys of the values that a resource sends now.
pub(crate) fn sent_keys(
    machine: &SimulatedHost,
    resource: &Arc<dyn Resource>,
) -> Vec<&'static str> {
    let _entered = machine.enter();
    let host = machine.host();
    let never = CancellationToken::new();
    let read = resource.read_sent(&host, &never).map(|read| machine.run(read));
    let sent = read.transpose().expect("read").unwrap_or_default();
    resource.sends().into_iter().chain(sent).map(|(key, _)| key).collect()
}

/// Returns everything visible, without temporary names: all objects, and the units of systemd.
pub(crate) fn visible(machine: &SimulatedHost) -> Vec<String> {
    let units = machine.bus.as_ref().map(Fake::shown).unwrap_or_default();
    let files: Vec<String> = machine.look(|tree| {
        let all = tree.all().into_iter().filter(|(path, _)| !path.contains("/.steadfast-"));
        all.map(|(path, node)| {
            let what = match &node.what {
                What::File(content) => String::from_utf8_lossy(content).into_owned(),
                What::Link(target) => format!("to {}", String::from_utf8_lossy(target)),
                What::Directory(_) => "directory".to_owned(),
                What::Fifo => "fifo".to_owned(),
            };
            format!("{path} {what} {:o} {} {}", node.mode, node.uid, node.gid)
        })
        .collect()
    });
    files.into_iter().chain(units).collect()
}
