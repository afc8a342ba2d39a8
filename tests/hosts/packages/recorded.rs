//! The history of packages: each changed package has an entry with its versions before and after, and can be
//! restored.

use crate::host::Host;

impl Host {
    fn history(&self, name: &str) -> String {
        self.run(&["steadfast", "history", &format!("pkg[{name}]")]).stdout
    }

    fn undo(&self, name: &str) -> (i32, String) {
        let answer = self.run(&["steadfast", "undo", &format!("pkg[{name}]")]);
        (answer.code.expect("an exit code"), answer.stdout + &answer.stderr)
    }
}

/// Each changed member of a transaction has its own entry; unchanged members have none.
#[test]
fn members_of_a_transaction_are_in_the_history() {
    let host = Host::with_packages(
        "make one 1; make two 2.0; make there 1; make bad 1 '' 'exit 3'; make gone 1",
    );
    host.shell("apt-get -y install there gone 2>&1");
    host.declare(&[
        ("one", ""),
        ("two", ""),
        ("there", ""),
        ("bad", ""),
        ("gone", "state: absent"),
    ]);
    let (code, said) = host.apply();
    assert_eq!(code, 1, "{said}");
    for (name, moved) in [
        ("one", "  version absent -> 1  load"),
        ("two", "  version absent -> 2.0  load"),
        ("bad", "  version absent -> 1 (half-configured)  load"),
        ("gone", "  version 1 -> absent, configuration absent -> kept  load"),
    ] {
        let told = host.history(name);
        assert!(told.contains(moved), "{name}: {told}\n{said}");
    }
    assert!(host.history("there").contains("no changes are recorded"), "{}", host.history("there"));
    let json = host.run(&["steadfast", "history", "--json", "pkg[gone]"]).stdout;
    assert!(json.contains(r#""before":"1""#) && json.contains(r#""was":"values""#), "{json}");
    let number = host.history("gone").split_whitespace().next().unwrap_or_default().to_owned();
    let shown = host.run(&["steadfast", "show", "pkg[gone]", "--at", &number]).stdout;
    assert!(shown.contains("version: 1\n") && shown.contains("hold: not held\n"), "{shown}");
}

/// An undo removes an installed package, restores a replaced version, and reinstalls a removed package; the undo can
/// be undone. A version that no repository has is rejected, with the manual command.
#[test]
fn a_package_comes_back_as_it_was() {
    let host = Host::with_packages("make app 1.0; make app 2.0; make tool 1");
    host.declare(&[("app", "state: \"1.0\""), ("tool", "")]);
    assert_eq!(host.apply().0, 0);
    host.declare(&[("app", "state: \"2.0\", hold: true"), ("tool", "")]);
    assert_eq!(host.apply().0, 0);
    assert_eq!(host.package("app"), "hi  2.0");
    let (code, said) = host.undo("app");
    assert_eq!((code, host.package("app").as_str()), (0, "ii  1.0"), "{said}");
    assert!(host.history("app").contains("version 2.0 -> 1.0, hold held -> not held  undo"));
    let (code, said) = host.undo("app");
    assert_eq!((code, host.package("app").as_str()), (0, "hi  2.0"), "{said}");
    let (code, said) = host.undo("tool");
    assert_eq!((code, host.package("tool").as_str()), (0, "rc  1"), "{said}");
    let (code, said) = host.undo("tool");
    assert_eq!((code, host.package("tool").as_str()), (0, "ii  1"), "{said}");

    host.repository("rm -f /repo/app_1.0*; publish");
    host.shell("rm -f /var/cache/apt/archives/app_1.0*");
    let (code, said) = host.undo("app");
    assert!(code == 1 && said.contains("apt-get install app=1.0"), "{said}");
    assert_eq!(host.package("app"), "hi  2.0");
}

/// With a running daemon, an undo pauses the member of the group and restores it; a kill of the daemon loses no prior
/// state.
#[test]
fn a_daemon_puts_a_member_back_and_a_kill_loses_nothing() {
    let slow =
        "make slow 1 '' 'touch /run/configuring; while [ ! -e /run/go ]; do sleep 0.05; done'";
    let host = Host::with_packages(&format!("{slow}; make one 1; make two 2"));
    host.declare(&[("slow", ""), ("one", ""), ("two", "")]);
    host.start();
    host.until("the transaction", || host.read("/run/configuring").is_some());
    for name in ["slow", "one", "two"] {
        let told = host.history(name);
        assert!(
            told.contains("version absent -> not known: the run failed, was cut off, or goes on"),
            "{told}"
        );
    }
    let before = host.daemon();
    host.signal("KILL");
    host.until("another daemon", || ![0, before].contains(&host.daemon()));
    assert!(
        host.history("slow").contains("version absent -> not known"),
        "{}",
        host.history("slow")
    );
    host.shell("touch /run/go");
    let converged = || host.log().last().is_some_and(|line| line.contains("converged"));
    host.until("convergence", || host.package("two") == "ii  2" && converged());
    let (code, said) = host.undo("two");
    assert_eq!((code, host.package("two").as_str()), (0, "rc  2"), "{said}");
    assert!(said.contains("pkg[two] is paused"), "{said}");
    assert_eq!((host.package("one"), host.package("slow")), ("ii  1".into(), "ii  1".into()));
    assert!(
        host.history("two").contains("version 2 -> absent, configuration absent -> kept  undo")
    );
    assert_eq!(host.run(&["steadfast", "resume", "pkg[two]"]).code, Some(0));
    host.until("it to be back", || host.package("two") == "ii  2");
}
