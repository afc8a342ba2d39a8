//! Pipes and directories in place of files of the state directory: no command opens them or hangs; each names its
//! finding.

use crate::host::{Host, LIMIT};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

const GRAPH: &str = r#"
graph: misplaced
resources:
  file: [{name: f, path: $DIR/f, content: "declared\n"}]
"#;

/// Creates a state with a history and a last-good graph, one of whose files is replaced by a pipe or a directory.
fn with(name: &str, is_fifo: bool) -> Host {
    let host = Host::with(GRAPH);
    host.write("f", "mine\n");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it is kept", || host.exists("state/graph.json"));
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.ends_after_panics(LIMIT), 0);
    let place = format!("state/{name}");
    host.remove(&place);
    if is_fifo {
        mkfifo(&host.path(&place), Mode::from_bits_truncate(0o600)).expect("made");
    } else {
        host.make_directory(&place);
    }
    host
}

/// B-22: a replaced database is named by each command that needs it.
#[test]
fn a_replaced_database_is_not_opened() {
    for (is_fifo, found) in [(true, "a fifo"), (false, "a directory")] {
        let expected = format!("expected a file, found {found}");
        let needs: [(&str, &[&[&str]]); 4] = [
            (
                "state.db",
                &[
                    &["state", "show"],
                    &["state", "verify"],
                    &["undo", "file[f]"],
                    &["retry", "--persist", "file[f]"],
                ],
            ),
            ("state.db-wal", &[&["state", "show"]]),
            ("events.db", &[&["events"]]),
            (
                "history/history.db",
                &[
                    &["history"],
                    &["diff", "file[f]"],
                    &["show", "file[f]", "--at", "1"],
                    &["undo", "file[f]"],
                ],
            ),
        ];
        for (name, commands) in needs {
            if name.ends_with("-wal") {
                let host = Host::with(GRAPH);
                host.apply().exits(0);
                mkfifo(&host.path("state/state.db-wal"), Mode::from_bits_truncate(0o600))
                    .expect("made");
                host.ask_daemon(commands[0]).says("expected a file, found a fifo");
                continue;
            }
            let host = with(name, is_fifo);
            for command in commands {
                let told = host.ask_daemon(command);
                assert!(told.code != 0 && told.stderr.contains(&expected), "{command:?}\n{told}");
            }
            let (plan, apply) = (host.plan(), host.apply());
            if name == "state.db" {
                for told in [&plan, &apply] {
                    assert!(told.code != 0 && told.stderr.contains(&expected), "{told}");
                }
            } else {
                plan.exits(0);
                apply.exits(0);
            }
            let daemon = host.run(&[]);
            let said = |text: &str| daemon.log().iter().any(|line| line.message.contains(text));
            host.wait_until("the daemon says so", || {
                said(&expected) || name == "history/history.db"
            });
            daemon.kill();
            assert!(!host.metadata(&format!("state/{name}")).is_file(), "{name} is left alone");
        }
    }
}

/// B-22: a replaced last-good graph is reported by the daemon, which goes on and stores the new graph if possible.
#[test]
fn a_replaced_last_good_graph_is_not_read() {
    for is_fifo in [true, false] {
        let host = with("graph.json", is_fifo);
        host.ask_daemon(&["state", "show"]).exits(0).prints("file[f]");
        host.plan().exits(0);
        let daemon = host.run(&[]);
        daemon.wait_for("converged");
        let said = "graph.json cannot be read: expected a file, found";
        let is_said = || daemon.log().iter().any(|line| line.message.contains(said));
        host.wait_until("the daemon says so", is_said);
        if is_fifo {
            let path = host.path("state/graph.json");
            host.wait_until("the new one takes its place", || path.is_file());
        }
    }
}
