//! The harness of the laws: builds, checks and applies a test case on a simulated host.

use crate::support;
use futures_util::FutureExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use steadfast_resources::host::simulated::{Machine, What};
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
    /// The files that exist before, with mode 0644.
    pub(crate) before: &'static [(&'static str, &'static str)],
    /// The files afterwards; none for a file that does not exist.
    pub(crate) after: &'static [(&'static str, Option<&'static str>)],
    /// Prepares more than files: modes, links, the commands of the host.
    pub(crate) prepare: fn(&Machine),
}

/// Prepares nothing more.
pub(crate) fn nothing(_: &Machine) {}

impl Case {
    pub(crate) fn title(&self) -> String {
        let fields: Vec<String> =
            self.given.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        format!("{}[{}] {{{}}}", self.kind, self.name, fields.join(", "))
    }

    pub(crate) fn machine(&self) -> Machine {
        let machine = Machine::default();
        for folder in ["/etc", "/proc", "/run", "/usr", "/var", "/home", "/root", "/tmp"] {
            machine.make_directories(folder).expect("made");
        }
        for (path, content) in self.before {
            if let Some((parent, _)) = path.rsplit_once('/').filter(|(it, _)| !it.is_empty()) {
                machine.make_directories(parent).expect("made");
            }
            machine.write(path, content).expect("written");
        }
        (self.prepare)(&machine);
        // Young states are not trusted, which is not the subject here.
        machine.set_wall(machine.wall() + std::time::Duration::from_secs(10));
        machine.foreign(|here| {
            let _entered = here.enter();
            steadfast_resources::host::calls::sync();
        });
        machine
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
        Some(removal.build(spec, self.name).expect("a valid removal"))
    }

    pub(crate) fn check(&self, machine: &Machine) -> CheckResult {
        check(machine, &self.resource())
    }

    pub(crate) fn hold(&self, machine: &Machine) -> Outcome {
        hold(machine, &self.resource())
    }

    /// Returns the number of system calls of a run without faults.
    pub(crate) fn count_calls(&self) -> u64 {
        let machine = self.machine();
        machine.set_faults([]);
        let _outcome = self.hold(&machine);
        machine.calls()
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

pub(crate) fn check(machine: &Machine, resource: &Arc<dyn Resource>) -> CheckResult {
    let _entered = machine.enter();
    let host = Host::default();
    let check = resource.check(&host, CheckRequest::default());
    check.now_or_never().expect("nothing waits on a simulated host")
}

pub(crate) fn hold(machine: &Machine, resource: &Arc<dyn Resource>) -> Outcome {
    let _entered = machine.enter();
    let host = Host::default();
    let check = resource.check(&host, CheckRequest::default());
    match check.now_or_never().expect("nothing waits on a simulated host") {
        CheckResult::Same => Outcome::Unchanged,
        CheckResult::Unknown(trouble) => Outcome::Failed { trouble, touched: false },
        CheckResult::Differs(change) => {
            let permit = support::permit(&CancellationToken::new());
            let applied = resource.apply(&host, &permit, change);
            applied.now_or_never().expect("nothing waits on a simulated host")
        }
    }
}

/// Returns everything visible, without temporary names.
pub(crate) fn visible(machine: &Machine) -> Vec<String> {
    machine.look(|tree| {
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
    })
}
