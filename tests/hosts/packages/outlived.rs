//! A package transaction outlives its daemon, however that one ends, and the next daemon uses the result.

use crate::host::Host;

/// A package script that prints before and after a wait: a print to a closed pipe would kill it.
const SLOW: &str = "make slow 1 '' '
      echo before; touch /run/configuring
      while [ ! -e /run/go ]; do sleep 0.05; done
      echo after; echo after >&2'
    make last 1 'Depends: slow'";

/// F-22, E-16: a killed daemon leaves its dpkg running; the next daemon waits for it and finds the host converged.
#[test]
fn a_killed_daemon_leaves_its_transaction_alone() {
    let host = configuring();
    let before = host.daemon();
    host.signal("KILL");
    host.until("another daemon", || ![0, before].contains(&host.daemon()));
    ends_by_itself(&host);
}

/// F-22, E-16: systemd does not end the transaction, even if the daemon exceeds its stop timeout.
#[test]
fn a_restart_leaves_the_transaction_alone() {
    let host = configuring();
    let before = host.daemon();
    assert_eq!(host.systemctl("restart").code, Some(0), "{}", host.report());
    assert_ne!(host.daemon(), before);
    let log = host.shell("journalctl --no-pager -o cat -u steadfast.service");
    assert!(log.contains("killing") || log.contains("Killing"), "it was to be killed: {log}");
    ends_by_itself(&host);
}

/// F-22, E-16: a stop of the service does not wait for dpkg, which completes its transaction.
#[test]
fn a_stop_leaves_the_transaction_alone() {
    let host = configuring();
    host.systemctl("stop");
    assert_eq!(host.daemon(), 0, "{}", host.report());
    assert_eq!(host.package("slow"), "iF  1");
    host.shell("touch /run/go");
    host.until("dpkg to end", || host.package("last") == "ii  1");
    assert_eq!(host.shell("dpkg --audit"), "");
}

/// F-22: a dpkg that was killed with the daemon is recovered by the next daemon.
#[test]
fn a_killed_dpkg_is_recovered_by_the_next_daemon() {
    let host = configuring();
    // The kill comes first: a released transaction could end before it.
    host.shell(&format!("kill -KILL {} $(pidof apt-get dpkg); touch /run/go", host.daemon()));
    host.until("all to be installed", || host.package("last") == "ii  1");
    host.until("the repair to be told", || is_converged(&host));
    assert_eq!(host.package("slow"), "ii  1");
    assert_eq!(host.shell("dpkg --audit"), "");
    let log = host.log().join("\n");
    assert!(log.contains("an earlier dpkg run was interrupted and has been completed"), "{log}");
}

/// Boots a host whose daemon has begun a transaction that waits for `/run/go`.
fn configuring() -> Host {
    let host = Host::with_packages(SLOW);
    host.adjust("TimeoutStopSec=1s");
    host.declare(&[("slow", ""), ("last", "")]);
    host.start();
    host.until("the package to be configured", || host.read("/run/configuring").is_some());
    assert_eq!(host.package("slow"), "iF  1");
    host
}

/// Releases the transaction and asserts that it succeeds once and that the daemon knows the result.
fn ends_by_itself(host: &Host) {
    host.until("the next daemon to look", || {
        host.log().iter().filter(|line| line.contains("loaded")).count() >= 2
    });
    assert!(
        host.processes().iter().any(|line| line.contains("slow.postinst")),
        "{}",
        host.report()
    );
    let scopes = "systemctl list-units --no-legend --plain --full 'steadfast-packages-*'";
    assert!(host.shell(scopes).contains(".scope"), "{}", host.report());
    host.shell("touch /run/go");
    host.until("the transaction to end", || host.package("last") == "ii  1");
    host.until("the daemon to know", || is_converged(host));
    assert_eq!(host.package("slow"), "ii  1");
    assert_eq!(host.shell("dpkg --audit"), "");
    let log = host.shell("cat /var/log/dpkg.log");
    for step in [" install slow:all ", " configure slow:all ", " configure last:all "] {
        assert_eq!(log.matches(step).count(), 1, "{step}:\n{log}");
    }
    assert_eq!(host.transactions(), 1);
    let said = host.log().join("\n");
    assert!(!said.contains("failed pkg["), "{said}");
    let status = host.run(&["steadfast", "status"]);
    let is_right = status.stdout.starts_with("host: converged ");
    assert!(is_right && status.stdout.contains(": 2 resources"), "{}", status.stdout);
    assert_eq!(host.shell("systemctl list-units --no-legend --all 'steadfast-packages-*'"), "");
}

fn is_converged(host: &Host) -> bool {
    host.log().last().is_some_and(|line| line.contains("converged"))
}
