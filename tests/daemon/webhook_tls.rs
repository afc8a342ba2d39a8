//! Webhooks over TLS: the checks of a server before anything is sent.

use crate::daemon::Daemon;
use crate::host::Host;
use crate::receiver::{AUTHORITY, Answer, Receiver};

const GRAPH: &str = r#"
graph: secured
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

/// Starts a daemon with this webhook, on a host that trusts these authorities.
fn run(host: &Host, url: &str, authorities: &str) -> Daemon {
    let settings = format!(
        "graph: graph.yaml\nstate_dir: state\nlog: json\nrecorders:\n\
         - webhook: {{url: \"{url}\", headers: {{Authorization: Bearer hidden-token}}}}\n"
    );
    host.write("steadfast.yaml", settings).write("authorities.pem", authorities);
    let mut command = host.bare(&["run", "--config", "$DIR/steadfast.yaml"]);
    command.env("SSL_CERT_FILE", host.path("authorities.pem")).env_remove("SSL_CERT_DIR");
    Daemon::start(command, &host.path(""))
}

/// A server with a trusted certificate receives all events, with the header.
#[test]
fn a_server_that_is_trusted_is_told() {
    let receiver = Receiver::secure(Answer::Taken);
    let host = Host::with(GRAPH);
    let mut daemon = run(&host, &receiver.url, AUTHORITY);
    daemon.wait_for("converged");
    host.wait_until("it is told", || {
        receiver.came().iter().any(|came| came.kinds.iter().any(|kind| kind == "converged"))
    });
    assert!(receiver.came().iter().all(|came| came.token == "Bearer hidden-token"));
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}

/// A server with an unknown issuer or another name receives nothing, not even a header; the reason and the remedy are
/// reported, and the host stays converged.
#[test]
fn a_server_that_is_not_trusted_is_told_nothing() {
    // A trusted authority that has signed no certificate here.
    let stranger = include_str!("tls/stranger.pem");
    for (authorities, name, why) in [
        (
            stranger,
            "localhost",
            "its issuer is unknown: add the issuer to the trusted certificates",
        ),
        (AUTHORITY, "127.0.0.2", "issued for another name"),
    ] {
        let receiver = Receiver::secure(Answer::Taken);
        let host = Host::with(GRAPH);
        let url = receiver.url.replace("localhost", name);
        let mut daemon = run(&host, &url, authorities);
        daemon.wait_for("converged");
        host.wait_until("it is said", || host.ask_daemon(&["workers"]).stdout.contains(why));
        let report = host.ask_daemon(&["workers"]);
        report.prints("the certificate of the server is rejected");
        report.prints_nothing_of("hidden-token");
        host.write("a", "broken");
        host.wait_until("it is put back", || host.read("a") == "x");
        assert_eq!(receiver.came().len(), 0);
        host.ask_daemon(&["stop"]).exits(0);
        assert_eq!(daemon.ends(), 0);
    }
}

/// C-12: a recorder that cannot start is reported once, not at each attempt; the host stays converged.
#[test]
fn a_recorder_that_cannot_begin_is_said_once() {
    let host = Host::with(GRAPH);
    let mut daemon = run(&host, "https://127.0.0.1:9/", "no certificate in it");
    daemon.wait_for("converged");
    let ill = || host.ask_daemon(&["status"]).stdout.contains("no trusted certificates");
    host.wait_until("it is in the status", ill);
    let before = host.read("a");
    host.write("a", "drifted");
    host.wait_until("it is held", || host.read("a") == before);
    let said = || {
        daemon.log().iter().filter(|line| line.message.contains("not running, retrying: ")).count()
    };
    // Several attempts have been made by now.
    let tries = || host.ask_daemon(&["status"]).stdout.contains("next try in 2");
    host.wait_until("it was tried again and again", tries);
    host.wait_until("the log says so", || said() > 0);
    assert_eq!(said(), 1, "{:#?}", daemon.log());
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends(), 0);
}
