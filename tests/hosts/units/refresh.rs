//! Refreshes of a unit after a change of its files: once, and not for a unit that has just started.

use super::{HELD, UNIT};
use crate::host::Host;
use crate::service::GRAPH;
use std::time::Duration;

const NOTIFIED: &str = "
graph: host
resources:
  file:
    - name: /etc/held.conf
      content: one
  svc:
    - name: held
      state: running
      subscribe: [\"file[/etc/held.conf]\"]
";

#[test]
fn a_changed_file_reloads_what_it_notifies_exactly_once() {
    let host = Host::with_unit(UNIT, NOTIFIED);
    assert_eq!(host.said(), ["start"], "what was just started is not reloaded as well");
    let main = host.of_unit("held", "MainPID");

    host.write("/etc/held.conf", "drift");
    host.until("the reload", || host.said().len() > 1);
    host.converged();
    assert_eq!(host.said(), ["start", "reload"]);

    host.write(GRAPH, &NOTIFIED.replace("one", "two"));
    host.shell("systemctl reload steadfast");
    host.until("the new content", || host.read("/etc/held.conf").as_deref() == Some("two"));
    host.until("the reload", || host.said().len() > 2);
    host.converged();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(host.said(), ["start", "reload", "reload"]);
    assert_eq!(host.of_unit("held", "MainPID"), main, "a reload is no restart");
}

#[test]
fn a_unit_started_in_the_same_run_is_not_reloaded_as_well() {
    let host = Host::with_unit(UNIT, NOTIFIED);
    // The daemon knows both changes before its checks: the service waits for the file and starts once it is right.
    host.shell("steadfast pause; echo drift >/etc/held.conf; systemctl stop held");
    host.until("both events", || {
        let status = host.run(&["steadfast", "status", "--json"]).stdout;
        let status: serde_json::Value = serde_json::from_str(&status).unwrap_or_default();
        status.pointer("/counts/settled") == Some(&0.into())
    });
    host.shell("steadfast resume");
    host.until("it to run again", || host.is_active("held"));
    host.converged();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(host.said(), ["start", "start"]);
}

/// systemd does not notice the first drop-in of a unit that it has loaded.
#[test]
fn the_first_drop_in_of_a_running_unit_is_read() {
    let host = Host::with_unit(UNIT, NOTIFIED);
    let graph = "
graph: host
resources:
  unit:
    - {name: held.service, drop_in: limits, content: \"[Service]\\nLimitNOFILE=4096\\n\", notify: [\"svc[held]\"]}
  svc:
    - {name: held, state: running, refresh: restart}
";
    host.write(GRAPH, graph);
    host.shell("systemctl reload steadfast");
    host.until("the limit", || host.of_unit("held", "LimitNOFILE") == "4096");
    host.shell("mkdir /etc/systemd/system/dbus.service.d");
    host.write("/etc/systemd/system/dbus.service.d/a.conf", "[Service]\nNice=3\n");
    let graph = format!("{graph}    - {{name: dbus, daemon_reload: true}}\n");
    host.write(GRAPH, &graph);
    host.shell("systemctl reload steadfast");
    host.until("the drop-in of another", || host.of_unit("dbus", "Nice") == "3");
}

#[test]
fn a_unit_that_cannot_reload_is_restarted_and_so_is_one_that_is_to_be() {
    for (unit, graph) in [
        (UNIT.replace("ExecReload", "#ExecReload"), NOTIFIED.to_owned()),
        (
            UNIT.to_owned(),
            NOTIFIED.replace("state: running", "state: running\n      refresh: restart"),
        ),
    ] {
        let host = Host::with_unit(&unit, &graph);
        host.write("/etc/held.conf", "drift");
        host.until("the restart", || host.said().len() > 1);
        host.converged();
        assert_eq!(host.said(), ["start", "start"]);
    }
}

#[test]
fn a_unit_that_does_not_run_and_need_not_is_left_alone() {
    for state in ["stopped", "''"] {
        let host = Host::with_unit(UNIT, &NOTIFIED.replace("running", state));
        host.write("/etc/held.conf", "drift");
        host.until("the file", || host.read("/etc/held.conf").as_deref() == Some("one"));
        host.converged();
        assert_eq!(host.said(), Vec::<String>::new(), "{state}");
    }
}

/// A changed unit file notifies its unit: systemd reads it before the restart.
#[test]
fn a_changed_unit_file_is_read_before_it_is_used() {
    let graph = |what: &str| {
        format!(
            "
graph: host
resources:
  file:
    - name: {HELD}
      content: |
        [Service]
        ExecStart=/bin/sleep {what}
  svc:
    - name: held
      state: running
      refresh: restart
      subscribe: [\"file[{HELD}]\"]
"
        )
    };
    let host = Host::with_unit("[Service]\nExecStart=/bin/sleep 1111\n", &graph("2222"));
    let sleeps = |what: &str| {
        host.processes().iter().any(|line| line.trim() == format!("/bin/sleep {what}"))
    };
    assert!(sleeps("2222"));
    host.write(GRAPH, &graph("3333"));
    host.shell("systemctl reload steadfast");
    host.until("the new command", || sleeps("3333"));
    host.converged();
    assert_eq!(host.of_unit("held", "NeedDaemonReload"), "no");
    assert!(!sleeps("2222"));
}

#[test]
fn changed_unit_files_are_read_at_once_where_that_is_declared() {
    let graph = "
graph: host
resources:
  svc:
    - name: held
      state: running
      daemon_reload: true
";
    let host = Host::with_unit(UNIT, graph);
    host.write(HELD, &UNIT.replace("[Unit]", "[Unit]\nDescription=anew"));
    host.until("the file to be read", || host.of_unit("held", "Description") == "anew");
    host.converged();
    assert_eq!(host.said(), ["start"]);
}
