//! Units that do not exist, or not yet.

use super::{HELD, RUNNING, UNIT};
use crate::host::Host;
use crate::service::GRAPH;

#[test]
fn a_unit_that_does_not_exist_is_named_and_heals_when_it_comes() {
    let host = Host::boot();
    host.write(GRAPH, RUNNING);
    host.start();
    host.until("the failure", || host.log().iter().any(|line| line.contains("failed svc[held]")));
    let told = host.log().join("\n");
    assert!(told.contains("held.service does not exist"), "{told}");
    // No `systemctl daemon-reload` follows.
    host.write(HELD, UNIT);
    host.until("it to run", || host.is_active("held"));
    assert_eq!(host.file_state("held"), "enabled");
    host.converged();
}

/// An empty unit file, the first step of writing one, is a mask for systemd; it must not be removed.
#[test]
fn an_empty_unit_file_is_not_removed() {
    let host = Host::boot();
    host.write(GRAPH, RUNNING);
    host.write(HELD, "");
    host.start();
    host.until("the failure", || {
        host.log().iter().any(|line| line.contains("the file of held.service is empty"))
    });
    assert_eq!(host.read(HELD).as_deref(), Some(""));
    host.write(HELD, UNIT);
    host.until("it to run", || host.is_active("held"));
    host.converged();
}

#[test]
fn a_unit_may_be_written_by_the_same_graph() {
    let graph = format!(
        "
graph: host
resources:
  svc:
    - name: held
      state: running
      startup: enabled
      after: [\"file[{HELD}]\"]
  file:
    - name: {HELD}
      content: |
        {}
",
        UNIT.replace('\n', "\n        ")
    );
    let host = Host::boot();
    // systemd has looked for the unit before and remembers its absence.
    host.write(
        "/etc/systemd/system/other.service",
        "[Unit]\nWants=held.service\n[Service]\nExecStart=/bin/sleep infinity\n",
    );
    host.shell("systemctl start other");
    assert_eq!(host.of_unit("held", "LoadState"), "not-found");
    host.write(GRAPH, &graph);
    let plan = host.run(&["steadfast", "plan", GRAPH]);
    assert!(plan.stdout.contains("svc[held]"), "{}{}", plan.stdout, plan.stderr);
    host.start();
    host.converged();
    assert!(host.is_active("held"));
    assert_eq!(host.file_state("held"), "enabled");
    assert_eq!(host.said(), ["start"]);
    let failed = host.log().into_iter().filter(|line| line.contains("failed svc")).count();
    assert_eq!(failed, 0, "{:#?}", host.log());
}

/// A missing unit counts as stopped and disabled.
#[test]
fn stopped_and_disabled_hold_of_what_does_not_exist() {
    let host = Host::boot();
    host.write(GRAPH, &RUNNING.replace("running", "stopped").replace("enabled", "disabled"));
    host.start();
    host.converged();
    host.shell("systemd-run --quiet --unit=held sleep infinity");
    host.until("it to be stopped", || host.of_unit("held", "ActiveState") == "inactive");
}

#[test]
fn the_example_works() {
    let host = Host::boot();
    host.write(GRAPH, include_str!("../../../examples/service.yaml"));
    let plan = host.run(&["steadfast", "plan", GRAPH]);
    assert_eq!(plan.code, Some(0), "{}{}", plan.stdout, plan.stderr);
    assert!(!host.is_active("steadfast-clock"), "a plan changes nothing");
    host.start();
    host.converged();
    host.until("the time", || host.read("/run/steadfast-clock").is_some());
    assert_eq!(host.file_state("steadfast-clock"), "enabled");
    let main = host.of_unit("steadfast-clock", "MainPID");
    host.write("/etc/steadfast-clock.conf", "EVERY=1\n");
    host.until("the restart", || {
        host.is_active("steadfast-clock") && host.of_unit("steadfast-clock", "MainPID") != main
    });
    // The restart is visible before its end is recorded; until then the refresh is owed.
    host.until("nothing is left to do", || {
        host.run(&["steadfast", "plan", GRAPH]).stdout.contains(" 0 resources to change")
    });
}

/// systemd refuses to start a socket whose service runs: the service pauses for the start of the socket.
#[test]
fn a_socket_and_its_service_are_started_by_one_graph() {
    let files = |service: &str, socket: &str| {
        format!(
            "graph: host
resources:
  unit:
    - name: held.socket
      content: \"[Socket]\\nListenStream=/run/held.sock\\n\"
      {socket}
    - name: held.service
      content: \"[Service]\\nExecStart=/bin/sleep infinity\\n\"
      {service}
"
        )
    };
    let states = "  svc:\n    - {name: held, state: running}\n";
    let both = states.to_owned() + "    - {name: held.socket, state: running}\n";
    for graph in [
        files("running: true", "running: true"),
        files("verify: true", "running: true") + states,
        files("verify: true", "verify: true") + &both,
    ] {
        let host = Host::boot();
        host.write(GRAPH, &graph);
        host.start();
        host.converged();
        assert!(host.is_active("held") && host.is_active("held.socket"), "{:#?}", host.log());
        host.shell("systemctl stop held.socket");
        host.until("the socket to listen again", || host.is_active("held.socket"));
        host.until("the service to run again", || host.is_active("held"));
        host.converged();
    }
}
