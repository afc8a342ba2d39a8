//! `steadfast doctor` on a host with systemd.

use crate::host::Host;
use crate::service::{GRAPH, ONE_FILE};

/// The doctor finds systemd, the unit with its watchdog, and the daemon, and names missing parts.
#[test]
fn the_doctor_finds_the_service() {
    let host = Host::boot();
    let doctor = || host.run(&["steadfast", "doctor"]).stdout;
    assert!(doctor().contains("warning  unit: steadfast.service is disabled"), "{}", doctor());
    host.write(GRAPH, ONE_FILE);
    host.shell("systemctl enable steadfast.service");
    host.start();
    let told = doctor();
    for line in [
        "ok       version: 2",
        "ok       unit: steadfast.service is enabled",
        "ok       watchdog: 30 s",
        "ok       graph: /etc/steadfast/graph.yaml is writable by nobody else",
        "ok       state directory: /var/lib/steadfast, mode 0700",
        "ok       daemon: responds in",
        "ok       lock: free",
        "  time: ",
    ] {
        assert!(told.contains(line), "expected `{line}` in\n{told}");
    }
    let status = || host.run(&["steadfast", "status"]).stdout;
    assert!(!status().contains("reboot"), "{}", status());
    host.shell("echo needed >/run/reboot-required; echo dbus >/run/reboot-required.pkgs");
    assert!(status().contains("reboot required: dbus"), "{}", status());
    // The log lines can be selected by their journal fields.
    host.adjust(
        "ExecStart=\nExecStart=/usr/bin/steadfast run --log journald /etc/steadfast/graph.yaml",
    );
    host.systemctl("restart");
    let entries = || {
        let words = "STEADFAST_EVENT=loaded SYSLOG_IDENTIFIER=steadfast _COMM=steadfast";
        host.shell(&format!("journalctl --no-pager -o cat {words}"))
    };
    host.until("an entry with its fields", || entries().contains("loaded: graph host: 1 added"));
    host.shell("chmod go+w /etc/steadfast");
    assert!(doctor().contains("problem  graph: "), "{}", doctor());
}
