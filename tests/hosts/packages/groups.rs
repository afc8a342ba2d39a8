//! Groups of packages: one transaction, with a record, a failure and a repair for each member.

use crate::host::Host;
use crate::service::GRAPH;
use std::time::{Duration, Instant};

/// E-19, F-16: the plan shows exact versions and changes nothing. One call of apt installs all available packages, a
/// missing one fails alone, and each removed package is installed again.
#[test]
fn one_transaction_installs_all_that_can_be_installed() {
    let host = Host::with_packages("make one 1.0-1; make two 2.0; make three 3:3.0~rc1-1");
    host.declare(&[("one", ""), ("two", ""), ("three", ""), ("nowhere", "")]);
    let before = host.shell("sha256sum /var/lib/dpkg/status; ls -lR /var/lib/apt /var/lib/dpkg");
    let plan =
        host.run(&["setpriv", "--reuid", "65534", "--clear-groups", "steadfast", "plan", GRAPH]);
    for words in ["+ pkg[one]", "version: 1.0-1", "version: 2.0", "version: 3:3.0~rc1-1"] {
        assert!(plan.stdout.contains(words), "{words}\n{}{}", plan.stdout, plan.stderr);
    }
    assert!(plan.stdout.contains("! pkg[nowhere]: Unable to locate package"), "{}", plan.stdout);
    assert_eq!(
        host.shell("sha256sum /var/lib/dpkg/status; ls -lR /var/lib/apt /var/lib/dpkg"),
        before,
        "a plan changes nothing"
    );

    let (code, said) = host.apply();
    assert_eq!(code, 1, "{said}");
    for words in [
        "changed pkg[one]: state absent -> installed, version 1.0-1",
        "changed pkg[two]: state absent -> installed, version 2.0",
        "failed pkg[nowhere]: Unable to locate package nowhere",
        "4 resources, 3 changed, 1 failed",
    ] {
        assert!(said.contains(words), "{words}\n{said}");
    }
    assert!(!said.contains("failed pkg[one]") && !said.contains("failed pkg[two]"), "{said}");
    assert_eq!(host.transactions(), 1, "{said}");
    assert_eq!(host.package("three"), "ii  3:3.0~rc1-1");

    host.declare(&[("one", ""), ("two", ""), ("three", "")]);
    let (code, said) = host.apply();
    assert!(code == 0 && said.contains("3 resources, 0 changed"), "{said}");

    host.start();
    let converged = || host.log().last().is_some_and(|line| line.contains("converged"));
    host.until("convergence", converged);
    assert!(host.log().iter().any(|line| line.contains("3 resources converged")));
    for name in ["two", "three", "one"] {
        host.shell(&format!("dpkg --remove {name} 2>&1"));
        let removed = Instant::now();
        host.until("it to be back", || host.package(name).starts_with("ii"));
        assert!(removed.elapsed() < Duration::from_secs(10), "{name}: {:?}", removed.elapsed());
        host.until("convergence", converged);
        let changed = format!("changed pkg[{name}]");
        assert_eq!(host.log().iter().filter(|line| line.contains(&changed)).count(), 1);
    }
    assert_eq!(host.transactions(), 4);
    let status = host.run(&["steadfast", "status", "pkg[two]"]);
    assert!(!status.stdout.contains("pkg[one]+"), "no made-up names: {}", status.stdout);
}

/// E-19: an edge between two packages makes two transactions, and `autogroup: false` keeps a package out of the
/// group.
#[test]
fn edges_and_autogroup_part_them() {
    let host = Host::with_packages("make one 1; make two 1; make three 1; make four 1");
    host.declare(&[
        ("one", ""),
        ("two", "after: [\"pkg[one]\"]"),
        ("three", ""),
        ("four", "meta: { autogroup: false }"),
    ]);
    let (code, said) = host.apply();
    assert_eq!(code, 0, "{said}");
    assert_eq!(host.transactions(), 3, "one with three, two, four: {said}");
}

/// E-19: a transaction that fails as a whole is repeated in parts.
#[test]
fn one_that_cannot_be_configured_fails_alone() {
    let host = Host::with_packages("make good 1; make bad 1 '' 'exit 3'; make fine 1");
    host.declare(&[("bad", ""), ("fine", ""), ("good", "")]);
    let (code, said) = host.apply();
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("failed pkg[bad]") && said.contains("3 resources, 2 changed, 1 failed"),
        "{said}"
    );
    assert_eq!((host.package("good"), host.package("fine")), ("ii  1".into(), "ii  1".into()));
    // F-22: a half-configured package is always reported.
    assert!(host.package("bad").starts_with("iF"), "{}", host.package("bad"));
    let plan = host.run(&["steadfast", "plan", GRAPH]);
    assert!(plan.stdout.contains("state: half-configured -> installed"), "{}", plan.stdout);
}
