//! Reported results are durable. Root only (mounts a tmpfs).

use super::full::Mount;
use super::stateless::fill;
use crate::host::Host;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// B-4, C-22: a run whose end cannot be stored is neither logged as a change nor recorded as an event, and neither
/// `status` nor `wait` treats it as ended. Once the end is stored, all of them report it.
#[test]
fn nothing_is_announced_before_its_end_is_durable() {
    // The log of the database has room for some records, and none for the long output.
    let fills = "cat /dev/zero > $DIR/state/filler; echo ran >> $DIR/ran; yes x | head -c 60000";
    let host = Host::with(&format!(
        "graph: g\nresources:\n  exec: [{{name: fills, shell: /bin/sh, cmd: \"{fills}\"}}]\n  \
         value: [{{name: output, recv: {{text: \"exec[fills].stdout\"}}}}]\n"
    ));
    let mount = Mount::new(&host, "state", "size=3m,mode=0700");
    let mut daemon = host.run(&[]);
    host.wait_for_lines("ran", 1);
    daemon.wait_for("state_write_failed");
    let events =
        |word: &str| host.ask_daemon(&["events", "-n", "100"]).exits(0).stdout.contains(word);
    // The store retries every second, so several attempts fail. A store that closes a full database frees some space,
    // which is filled again meanwhile.
    let waited = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !waited.load(Ordering::SeqCst) {
                fill(&host, "state/filler");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let told = host.ask_daemon(&["wait", "--timeout", "4"]);
        waited.store(true, Ordering::SeqCst);
        told.exits(1).says("not converged after 4 s");
    });
    assert_eq!(daemon.count("changed"), 0, "{:?}", daemon.log());
    assert!(!events("changed exec[fills]"));
    host.ask_daemon(&["status"]).exits(2).prints("g: converging: ");
    assert_eq!(host.lines("ran").len(), 1, "it is not run again for it");
    host.remove("state/filler");
    daemon.wait_for_of("changed", "exec[fills]");
    daemon.wait_for("converged");
    host.wait_until("it is told", || events("changed exec[fills]"));
    host.ask_daemon(&["status"]).exits(0).prints("g: converged");
    assert_eq!(host.lines("ran").len(), 1);
    daemon.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);
    drop(mount);
}
