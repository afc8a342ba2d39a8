//! The shipped unit with settings at their real path, without command-line options.

use crate::host::Host;
use crate::service::{GRAPH, ONE_FILE};

const SETTINGS: &str = "/etc/steadfast/steadfast.yaml";
const SHIPPED: &str = include_str!("../../systemd/steadfast.yaml");

/// Graph, recorders and log levels come from the settings; each command finds the settings and the daemon.
#[test]
fn the_unit_takes_its_settings() {
    let host = Host::boot();
    host.write("/srv/site/site.yaml", ONE_FILE);
    host.write(
        SETTINGS,
        "graph: /srv/site/site.yaml\nwatch: true\nlog: json\nlog_level: warn\nsweep: 60\n\
         defaults: {retry: 7}\nrecorders:\n- file: {path: /var/log/steadfast.jsonl}\n- journald: {}\n",
    );
    host.start();
    host.until("the graph to be applied", || host.is_held());
    let steadfast = |words: &[&str]| host.run(&[&["steadfast"], words].concat());
    assert_eq!(steadfast(&["wait", "--timeout", "60"]).code, Some(0), "{}", host.report());
    let status = steadfast(&["status"]);
    assert!(status.stdout.starts_with("host: converged"), "{}{}", status.stdout, status.stderr);
    assert_eq!(steadfast(&["check"]).stdout.lines().count(), 1);
    assert!(steadfast(&["show", "file[/etc/held]"]).stdout.contains("converged"));
    assert_eq!(steadfast(&["plan", "--detailed-exitcode"]).code, Some(0), "nothing to do");
    let report = steadfast(&["workers"]).stdout;
    for recorder in ["recorder:file:/var/log/steadfast.jsonl", "recorder:journald"] {
        assert!(report.contains(recorder), "{report}");
    }
    let told =
        |word: &str| host.read("/var/log/steadfast.jsonl").unwrap_or_default().contains(word);
    host.until("the recorder to be told", || told("\"event\":\"converged\""));
    host.until("the journal to be told", || {
        host.shell("journalctl --no-pager -o cat STEADFAST_EVENT=converged").contains("converged")
    });
    // At log level `warn` the convergence is not logged.
    let log = || host.shell("journalctl --no-pager -o cat -u steadfast.service _TRANSPORT=stdout");
    assert!(!log().contains("\"converged\""), "{}", log());
    assert_eq!(steadfast(&["log-level", "info"]).code, Some(0));
    host.write("/etc/held", "drift");
    host.until("the repair in the log", || log().contains("\"event\":\"changed\""));
    assert!(host.is_held());

    // The daemon watches the graph of its settings.
    let more = format!("{ONE_FILE}    - name: /etc/more\n      content: more\n");
    host.write("/srv/site/site.yaml", &more);
    host.until("the new file", || host.read("/etc/more").as_deref() == Some("more"));
    assert_eq!(host.systemctl("reload").code, Some(0), "{}", host.report());
    assert_eq!(host.systemctl("stop").code, Some(0));
    assert!(told("\"event\":\"run_end\""), "the last event is recorded");
    assert!(host.read(GRAPH).is_none());
}

/// Settings that are wrong, or that others could change (S-11), make the start fail once, with their place.
#[test]
fn settings_that_are_refused_fail_the_start_once() {
    let host = Host::boot();
    host.write(GRAPH, ONE_FILE);
    let refused = |says: &str| {
        assert_ne!(host.systemctl("start").code, Some(0));
        assert_eq!(host.property("ExecMainStatus"), "65", "{}", host.report());
        assert_eq!(host.property("NRestarts"), "0");
        host.until(says, || host.log().join("\n").contains(says));
        host.shell("systemctl reset-failed steadfast.service");
    };
    host.write(SETTINGS, "graph: graph.yaml\nsweeep: 3\n");
    refused("/etc/steadfast/steadfast.yaml:2:1");
    host.write(SETTINGS, "graph: graph.yaml\n");
    host.shell("chown 1234 /etc/steadfast/steadfast.yaml");
    refused("another user could change the file");
    assert!(host.read("/etc/held").is_none());
    host.shell("chown 0 /etc/steadfast/steadfast.yaml");
    host.start();
    host.until("the graph to be applied", || host.is_held());
}

/// The shipped settings load the graph beside them.
#[test]
fn the_settings_that_are_shipped_are_right() {
    let host = Host::boot();
    host.write(GRAPH, ONE_FILE);
    host.write(SETTINGS, SHIPPED);
    host.start();
    host.until("the graph to be applied", || host.is_held());
    let wait = ["steadfast", "wait", "--timeout", "60"];
    assert_eq!(host.run(&wait).code, Some(0), "{}", host.report());
}

/// The graph and the settings are gone: a daemon that has run before goes on with its last-good graph.
#[test]
fn the_last_good_graph_runs_without_the_folder_of_the_settings() {
    let host = Host::boot();
    host.write(GRAPH, ONE_FILE);
    host.start();
    host.until("the graph to be applied", || host.is_held());
    host.shell(
        "steadfast wait --timeout 60; mv /etc/steadfast /root/away; systemctl restart steadfast",
    );
    host.shell("rm /etc/held");
    host.until("the repair of the last-good graph", || host.is_held());
    host.shell("mv /root/away /etc/steadfast; steadfast reload; steadfast wait --timeout 60");
}
