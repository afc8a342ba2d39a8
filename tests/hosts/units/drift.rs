//! Somebody stops, kills or starts a unit against its declaration.

use super::{RUNNING, UNIT};
use crate::host::Host;
use std::time::Duration;

/// Returns the time between the unit's last stop and its next start, from systemd's own timestamps.
fn gap(host: &Host) -> Duration {
    let at = |name| host.of_unit("held", name).parse::<u64>().expect("microseconds");
    let (down, up) = (at("InactiveEnterTimestampMonotonic"), at("ActiveEnterTimestampMonotonic"));
    Duration::from_micros(up.checked_sub(down).expect("it was started after it was stopped"))
}

/// Returns the time from the return of `systemctl stop` to the start; zero if the unit was active before.
fn wait(host: &Host, unit: &str, returned: u64) -> Duration {
    let unit = format!("org.freedesktop.systemd1 /org/freedesktop/systemd1/unit/{unit}");
    let ask =
        format!("busctl get-property {unit} org.freedesktop.systemd1.Unit ActiveEnterTimestamp");
    let active = host.shell(&ask).trim().trim_start_matches("t ").parse().expect("microseconds");
    Duration::from_micros(u64::saturating_sub(active, returned))
}

#[test]
fn a_stopped_service_is_started_again() {
    let host = Host::with_unit(UNIT, RUNNING);
    assert!(host.is_active("held"));
    assert_eq!(host.file_state("held"), "enabled");
    let (mut gaps, mut waits) = (Vec::new(), Vec::new());
    for round in 1..=10 {
        // The user of `systemctl stop` gets no message about a cancelled job.
        let stopped = host.shell("systemctl stop held; date +%s%6N");
        host.until("the service to run again", || {
            host.is_active("held") && host.told("changed") == round + 1
        });
        gaps.push(gap(&host));
        waits.push(wait(&host, "held_2eservice", stopped.trim().parse().expect("microseconds")));
    }
    gaps.sort();
    waits.sort();
    // The measured times are in docs/development/benchmarks.md.
    assert!(gaps[5] < Duration::from_secs(1), "{gaps:?}");
    assert!(waits[5] < Duration::from_secs(1), "{waits:?}");
    assert_eq!(host.said().len(), 11, "each start is one: {:?}", host.said());
}

#[expect(clippy::print_stdout, reason = "the measurement is its output")]
#[test]
fn a_stopped_timer_is_started_again() {
    let host = Host::boot();
    let folder = "/etc/systemd/system";
    host.write(&format!("{folder}/held.service"), "[Service]\nExecStart=/bin/true\n");
    host.write(&format!("{folder}/held.timer"), "[Timer]\nOnCalendar=2100-01-01\n");
    let graph = "graph: host\nresources:\n  svc:\n  - {name: held.timer, state: running}\n";
    host.write(crate::service::GRAPH, graph);
    host.start();
    host.converged();
    let starts = || host.log().iter().filter(|it| it.contains("changed svc[held.timer]")).count();
    let mut waits = Vec::new();
    for round in 1..=5 {
        let stopped = host.shell("systemctl stop held.timer; date +%s%6N");
        host.until("the timer to run again", || {
            host.is_active("held.timer") && starts() == round + 1
        });
        waits.push(wait(&host, "held_2etimer", stopped.trim().parse().expect("microseconds")));
    }
    waits.sort();
    // The measured time is in docs/development/benchmarks.md.
    println!("a stopped timer is back after {:?}", waits[2]);
    assert!(waits[2] < Duration::from_secs(1), "{waits:?}");
}

#[test]
fn a_killed_service_is_started_again() {
    let host = Host::with_unit(UNIT, RUNNING);
    for signal in ["KILL", "TERM"] {
        let main = host.of_unit("held", "MainPID");
        host.shell(&format!("kill -{signal} {main}"));
        host.until("another process", || {
            host.is_active("held") && !["0", &main].contains(&&*host.of_unit("held", "MainPID"))
        });
    }
    host.converged();
}

/// A foreign restart is no drift: the unit is not started again.
#[test]
fn a_restart_from_outside_is_left_alone() {
    let host = Host::with_unit(UNIT, RUNNING);
    for _ in 0..5 {
        host.shell("systemctl restart held");
    }
    host.converged();
    assert_eq!(host.said(), ["start"; 6]);
    assert_eq!(host.told("changed"), 1, "{:#?}", host.log());
}

#[test]
fn a_started_service_is_stopped_again_and_looking_does_not_repeat_itself() {
    let graph = RUNNING.replace("running", "stopped").replace("enabled", "disabled");
    let host = Host::with_unit(UNIT, &graph);
    host.shell("systemctl start held");
    host.until("the service to be stopped", || host.of_unit("held", "ActiveState") == "inactive");
    host.converged();
    assert_eq!(host.said(), ["start"]);
    // systemd unloads an inactive unit; a query must not load it again, which would be an event.
    let runs = || host.told("started");
    let mut before = runs();
    host.until("the daemon to be at rest", || {
        std::thread::sleep(Duration::from_secs(1));
        std::mem::replace(&mut before, runs()) == runs()
    });
    assert!(before < 10, "{:#?}", host.log());
}

#[test]
fn other_units_than_services_are_held_too() {
    let graph = "
graph: host
resources:
  svc:
    - name: held.timer
      state: running
    - name: held.socket
      state: running
    - name: held.path
      state: running
    - name: run-held.mount
      state: running
    - name: held.target
      state: running
    - name: each@one\\x2dtwo
      state: running
      startup: enabled
";
    let host = Host::boot();
    let folder = "/etc/systemd/system";
    for (name, text) in [
        ("held.service", "[Service]\nExecStart=/bin/sleep infinity\nStandardInput=null"),
        ("held.timer", "[Timer]\nOnCalendar=2100-01-01"),
        ("held.socket", "[Socket]\nListenStream=/run/held.sock"),
        ("held.path", "[Path]\nPathExists=/run/nothing"),
        ("run-held.mount", "[Mount]\nWhat=tmpfs\nWhere=/run/held\nType=tmpfs"),
        ("held.target", "[Unit]\nDescription=held"),
        (
            "each@.service",
            "[Service]\nExecStart=/bin/sleep 10%I\n[Install]\nWantedBy=multi-user.target",
        ),
    ] {
        host.write(&format!("{folder}/{name}"), &format!("{text}\n").replace("10%I", "infinity"));
    }
    host.write(crate::service::GRAPH, graph);
    host.start();
    host.converged();
    let units = ["held.timer", "held.socket", "held.path", "run-held.mount", "held.target"];
    for unit in units.into_iter().chain(["each@one\\x2dtwo.service"]) {
        host.run(&["systemctl", "stop", unit]);
        host.until(unit, || host.is_active(unit));
    }
    assert_eq!(host.file_state("each@one\\x2dtwo.service"), "enabled");
}
