//! F-19: recorders of journald and of a webhook fail and hang without losing a recorded event.
#![cfg(feature = "fault-injection")]

use crate::daemon::Daemon;
use crate::host::{Host, LIMIT};
use crate::receiver::{Answer, Receiver};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const GRAPH: &str = r#"
graph: recorders
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

fn repairs(host: &Host) {
    host.write("a", "broken");
    host.wait_until("it is put back", || host.read("a") == "x");
}

/// A simulated journal that collects the numbers of all entries until it is dropped.
struct Journal {
    numbers: Arc<Mutex<BTreeSet<u64>>>,
}

impl Journal {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("bound");
        let numbers = Arc::<Mutex<BTreeSet<u64>>>::default();
        let own = Arc::downgrade(&numbers);
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
        std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 20];
            while let Some(numbers) = own.upgrade() {
                let Ok(length) = socket.recv(&mut bytes) else { continue };
                let entry = String::from_utf8_lossy(&bytes[..length]);
                let number = entry.lines().find_map(|line| line.strip_prefix("STEADFAST_NUMBER="));
                let number = number.expect("each has one").parse().expect("a number");
                numbers.lock().expect("whole").insert(number);
            }
        });
        Self { numbers }
    }

    fn has(&self, all: &BTreeSet<u64>) -> bool {
        *self.numbers.lock().expect("whole") == *all
    }
}

/// A-19, F-19, C-12: recorders of journald and of a webhook fail in each way and are restarted; all events recorded
/// meanwhile reach both.
#[test]
fn c12_recorders_of_each_sort_heal() {
    let host = Host::with(GRAPH);
    let journal = Journal::at(&host.path("journal"));
    let receiver = Receiver::new(&[], Answer::Taken);
    let settings = format!(
        "graph: graph.yaml\nstate_dir: state\nlog: json\nrecorders:\n- journald: {{socket: $DIR/journal}}\n- webhook: {{url: \"{}\"}}\n",
        receiver.url
    );
    host.write("steadfast.yaml", host.full(&settings));
    let mut command = host.bare(&["run", "--config", "$DIR/steadfast.yaml"]);
    command.env("STEADFAST_TEST_SILENCE", "3000");
    let mut daemon = Daemon::start(command, &host.path(""));
    daemon.wait_for("converged");
    let recorders: Vec<String> = crate::workers::starts(&host).into_keys().collect();
    let recorders: Vec<&String> =
        recorders.iter().filter(|name| name.starts_with("recorder:")).collect();
    assert_eq!(recorders.len(), 2, "{recorders:?}");
    for (how, starts) in [("panic", 2), ("error", 3), ("hang", 4)] {
        for recorder in &recorders {
            crate::workers::fault(&host, &host.full(recorder), how);
        }
        repairs(&host);
        for recorder in &recorders {
            crate::workers::runs_again(&host, recorder, starts);
        }
        repairs(&host);
    }
    host.ask_daemon(&["stop"]).exits(0);
    assert_eq!(daemon.ends_after_panics(LIMIT), 0);
    let output = host.ask_daemon(&["events", "--json", "--debug", "--since", "1"]);
    let events = output.exits(0).stdout.lines();
    let events = events.map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let all: BTreeSet<u64> = events.filter_map(|event| event["number"].as_u64()).collect();
    host.wait_until("the journal has all", || journal.has(&all));
    let came: BTreeSet<u64> = receiver.came().into_iter().flat_map(|came| came.numbers).collect();
    assert_eq!(came, all, "by the webhook");
}

/// A reload that removes a recorder does not wait for it, whether its destination answers or not; the recorder that
/// answers gets everything that was recorded before.
#[test]
fn a_reload_does_not_wait_for_an_old_recorder() {
    let host = Host::with(GRAPH);
    let receiver = Receiver::new(&[], Answer::Stall);
    let settings = |recorders: &str| {
        let text =
            format!("graph: graph.yaml\nstate_dir: state\nlog: json\nrecorders:\n{recorders}");
        host.write("steadfast.yaml", host.full(&text));
    };
    settings(&format!("- webhook: {{url: \"{}\"}}\n- file: {{path: one.jsonl}}\n", receiver.url));
    let daemon =
        Daemon::start(host.bare(&["run", "--config", "$DIR/steadfast.yaml"]), &host.path(""));
    daemon.wait_for("converged");
    host.wait_until("a batch is on its way", || !receiver.came().is_empty());
    repairs(&host);
    settings("- file: {path: two.jsonl}\n");
    let began = Instant::now();
    host.ask_daemon(&["reload"]).exits(0).prints("settings applied: recorders\n");
    assert!(began.elapsed() < Duration::from_secs(3), "it waited: {:?}", began.elapsed());
    repairs(&host);
    let changes = |name: &str| host.read(name).matches("\"changed\"").count();
    host.wait_until("the new one gets both repairs", || changes("two.jsonl") >= 2);
    let gone = || !host.ask_daemon(&["workers"]).stdout.contains("recorder:webhook");
    host.wait_until("the old one is gone", gone);
    assert!(changes("one.jsonl") >= 2, "{}", host.read("one.jsonl"));
}
