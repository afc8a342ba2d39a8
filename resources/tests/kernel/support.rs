//! The harness: a simulated host with a kernel's tables, with commands that change them, and with a recorder of
//! former values.

use crate::stand_in::{prepare, run_command};
use futures_util::FutureExt as _;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock};
use steadfast_resources::host::Command;
use steadfast_resources::host::simulated::{Machine, Running};
use steadfast_resources::{
    Change, CheckRequest, CheckResult, Failure, FieldType, FieldValues, Fields, FormerValue, Host,
    Invalid, KindSet, Loss, MintKey, Outcome, Permit, Place, PriorState, PriorStateRecorder,
    Recorders, Resource, Value,
};
use tokio_util::sync::CancellationToken;

/// A simulated host with the called commands.
pub(crate) struct SimulatedHost {
    pub(crate) machine: Machine,
    pub(crate) called: Rc<RefCell<Vec<String>>>,
    pub(crate) values: Arc<Recorded>,
}

impl SimulatedHost {
    /// Makes a host with the tables of a kernel, an fstab of foreign lines, and the folders of the kinds.
    pub(crate) fn new() -> Self {
        let machine = Machine::default();
        prepare(&machine);
        let called = Rc::new(RefCell::new(Vec::new()));
        let calls = Rc::clone(&called);
        machine.set_runner(move |command: &Command, _stop| -> Running {
            calls.borrow_mut().push(command.argv.join(" "));
            run_command(command)
        });
        Self { machine, called, values: Arc::default() }
    }

    /// Returns the commands since the last call.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.called.borrow_mut())
    }

    pub(crate) fn text(&self, path: &str) -> String {
        String::from_utf8(self.machine.content(path).unwrap_or_default()).unwrap()
    }

    /// Checks a resource.
    pub(crate) fn check(&self, resource: &Arc<dyn Resource>) -> CheckResult {
        self.check_with(resource, CheckRequest::default())
    }

    pub(crate) fn check_with(
        &self,
        resource: &Arc<dyn Resource>,
        ask: CheckRequest,
    ) -> CheckResult {
        let _entered = self.machine.enter();
        let host = Host::default();
        resource.check(&host, ask).now_or_never().expect("a simulated host never waits")
    }

    /// Applies a change.
    pub(crate) fn apply(&self, resource: &Arc<dyn Resource>, change: Change) -> Outcome {
        let _entered = self.machine.enter();
        let keeper = Arc::clone(&self.values) as Arc<dyn PriorStateRecorder>;
        let permit = permit_with(Recorders::One(keeper));
        let host = Host::default();
        resource.apply(&host, &permit, change).now_or_never().expect("a simulated host never waits")
    }

    /// Checks, and applies a difference.
    pub(crate) fn hold(&self, resource: &Arc<dyn Resource>) -> Outcome {
        match self.check(resource) {
            CheckResult::Same => Outcome::Unchanged,
            CheckResult::Differs(change) => self.apply(resource, change),
            CheckResult::Unknown(failure) => Outcome::Failed { failure, touched: false },
        }
    }

    /// Applies a resource, which must change something and then be as declared. The check alone changes nothing.
    pub(crate) fn makes(&self, resource: &Arc<dyn Resource>) -> Vec<String> {
        self.machine.take_changes();
        let called = self.called.borrow().len();
        let change = match self.check(resource) {
            CheckResult::Differs(change) => change,
            other => panic!("expected a difference, found {other:?}"),
        };
        assert_eq!(self.machine.take_changes(), [], "a check changes nothing");
        assert_eq!(self.called.borrow().len(), called, "a check calls nothing");
        match self.apply(resource, change) {
            Outcome::Changed(done) => {
                assert!(matches!(self.check(resource), CheckResult::Same), "after {done:?}");
                done
            }
            other => panic!("expected a change, found {other:?}"),
        }
    }

    /// Applies a resource, which must fail, and returns the message.
    pub(crate) fn fails(&self, resource: &Arc<dyn Resource>) -> (String, bool) {
        match self.hold(resource) {
            Outcome::Failed { failure, touched } => {
                assert!(failure.what.lines().next().unwrap().chars().count() <= 100, "{failure}");
                (failure.what, touched)
            }
            other => panic!("expected a failure, found {other:?}"),
        }
    }

    /// Builds and applies the removal of a resource.
    pub(crate) fn removes(&self, kind: &str, name: &str, resource: &Arc<dyn Resource>) {
        let removal = resource.footprint().removal.expect("a removal");
        let spec = KindSet::of_this_build().find(kind).unwrap();
        let removing = spec.build_removal(&removal, name).unwrap();
        assert!(removing.footprint().removal.is_none(), "a removal has no removal");
        // Stored removal data are read in the order of the kind's fields.
        let place = |field: &str| spec.fields.iter().position(|known| known.name == field);
        assert!(removal.fields().iter().map(|(field, _)| place(field)).is_sorted(), "{removal:?}");
        self.makes(&removing);
    }

    /// Restores the values from before the last change of a resource, and returns the command with the same effect.
    pub(crate) fn undoes(&self, kind: &str, name: &str) -> String {
        let values = self.values.take();
        let restoring =
            KindSet::of_this_build().restoring(&format!("{kind}[{name}]"), &values).unwrap();
        self.makes(&restoring.resource);
        restoring.by_hand
    }
}

pub(crate) fn permit() -> Permit {
    permit_with(Recorders::None)
}

fn permit_with(recorders: Recorders) -> Permit {
    static KEY: OnceLock<MintKey> = OnceLock::new();
    let key = KEY.get_or_init(|| MintKey::take().expect("the first who asks"));
    key.mint(CancellationToken::new(), recorders)
}

/// Builds a resource, or returns all problems. Lists are given as lines.
pub(crate) fn build(
    kind: &str,
    name: &str,
    given: &[(&str, &str)],
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let spec = KindSet::of_this_build().find(kind).expect("a kind of this build");
    let mut fields = Fields::default();
    for (key, text) in given {
        let field = spec.fields.iter().find(|field| field.name == *key).expect("a field");
        let value = match field.takes {
            FieldType::Bool => Value::Bool(*text == "true"),
            FieldType::Int => Value::Int(text.parse().unwrap()),
            FieldType::Texts => Value::Texts(text.lines().map(str::to_owned).collect()),
            FieldType::TextMap => Value::TextMap(
                text.lines()
                    .map(|line| line.split_once('=').unwrap())
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
            ),
            _ => Value::Text((*text).to_owned()),
        };
        fields.insert(field.name, value);
    }
    spec.build_resource(name, fields, &Place { base: PathBuf::from("/") })
}

/// Builds a resource that must be valid.
pub(crate) fn valid(kind: &str, name: &str, given: &[(&str, &str)]) -> Arc<dyn Resource> {
    build(kind, name, given).unwrap_or_else(|wrong| panic!("{kind}[{name}]: {wrong:?}"))
}

/// Asserts that the fields are rejected with one problem about this field, or about the name.
pub(crate) fn rejected(kind: &str, name: &str, given: &[(&str, &str)], field: Option<&str>) {
    let problems = build(kind, name, given).expect_err(&format!("{name} {given:?}"));
    assert!(problems.iter().any(|it| it.field == field), "{name} {given:?}: {problems:?}");
    for problem in problems {
        assert!(problem.what.chars().count() <= 100, "{problem:?}");
    }
}

/// The recorded values of changes.
#[derive(Debug, Default)]
pub(crate) struct Recorded(Mutex<Vec<FormerValue>>);

impl Recorded {
    fn take(&self) -> Vec<FormerValue> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl PriorStateRecorder for Recorded {
    fn largest(&self) -> u64 {
        1 << 20
    }

    fn keep(
        &self,
        _path: &std::path::Path,
        _former: PriorState,
        _losing: Loss<'_>,
    ) -> Result<u64, Failure> {
        Ok(1)
    }

    fn settle(&self, _number: u64, _made: bool) {}

    fn keep_values(&self, before: FieldValues) -> u64 {
        let former = |(field, before): (&'static str, Option<String>)| FormerValue {
            field: field.to_owned(),
            before,
            after: steadfast_resources::After::Unknown,
        };
        *self.0.lock().unwrap() = before.into_iter().map(former).collect();
        1
    }

    fn settle_values(&self, _number: u64, after: FieldValues) {
        let mut values = self.0.lock().unwrap();
        for (field, value) in after {
            if let Some(known) = values.iter_mut().find(|known| known.field == field) {
                known.after = value.into();
            }
        }
    }
}
