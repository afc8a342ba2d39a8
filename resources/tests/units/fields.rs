//! Tests of the fields of a svc: valid values and problems.

use crate::fake::{build, svc};
use steadfast_resources::{Claim, HostObject, WatchSource};

fn wrong(name: &str, given: &[(&'static str, &str)]) -> Vec<String> {
    let problems = build(name, given).unwrap_err();
    let words = problems.into_iter().map(|problem| {
        assert!(problem.what.chars().count() <= 100, "{}", problem.what);
        format!("{}: {}", problem.what, problem.hint.unwrap_or_default())
    });
    words.collect()
}

#[test]
fn everything_wrong_is_told_at_once() {
    let said = wrong("a b", &[("state", "started"), ("startup", "running"), ("refresh", "kill")]);
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[0].contains("`a b`"), "{said:?}");
    assert_eq!(said[1], "expected running or stopped, found `started`: write: state: running");
    assert!(said[2].starts_with("expected reload, restart or none, found `kill`"), "{said:?}");
    assert!(said[3].ends_with("this value belongs to `state`"), "{said:?}");
}

#[test]
fn contradictory_fields_are_rejected() {
    assert_eq!(wrong("a", &[("state", "running"), ("startup", "masked")]).len(), 1);
    assert_eq!(wrong("getty@", &[("state", "running")]).len(), 1);
    assert!(build("getty@", &[("startup", "enabled")]).is_ok());
    let doubtful = svc("a", &[("state", "stopped"), ("refresh", "restart")]);
    assert_eq!(doubtful.footprint().warnings.len(), 1);
}

/// Two names of one unit give the same claim; units of a user are distinct from those of the machine.
#[test]
fn a_unit_is_claimed_by_its_whole_name() {
    let claims = |name, session| svc(name, &[("session", session)]).footprint().claims;
    assert_eq!(claims("a", "false"), claims("a.service", "false"));
    assert_eq!(
        claims("a", "false"),
        [Claim::exclusive(HostObject::Unit { session: false, name: "a.service".into() })]
    );
    assert_ne!(claims("a", "false"), claims("a", "true"));
}

#[test]
fn undeclared_fields_are_not_watched() {
    assert_eq!(svc("a", &[]).footprint().watch, []);
    assert_eq!(svc("a", &[("refresh", "restart")]).footprint().watch, []);
    for field in [("state", "running"), ("startup", "disabled"), ("daemon_reload", "true")] {
        let sources = svc("a", &[field]).footprint().watch;
        assert!(matches!(&sources[0], WatchSource::Unit { unit, .. } if **unit == *"a.service"));
    }
}
