//! The kinds `user` and `group` on a simulated host, with stand-ins of the account tools.

mod fields;
mod groups;
mod inspected;
mod preconditions;
mod tables;
mod tools;
mod undo;
mod users;

use crate::support;
use futures_util::FutureExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use steadfast_resources::{
    Change, CheckRequest, CheckResult, Fields, Host, Invalid, KindSet, Outcome, Permit, Place,
    Resource, Value,
};
use tokio_util::sync::CancellationToken;

/// Builds a resource, or returns all problems.
fn build(
    kind: &str,
    name: &str,
    given: &[(&str, Value)],
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let spec = KindSet::of_this_build().find(kind).expect("a kind of this build");
    let mut fields = Fields::default();
    for (key, value) in given {
        let field = spec.fields.iter().find(|field| field.name == *key).expect("a field");
        fields.insert(field.name, value.clone());
    }
    spec.build_resource(name, fields, &Place { base: PathBuf::from("/") })
}

fn good(kind: &str, name: &str, given: &[(&str, Value)]) -> Arc<dyn Resource> {
    build(kind, name, given).unwrap_or_else(|wrong| panic!("{kind}[{name}]: {wrong:?}"))
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn list(texts: &[&str]) -> Value {
    Value::Texts(texts.iter().map(|text| (*text).to_owned()).collect())
}

fn check(host: &Host, resource: &Arc<dyn Resource>) -> CheckResult {
    let check = resource.check(host, CheckRequest::default());
    check.now_or_never().expect("nothing waits on a simulated host")
}

fn change(host: &Host, resource: &Arc<dyn Resource>) -> Change {
    match check(host, resource) {
        CheckResult::Differs(change) => change,
        other => panic!("expected a difference, found {other:?}"),
    }
}

fn apply(host: &Host, resource: &Arc<dyn Resource>, permit: &Permit) -> Outcome {
    let change = change(host, resource);
    resource.apply(host, permit, change).now_or_never().expect("nothing waits on a simulated host")
}

/// Applies a resource that differs, and asserts that it is converged afterwards.
fn converge(host: &Host, resource: &Arc<dyn Resource>) -> Vec<String> {
    let permit = support::permit(&CancellationToken::new());
    match apply(host, resource, &permit) {
        Outcome::Changed(done) => {
            assert!(matches!(check(host, resource), CheckResult::Same), "right after the apply");
            done
        }
        other => panic!("expected a change, found {other:?}"),
    }
}

/// Applies a resource that must fail, and returns its failure as text, with `untouched` or `touched`.
fn failure(host: &Host, resource: &Arc<dyn Resource>) -> String {
    let permit = support::permit(&CancellationToken::new());
    match apply(host, resource, &permit) {
        Outcome::Failed { failure, touched } => {
            assert!(failure.what.lines().next().unwrap().chars().count() <= 100, "{failure}");
            let state = if touched { "touched" } else { "untouched" };
            let passes = if failure.passes { " passing" } else { "" };
            format!("{state}{passes}: {} ({})", failure.what, failure.hint.expect("a hint"))
        }
        other => panic!("expected a failure, found {other:?}"),
    }
}
