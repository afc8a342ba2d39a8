//! Failures of the event log itself (C-22): a full disk, a damaged and a removed log.

use crate::daemon::Daemon;
use crate::event_log::{GRAPH, contiguous, events, numbers, repairs, stop};
use crate::faults::full::{Mount, fill};
use crate::host::{Host, is_root};
use nix::sys::signal::Signal;

/// C-22: a full disk under the event log delays no repair; it is reported, and the events are recorded once there is
/// space. Root only (mounts a tmpfs).
#[test]
fn c22_a_full_disk_costs_no_repair() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    host.make_directory("small").make_directory("state").chmod("state", 0o700);
    let small = host.path("small");
    let mount = |options: &str| {
        let mut command = std::process::Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&small);
        assert!(command.status().expect("mount").success());
    };
    mount("size=16k");
    std::os::unix::fs::symlink(host.path("small/events.db"), host.path("state/events.db"))
        .expect("linked");
    let mut daemon = host.run(&[]);
    daemon.wait_for("events_write_failed");
    daemon.wait_for("converged");
    repairs(&host);
    let told = events(&host, &[]);
    assert!(told.iter().any(|event| event["event"] == "changed"), "{told:?}");
    assert_eq!(numbers(&told), [] as [u64; 0]);
    host.wait_until("it is said", || {
        host.ask_daemon(&["workers"]).exits(0).stdout.contains("events are not recorded: ")
    });
    host.ask_daemon(&["status"]).exits(0).prints("daemon: event log: cannot be written: ");
    mount("remount,size=4m");
    daemon.wait_for("events_written");
    host.ask_daemon(&["status"]).exits(0).prints_nothing_of("daemon:");
    let all = events(&host, &["--since", "1"]);
    contiguous(&numbers(&all));
    assert_eq!(all[0]["event"], "run_start");
    assert!(all.iter().any(|event| event["event"] == "changed"), "{all:?}");
    stop(&host, &mut daemon);
    let last = events(&host, &["-n", "1"]);
    assert_eq!(last[0]["event"], "run_end");
    let mut command = std::process::Command::new("umount");
    assert!(command.arg(&small).status().expect("umount").success());
}

/// Changes a file until the daemon logs an event: the journals have some room left on a full disk.
fn break_until(host: &Host, daemon: &Daemon, event: &str) {
    for part in 0..2000 {
        host.write("a", format!("broken {part}"));
        if daemon.count(event) > 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    daemon.wait_for(event);
}

/// C-22: a daemon that stops while the disk of the log is full records its last events in the reserve. Root only
/// (mounts a tmpfs).
#[test]
fn c22_a_stop_on_a_full_disk_loses_no_event() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    let _state = Mount::new(&host, "state", "size=4m,mode=0700");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("an event is recorded", || !numbers(&events(&host, &[])).is_empty());
    let filler = fill(&host, "state/filler");
    break_until(&host, &daemon, "events_write_failed");
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.ends(), 0);
    std::fs::remove_file(filler).expect("removed");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    stop(&host, &mut daemon);
    let all = events(&host, &["--since", "1"]);
    contiguous(&numbers(&all));
    let of = |name: &str| all.iter().filter(|event| event["event"] == name).count();
    assert_eq!((of("run_start"), of("run_end"), of("gap")), (2, 2, 0), "{all:?}");
    assert!(!all.iter().any(|event| event.to_string().contains("unexpectedly")), "{all:?}");
}

/// C-22: a daemon that is killed while the disk of the log is full loses its waiting events; the next session reports
/// the gap. Root only (mounts a tmpfs).
#[test]
fn c22_a_kill_on_a_full_disk_reports_a_gap() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    let _state = Mount::new(&host, "state", "size=4m,mode=0700");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("an event is recorded", || !numbers(&events(&host, &[])).is_empty());
    let filler = fill(&host, "state/filler");
    break_until(&host, &daemon, "events_write_failed");
    host.wait_until("the waiting events are marked", || host.exists("state/events.db-waiting"));
    daemon.kill();
    std::fs::remove_file(filler).expect("removed");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(daemon.count("events_lost"), 1);
    assert!(!host.exists("state/events.db-waiting"));
    stop(&host, &mut daemon);
    let all = events(&host, &["--since", "1"]);
    contiguous(&numbers(&all));
    assert_eq!(all.iter().filter(|event| event["event"] == "gap").count(), 1, "{all:?}");
}

/// C-22: the log is written again a few seconds after space returns, and nothing is lost.
#[test]
fn c22_an_event_log_recovers_from_a_full_disk() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    let _state = Mount::new(&host, "state", "size=4m,mode=0700");
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    let filler = fill(&host, "state/filler");
    break_until(&host, &daemon, "events_write_failed");
    std::fs::remove_file(filler).expect("removed");
    daemon.wait_for("events_written");
    host.wait_until("no mark is left", || !host.exists("state/events.db-waiting"));
    stop(&host, &mut daemon);
    let all = events(&host, &["--since", "1"]);
    contiguous(&numbers(&all));
    assert!(!all.iter().any(|event| event["event"] == "gap"), "{all:?}");
}

/// C-22: a damaged event log is moved aside and a new one begun with unused numbers; this is reported, and nothing
/// else is affected.
#[test]
fn c22_a_damaged_log_is_set_aside() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    stop(&host, &mut daemon);
    let before = numbers(&events(&host, &["--since", "1"]));
    host.write("state/events.db", "not a database, but long enough to be looked at. ".repeat(100));
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(daemon.count("events_lost"), 1);
    for doubt in ["read_only", "state_repaired", "state_unsound"] {
        assert_eq!(daemon.count(doubt), 0, "{doubt}");
    }
    repairs(&host);
    stop(&host, &mut daemon);
    let all = events(&host, &[]);
    contiguous(&numbers(&all));
    assert_eq!(all[0]["event"], "gap");
    assert!(numbers(&all).first() > before.last());
    let aside = std::fs::read_dir(host.path("state")).expect("read").flatten();
    let aside =
        aside.filter(|entry| entry.file_name().to_string_lossy().starts_with("events.db.bad"));
    // Including the database's own log, if there was one.
    assert!(aside.count() >= 1);
}

/// C-22: a log that is removed while in use is made anew: the gap is told, and the numbers go on.
#[test]
fn c22_a_removed_log_is_made_anew() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    repairs(&host);
    let before = numbers(&events(&host, &["--since", "1"]));
    for suffix in ["", "-wal", "-shm"] {
        drop(std::fs::remove_file(host.path(&format!("state/events.db{suffix}"))));
    }
    repairs(&host);
    host.wait_until("the loss is logged", || daemon.count("events_lost") == 1);
    stop(&host, &mut daemon);
    let all = events(&host, &[]);
    contiguous(&numbers(&all));
    assert_eq!(all[0]["event"], "gap");
    assert!(all.iter().any(|event| event["event"] == "changed"), "{all:?}");
    assert!(numbers(&all).first() > before.last());
}

/// C-22: a log that is lost between two sessions is made anew: the gap is told, and no number is used again.
#[test]
fn c22_a_log_that_is_lost_while_no_daemon_runs_is_made_anew() {
    let host = Host::with(GRAPH);
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(daemon.count("events_lost"), 0, "a first start has no earlier events");
    host.wait_until("the graph is stored", || host.exists("state/graph.json"));
    stop(&host, &mut daemon);
    let before = numbers(&events(&host, &["--since", "1"]));
    for suffix in ["", "-wal", "-shm"] {
        drop(std::fs::remove_file(host.path(&format!("state/events.db{suffix}"))));
    }
    let mut daemon = host.run(&[]);
    daemon.wait_for("converged");
    assert_eq!(daemon.count("events_lost"), 1);
    stop(&host, &mut daemon);
    let all = events(&host, &[]);
    contiguous(&numbers(&all));
    assert_eq!(all[0]["event"], "gap");
    assert!(numbers(&all).first() > before.last());
}
