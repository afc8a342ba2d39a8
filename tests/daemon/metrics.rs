//! The metrics of a running daemon: names and values, formats, the TCP address and the file of `node_exporter`.

use crate::daemon::Daemon;
use crate::host::{Host, is_root};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

const GRAPH: &str = r#"
graph: measured
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
  - {name: b, path: $DIR/b, content: "y"}
  exec:
  - {name: bad, cmd: /bin/false}
"#;

const SETTINGS: &str = "graph: graph.yaml\nstate_dir: state\nlog: json\n";

fn exchange(mut stream: impl std::io::Read + std::io::Write, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply");
    reply
}

/// Returns the reply of the metrics socket.
fn scrape(host: &Host, path: &str) -> String {
    exchange(UnixStream::connect(host.path("state/metrics.sock")).expect("the socket"), path)
}

/// Waits until the metrics contain this line.
fn waits_for(host: &Host, line: &str) {
    host.wait_until(line, || scrape(host, "/metrics").lines().any(|found| found == line));
}

fn start(host: &Host, more: &str) -> Daemon {
    host.write("steadfast.yaml", format!("{SETTINGS}{more}"));
    let run = host.bare(&["run", "--config", "$DIR/steadfast.yaml"]);
    let daemon = Daemon::start(run, &host.path(""));
    host.wait_until("the metrics socket", || host.exists("state/metrics.sock"));
    daemon
}

#[test]
fn metrics_count_resources_changes_and_failures() {
    let host = Host::with(GRAPH);
    let daemon = start(&host, "");
    daemon.wait_for("failed");
    for line in [
        r#"steadfast_resources{kind="file",state="converged"} 2"#,
        r#"steadfast_resources{kind="exec",state="failed"} 1"#,
        r#"steadfast_changes_total{kind="file",class="intentional"} 2"#,
        r#"steadfast_run_failures_total{kind="exec"} 1"#,
        r#"steadfast_graph_info{graph="measured"} 1"#,
        r#"steadfast_worker_up{worker="driver"} 1"#,
        "steadfast_driver_up 1",
        "steadfast_converged 0",
        "steadfast_graph_rejected 0",
        "steadfast_lease_held 1",
    ] {
        waits_for(&host, line);
    }
    let found = scrape(&host, "/metrics");
    assert!(found.contains("application/openmetrics-text; version=1.0.0"), "{found}");
    assert!(found.ends_with("# EOF\n") && !found.contains("resource=\""), "{found}");
    std::fs::remove_file(host.path("a")).expect("removed");
    waits_for(&host, r#"steadfast_changes_total{kind="file",class="corrective"} 1"#);
    let found = scrape(&host, "/metrics");
    assert!(!found.contains("steadfast_event_to_start_seconds_count 0\n"), "{found}");
    assert!(found.contains(r#"steadfast_repair_duration_seconds_bucket{le="+Inf"} "#), "{found}");

    host.graph(&GRAPH.replace("  exec:\n  - {name: bad, cmd: /bin/false}\n", ""));
    host.ask_daemon(&["reload"]).exits(0);
    waits_for(&host, "steadfast_converged 1");
    let found = scrape(&host, "/metrics");
    assert!(found.contains("steadfast_last_convergence_timestamp_seconds 1"), "{found}");
    assert!(!found.contains("steadfast_store_commit_duration_seconds_count 0\n"), "{found}");
    host.ask_daemon(&["pause", "--for", "1m"]).exits(0);
    waits_for(&host, "steadfast_paused 1");
    host.graph("graph: measured\nwrong: 1\n");
    let _refused = host.ask_daemon(&["reload"]);
    waits_for(&host, "steadfast_graph_rejected 1");
}

/// The counts of a converged host are those of the running graph, also after a load that keeps the number of resources,
/// and after a drift.
#[test]
fn metrics_of_a_converged_host_follow_the_graph() {
    let graph = |second: &str| {
        let file = "{name: a, path: $DIR/a, content: x, meta: {noop: false}}";
        format!("graph: measured\nresources:\n  file:\n  - {file}\n  {second}\n")
    };
    let host = Host::with(&graph("noop: [{name: b}]"));
    let daemon = start(&host, "");
    daemon.wait_for("converged");
    let counts = |host: &Host| -> Vec<String> {
        let found = scrape(host, "/metrics");
        let counts = found
            .lines()
            .filter(|line| line.starts_with("steadfast_resources{") && !line.ends_with(" 0"));
        counts.map(ToOwned::to_owned).collect()
    };
    let of = |kind: &str, state: &str| {
        format!(r#"steadfast_resources{{kind="{kind}",state="{state}"}} 1"#)
    };
    waits_for(&host, "steadfast_converged 1");
    let expected = [of("file", "converged"), of("noop", "converged")];
    // The second scrape of a converged host uses the counts of the first one.
    for _ in 0..3 {
        assert_eq!(counts(&host), expected);
    }
    host.graph(&graph("exec: [{name: b, cmd: /bin/true}]"));
    host.ask_daemon(&["reload"]).exits(0);
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    let expected = [of("exec", "converged"), of("file", "converged")];
    let sorted = |mut counts: Vec<String>| {
        counts.sort();
        counts
    };
    for _ in 0..3 {
        assert_eq!(sorted(counts(&host)), expected);
    }
    // A resource that is held is not converged.
    host.graph(&graph("exec: [{name: b, cmd: /bin/true}]").replace("noop: false", "noop: true"));
    host.ask_daemon(&["reload"]).exits(0);
    host.remove("a");
    waits_for(&host, &of("file", "held"));
    host.write("a", "x");
    waits_for(&host, &of("file", "converged"));
    let converged = counts(&host);
    assert_eq!(sorted(converged), expected);
}

/// A host that uses the world reports the connection; another host does not.
#[test]
fn metrics_show_the_world_where_it_is_used() {
    let host = Host::with(
        "graph: shared\nresources:\n  kv:\n  - {name: port, key: port, value: \"80\"}\n",
    );
    let _daemon = start(&host, "");
    waits_for(&host, "steadfast_world_connected 1");
    waits_for(&host, "steadfast_world_stale_seconds 0.0");
    let alone = Host::with(GRAPH);
    let _other = start(&alone, "");
    waits_for(&alone, "steadfast_lease_held 1");
    let found = scrape(&alone, "/metrics");
    assert!(!found.contains("steadfast_world"), "{found}");
}

/// The classic text has the names of its samples, infos as gauges, and neither units nor an end mark.
#[test]
fn metrics_have_a_classic_form() {
    let host = Host::with(GRAPH);
    let daemon = start(&host, "");
    daemon.wait_for("failed");
    let found = scrape(&host, "/metrics?format=text");
    assert!(found.contains("text/plain; version=0.0.4"), "{found}");
    assert!(found.contains("# TYPE steadfast_build_info gauge\nsteadfast_build_info{"), "{found}");
    assert!(found.contains("# TYPE steadfast_changes_total counter\n"), "{found}");
    assert!(!found.contains("# UNIT") && !found.contains("# EOF"), "{found}");
    assert!(scrape(&host, "/").starts_with("HTTP/1.1 404"));
    assert!(scrape(&host, "/metrics?format=xml").starts_with("HTTP/1.1 400"));
}

/// TCP, the file and single resources appear only if the settings ask for them.
#[test]
fn metrics_are_offered_as_the_settings_say() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number");
    let host = Host::with(GRAPH);
    let more = format!("metrics_listen: {free}\nmetrics_file: out.prom\nmetrics_resources: 1\n");
    let daemon = start(&host, &more);
    daemon.wait_for("failed");
    let listed = r#"steadfast_resource_unconverged{resource="exec[bad]",state="failed"} 1"#;
    waits_for(&host, listed);
    let found = exchange(TcpStream::connect(free).expect("the port"), "/metrics");
    assert!(found.contains("steadfast_resource_unconverged_omitted 0"), "{found}");
    host.wait_until("the file", || host.exists("out.prom"));
    assert!(host.read("out.prom").contains("# TYPE steadfast_build_info gauge\n"));
    let names = std::fs::read_dir(host.path("")).expect("listed");
    let names: Vec<_> = names.filter_map(|it| it.ok()?.file_name().into_string().ok()).collect();
    assert!(!names.iter().any(|name| name.contains("out.prom.")), "{names:?}");
}

/// N5 of a fault run: idle connections delay a scrape by less than the ten seconds that a scraper waits.
#[test]
fn idle_connections_delay_no_scrape_for_long() {
    let host = Host::with(GRAPH);
    let _daemon = start(&host, "");
    host.wait_until("the socket", || host.exists("state/metrics.sock"));
    let idle = |_| UnixStream::connect(host.path("state/metrics.sock")).expect("the socket");
    let _idle: Vec<UnixStream> = (0..100).map(idle).collect();
    let stream = UnixStream::connect(host.path("state/metrics.sock")).expect("the socket");
    stream.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("set");
    assert!(exchange(stream, "/metrics").starts_with("HTTP/1.1 200"));
}

/// K10 of an attack: a file in the directory of another user is written, as for an exporter, with a warning. Needs
/// root.
#[test]
fn a_metrics_file_of_others_is_written_with_a_warning() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    host.make_directory("theirs");
    std::os::unix::fs::chown(host.path("theirs"), Some(1000), Some(1000)).expect("given away");
    let daemon = start(&host, "metrics_file: theirs/out.prom\n");
    let line = daemon.wait_for("metrics");
    assert!(line.message.contains("another user can change these metrics"), "{line:?}");
    host.wait_until("the file", || host.exists("theirs/out.prom"));
}

/// Wrong settings of metrics are rejected with what was expected.
#[test]
fn wrong_settings_of_metrics_are_rejected() {
    let host = Host::with(GRAPH);
    for (setting, expected) in [
        ("metrics_listen: localhost", "should be ADDRESS:PORT, found `localhost`"),
        ("metrics_file: out.txt", "should end in .prom"),
        ("metrics_resources: 10001", "a number from 0 to 10000"),
    ] {
        host.write("steadfast.yaml", format!("{SETTINGS}{setting}\n"));
        let run = host.bare(&["run", "--config", "$DIR/steadfast.yaml"]);
        host.finish(run).exits(65).says(expected);
    }
}
