//! The harness for tests of commands: makes a resource from fields, checks and applies.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock, OnceLock};
use steadfast_resources::{
    Change, CheckRequest, CheckResult, Fields, Host, Invalid, KindSet, MintKey, Outcome, Permit,
    Place, Recorders, Resource, Value,
};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static KEY: OnceLock<MintKey> = OnceLock::new();

pub(crate) type Given<'a> = (&'static str, Value);

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

pub(crate) fn text(name: &'static str, value: impl Into<String>) -> Given<'static> {
    (name, Value::Text(value.into()))
}

pub(crate) fn texts(name: &'static str, values: &[&str]) -> Given<'static> {
    (name, Value::Texts(values.iter().map(ToString::to_string).collect()))
}

pub(crate) fn yes(name: &'static str) -> Given<'static> {
    (name, Value::Bool(true))
}

pub(crate) fn build(
    kind: &str,
    given: impl IntoIterator<Item = Given<'static>>,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let spec = KindSet::of_this_build().find(kind).unwrap();
    let mut fields = Fields::default();
    for (name, value) in given {
        assert!(spec.fields.iter().any(|field| field.name == name), "{kind} has no {name}");
        fields.insert(name, value);
    }
    (spec.build)("/bin/true by-name", fields, &Place { base: PathBuf::from("/tmp") })
}

pub(crate) fn exec(given: impl IntoIterator<Item = Given<'static>>) -> Arc<dyn Resource> {
    build("exec", given).unwrap()
}

/// Makes an exec whose shell text appends the word `ran` to a file, with further fields.
pub(crate) fn recorder(
    file: &std::path::Path,
    given: impl IntoIterator<Item = Given<'static>>,
) -> Arc<dyn Resource> {
    let record = format!("echo ran >> '{}'", file.display());
    exec([text("cmd", record), text("shell", "/bin/sh")].into_iter().chain(given))
}

pub(crate) const EVENT: (bool, bool) = (true, false);
pub(crate) const REFRESH: (bool, bool) = (false, true);
pub(crate) const LOOK: (bool, bool) = (false, false);

pub(crate) fn check(resource: &Arc<dyn Resource>, (run, refresh): (bool, bool)) -> CheckResult {
    let cancel = CancellationToken::new();
    wait(
        resource.check(
            &Host::default(),
            CheckRequest { refresh, run, cancel, ..CheckRequest::default() },
        ),
    )
}

pub(crate) fn change(verdict: CheckResult) -> Change {
    match verdict {
        CheckResult::Differs(change) => change,
        other => panic!("a difference is expected, found {other:?}"),
    }
}

pub(crate) fn differs(resource: &Arc<dyn Resource>, ask: (bool, bool)) -> bool {
    match check(resource, ask) {
        CheckResult::Same => false,
        CheckResult::Differs(_) => true,
        CheckResult::Unknown(failure) => panic!("{failure:?}"),
    }
}

pub(crate) fn permit(cancel: &CancellationToken) -> Permit {
    KEY.get_or_init(|| MintKey::take().unwrap()).mint(cancel.clone(), Recorders::None)
}

pub(crate) fn apply(resource: &Arc<dyn Resource>, change: Change) -> Outcome {
    let permit = permit(&CancellationToken::new());
    wait(resource.apply(&Host::default(), &permit, change))
}

/// Checks and applies a resource, as for the first run of a definition.
pub(crate) fn run(resource: &Arc<dyn Resource>) -> Outcome {
    let change = change(check(resource, EVENT));
    apply(resource, change)
}

/// Returns the failure of a run that failed after the start of its command.
pub(crate) fn failure(resource: &Arc<dyn Resource>) -> String {
    match run(resource) {
        Outcome::Failed { failure, touched: true } => {
            let first = failure.what.lines().next().unwrap();
            assert!(first.chars().count() <= 100, "{first}");
            failure.what
        }
        other => panic!("a failure is expected, found {other:?}"),
    }
}
