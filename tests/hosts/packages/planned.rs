//! Saved plans of packages, and removals of packages and units.

use crate::host::Host;
use crate::service::GRAPH;

/// F-16: a saved plan contains the exact version; its apply does nothing if the repository has another version.
#[test]
fn a_plan_that_is_kept_holds_the_version() {
    let host = Host::with_packages("make app 1.0; make other 1; make gone 1");
    host.shell("apt-get -q -y install gone 2>&1; mkdir -m 700 /run/plans");
    host.declare(&[("app", ""), ("other", ""), ("gone", "state: absent")]);
    let plan = |name: &str| {
        let file = format!("/run/plans/{name}");
        let answer = host.run(&["steadfast", "plan", "--out", &file, GRAPH]);
        let all = answer.stdout + &answer.stderr;
        assert!([Some(0), Some(2)].contains(&answer.code), "{:?} {all}", answer.code);
        all
    };
    let apply = |name: &str| {
        let answer = host.run(&["steadfast", "apply", "--plan", &format!("/run/plans/{name}")]);
        (answer.code, answer.stdout + &answer.stderr)
    };
    let said = plan("first");
    for words in ["version: 1.0", "version: 1", "state: installed 1 -> absent"] {
        assert!(said.contains(words), "{words}\n{said}");
    }

    host.repository("make app 1.1; publish");
    let (code, said) = apply("first");
    assert_ne!(code, Some(0), "{said}");
    assert!(said.contains("pkg[app]") && said.contains("version"), "{said}");
    assert_eq!(
        (host.package("app"), host.package("other"), host.package("gone")),
        (String::new(), String::new(), "ii  1".to_owned())
    );

    assert!(plan("second").contains("version: 1.1"));
    // The planned removal of apt has changed, too.
    host.shell("dpkg --purge gone 2>&1");
    let (code, said) = apply("second");
    assert!(code != Some(0) && said.contains("pkg[gone]"), "{said}");
    assert_eq!(host.package("app"), "");

    plan("third");
    let (code, said) = apply("third");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!((host.package("app"), host.package("other")), ("ii  1.1".into(), "ii  1".into()));
    assert_eq!(host.transactions(), 2, "one by hand, one of ours");
}

/// B-17: an installed package with `on_remove: delete` is removed; a package that was there before stays.
#[test]
fn packages_that_leave_the_graph_are_removed() {
    let host =
        Host::with_packages("make made 1; make found 1; make kept 1; make needs 1 'Depends: made'");
    host.shell("apt-get -q -y install found 2>&1");
    let delete = "meta: {on_remove: delete}";
    host.declare(&[("made", delete), ("found", delete), ("kept", "")]);
    let (code, said) = host.apply();
    assert_eq!(code, 0, "{said}");
    // A package that another one needs is not removed.
    host.shell("apt-get -q -y install needs 2>&1");
    host.write(GRAPH, "graph: host\nresources:\n  noop: [{name: stays}]\n");
    let (code, said) = host.apply();
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("failed pkg[made]: the transaction would remove undeclared packages: needs"),
        "{said}"
    );
    host.shell("apt-get -q -y remove needs 2>&1");
    let (code, said) = host.apply();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("removed pkg[made]: removed from the host"), "{said}");
    assert_eq!(host.package("made"), "rc  1", "its configuration stays");
    assert_eq!((host.package("found"), host.package("kept")), ("ii  1".into(), "ii  1".into()));
    let (code, said) = host.apply();
    assert!(code == 0 && said.contains(" 0 changed"), "{said}");
}

/// B-17: a unit that steadfast has started and enabled is stopped and disabled by its removal.
#[test]
fn units_that_leave_the_graph_are_stopped() {
    let host = Host::boot();
    let unit = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
    for name in ["made", "found", "kept"] {
        host.write(&format!("/etc/systemd/system/{name}.service"), unit);
    }
    host.shell("systemctl daemon-reload; systemctl enable --now found 2>&1");
    let svc = |name: &str, meta: &str| {
        format!("  - {{name: {name}, state: running, startup: enabled, {meta}}}\n")
    };
    let delete = "meta: {on_remove: delete}";
    let all = svc("made", delete) + &svc("found", delete) + &svc("kept", "");
    host.write(GRAPH, &format!("graph: host\nresources:\n  svc:\n{all}"));
    host.start();
    let word =
        |verb: &str, name: &str| host.run(&["systemctl", verb, name]).stdout.trim().to_owned();
    let is = |name: &str| (word("is-active", name), word("is-enabled", name));
    let running = ("active".to_owned(), "enabled".to_owned());
    host.until("both to run", || is("made") == running && is("kept") == running);

    host.write(GRAPH, "graph: host\nresources:\n  noop: [{name: stays}]\n");
    assert_eq!(host.systemctl("reload").code, Some(0), "{}", host.report());
    let ended = ("inactive".to_owned(), "disabled".to_owned());
    host.until("it to be stopped", || is("made") == ended);
    host.until("that to be told", || {
        host.log().iter().any(|line| line.contains("removed svc[made]: removed from the host"))
    });
    assert_eq!((is("found"), is("kept")), (running.clone(), running));
    assert!(host.read("/etc/systemd/system/made.service").is_some(), "its file is another's");
}
