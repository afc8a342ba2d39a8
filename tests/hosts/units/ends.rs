//! Units that do not start, or do not stay active.

use super::{RUNNING, UNIT};
use crate::host::Host;
use crate::service::GRAPH;
use std::time::Duration;

/// Asserts that no further attempt follows, apart from the first sweep two seconds after the start.
fn no_further_attempt(host: &Host) {
    std::thread::sleep(Duration::from_secs(3));
    let before = host.told("started");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(host.told("started"), before, "{}", host.report());
}

fn failure(host: &Host) -> String {
    let failed = || host.log().into_iter().find(|line| line.contains("failed svc[held]"));
    host.until("the failure", || failed().is_some());
    failed().expect("just seen")
}

#[test]
fn a_start_that_fails_says_why_and_where_more_is_said() {
    let unit = UNIT.replace("ExecStart=/bin/sleep infinity", "Type=notify\nExecStart=/bin/false");
    let host = Host::with_failing_unit(&unit, RUNNING);
    let told = failure(&host);
    assert!(told.contains("held.service did not start: "), "{told}");
    assert!(told.contains("journalctl -u held.service"), "{told}");
    assert_eq!(host.file_state("held"), "enabled", "what could be done was done");
}

#[test]
fn a_start_limit_is_told_and_ends_the_attempts() {
    // `Type=notify`: for other types systemd can report the unit active for a moment before its end.
    let unit = "[Service]\nExecStart=/bin/false\nType=notify\n";
    let graph = RUNNING.replace("startup: enabled", "meta: { retry: 6, delay: 100 }");
    let host = Host::with_failing_unit(unit, &graph);
    let told = failure(&host);
    assert!(told.contains("held.service was started too often"), "{told}");
    assert!(told.contains("systemctl reset-failed held.service"), "{told}");
    no_further_attempt(&host);
}

#[test]
fn a_oneshot_is_running_only_where_it_remains() {
    let oneshot = "[Service]\nType=oneshot\nExecStart=/bin/true\n";
    let graph = RUNNING.replace("      startup: enabled\n", "");
    let host = Host::with_failing_unit(oneshot, &graph);
    let told = failure(&host);
    assert!(told.contains("was started, but exited successfully"), "{told}");
    assert!(told.contains("RemainAfterExit=yes"), "{told}");
    assert!(host.told("started") <= 2, "{}", host.report());
    no_further_attempt(&host);

    let host = Host::with_unit(&format!("{oneshot}RemainAfterExit=yes\n"), &graph);
    assert!(host.is_active("held"));
    host.shell("systemctl stop held");
    host.until("it to be active again", || host.is_active("held"));
}

#[test]
fn a_start_that_hangs_ends_at_the_deadline_and_holds_nobody_up() {
    let unit = UNIT.replace("ExecStart=", "Type=notify\nExecStart=");
    let graph = RUNNING.replace("state: running", "state: running\n      meta: { timeout: 2000 }");
    let host = Host::with_failing_unit(&unit, &graph);
    host.until("the deadline to be told", || {
        host.log().iter().any(|line| line.contains("the run exceeded its timeout of 2000 ms"))
    });
    // The job belongs to systemd and continues.
    assert_eq!(host.of_unit("held", "ActiveState"), "activating");
    // A stop of the daemon does not wait for the job.
    host.write(GRAPH, &graph);
    assert_eq!(host.systemctl("stop").code, Some(0));
}

#[test]
fn a_stop_of_the_daemon_does_not_wait_for_a_start_that_hangs() {
    let unit = UNIT.replace("ExecStart=", "Type=notify\nExecStart=");
    let host = Host::with_failing_unit(&unit, RUNNING);
    host.until("the start", || host.of_unit("held", "ActiveState") == "activating");
    host.shell("systemctl stop --no-block steadfast.service");
    host.until("the first to be heard", || host.log().iter().any(|line| line.contains("stopping")));
    host.signal("TERM");
    assert!(
        crate::host::within(Duration::from_secs(20), || host.property("ActiveState") == "inactive"),
        "{}",
        host.report()
    );
}

#[test]
fn impossible_states_are_reported() {
    let graph = "
graph: host
resources:
  svc:
    - name: fixed
      startup: enabled
    - name: shut
      state: running
    - name: wrong
      state: running
";
    let host = Host::boot();
    host.write("/etc/systemd/system/fixed.service", "[Service]\nExecStart=/bin/true\n");
    host.write("/usr/lib/systemd/system/shut.service", "[Service]\nExecStart=/bin/true\n");
    host.shell("systemctl mask shut 2>&1");
    host.write("/etc/systemd/system/wrong.service", "[Service]\nExecStart=./relative\n");
    host.write(GRAPH, graph);
    let applied = host.run(&["steadfast", "apply", GRAPH]);
    assert_eq!(applied.code, Some(1), "{}{}", applied.stdout, applied.stderr);
    for words in [
        "fixed.service is static",
        "shut.service is masked: it cannot be started",
        "declare `startup: enabled`",
        "failed svc[wrong]",
    ] {
        assert!(applied.stdout.contains(words), "{words}: {}", applied.stdout);
    }
}
