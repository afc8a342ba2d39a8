//! Contention (E-20): repairs of a contended resource become rare, and no other resource is affected.

use crate::client_commands::status;
use crate::daemon::{Daemon, Line};
use crate::host::Host;
use nix::sys::signal::Signal::SIGHUP;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use steadfast::api::Changes;

/// An adversary that rewrites these files whenever they are repaired, until it is dropped.
struct Adversary<'a>(&'a AtomicBool);

impl Drop for Adversary<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a test while an adversary changes these files.
fn besieged(host: &Host, names: &[&str], meanwhile: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for name in names {
            scope.spawn(|| undo_until(&stop, host, name));
        }
        let _adversary = Adversary(&stop);
        meanwhile();
    });
}

/// Runs a test while an adversary rewrites a file without looking, so often that it also writes during a repair.
fn overrun(host: &Host, name: &str, meanwhile: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                host.write(name, "undone\n");
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let _adversary = Adversary(&stop);
        meanwhile();
    });
}

fn undo_until(stop: &AtomicBool, host: &Host, name: &str) {
    while !stop.load(Ordering::Relaxed) {
        if host.read(name) != "undone\n" {
            host.write(name, "undone\n");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn of(daemon: &Daemon, event: &str, resource: &str) -> Vec<Line> {
    let lines = daemon.log().into_iter();
    lines.filter(|line| line.event == event && line.resource == resource).collect()
}

/// The duration of a contention test. Repairs wait 1, 2, 4 and 8 s, less up to a quarter, so three are due. Without
/// back-off there would be hundreds, and with `on_conflict: win` forty.
const CONTENDED: Duration = Duration::from_secs(10);
const RARE: RangeInclusive<u32> = 1..=6;

const FILES: &str = r#"
graph: contended
resources:
  file:
  - {name: a, path: $DIR/a, content: "a\n"}
  - {name: b, path: $DIR/b, content: "b\n", after: "file[a]"}
"#;

/// E-20, F-9: contention is recognised and reported once with its culprit, repairs become rare, and a neighbour and a
/// child are repaired as usual.
#[test]
fn e20_an_adversary_is_recognised_and_the_neighbour_goes_on() {
    let host = Host::with(FILES);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    besieged(&host, &["a"], || {
        let line = daemon.wait_for_of("contended", "file[a]");
        assert!(line.message.contains("repeatedly reverted (5 repairs)"), "{line:?}");
        let (began, before) = (Instant::now(), changes(&host).contended);
        for _ in 0..4 {
            host.append("b", "drift\n");
            let line = daemon.wait_for_of("changed", "file[b]");
            assert!(line.message.contains("corrective"), "{line:?}");
        }
        host.wait_until("the adversary is named", || {
            of(&daemon, "contended", "file[a]").iter().any(|l| l.message.contains("another party"))
        });
        host.wait_until("the status names the next try", || {
            let status = host.ask_daemon(&["status"]).stdout;
            status.contains("repeatedly reverted by something else: ")
                && status.contains(" s; next try in ")
        });
        wait_a_while(&host, began);
        let all = changes(&host);
        assert!(RARE.contains(&(all.contended - before)), "{before} before, {all:?}");
        assert!((4 + 4..=4 + 5).contains(&all.corrective), "four of b, five of a: {all:?}");
    });
    assert!(of(&daemon, "contended", "file[a]").len() <= 2, "{:?}", daemon.log());
    assert_eq!(daemon.count("contention_ended"), 0);
}

/// F-9: with `on_conflict: win` the daemon repairs four times a second and reports contention once; the repairs
/// themselves are debug events. Drift of other resources is reported.
#[test]
fn f9_an_endless_contention_does_not_fill_the_log() {
    let host = Host::with(&FILES.replace("\"a\\n\"}", "\"a\\n\", meta: {on_conflict: win}}"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.append("b", "drift\n");
    daemon.wait_for_of("diverged", "file[b]");
    daemon.wait_for("converged");
    let told = |daemon: &Daemon| daemon.count("diverged") + daemon.count("converged");
    besieged(&host, &["a"], || {
        daemon.wait_for_of("contended", "file[a]");
        let (before, said) = (changes(&host).contended, told(&daemon));
        host.wait_until("it is repaired many times", || changes(&host).contended >= before + 12);
        assert!(told(&daemon) <= said + 2, "{:?}", daemon.log());
    });
    assert!(of(&daemon, "contended", "file[a]").len() <= 2, "{:?}", daemon.log());
}

/// F-9: repairs that fail because the file is rewritten meanwhile belong to the same contention.
#[test]
fn f9_failures_of_a_contention_do_not_fill_the_log() {
    let host = Host::with(&FILES.replace("\"a\\n\"}", "\"a\\n\", meta: {on_conflict: win}}"));
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    overrun(&host, "a", || {
        daemon.wait_for_of("contended", "file[a]");
        let said = |event: &str| of(&daemon, event, "file[a]").len();
        let before = said("retrying") + said("recovered");
        std::thread::sleep(CONTENDED);
        let after = said("retrying") + said("recovered");
        // A repair that failed before the contention was recognised may succeed during it.
        assert!(after <= before + 1, "{:?}", daemon.log());
    });
}

/// Returns the number of changes of each class, from `status --json`.
fn changes(host: &Host) -> Changes {
    serde_json::from_value(status(host)["changes"].clone()).unwrap_or_default()
}

/// `status` and `show` class each change: all since the start, and the last one of each resource.
#[test]
fn status_and_show_class_each_change() {
    let host = Host::with(FILES);
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    let of_all =
        |intentional, corrective| Changes { intentional, corrective, ..Changes::default() };
    assert_eq!(changes(&host), of_all(2, 0));
    host.append("b", "drift\n");
    daemon.wait_for_of("changed", "file[b]");
    assert_eq!(changes(&host), of_all(2, 1));
    host.ask_daemon(&["status"]).prints("  changes since the start: 2 intentional, 1 corrective\n");
    host.ask_daemon(&["show", "file[a]"]).prints("ago, intentional\n");
    host.ask_daemon(&["show", "file[b]"]).prints("ago, corrective\n");
    host.ask_daemon(&["show", "file[b]", "--json"]).prints("\"last_change\":\"corrective\"");
}

/// E-20: a command that writes its own watch file does not loop: it is reported as not idempotent.
#[test]
fn e20_a_command_that_writes_its_own_watch_file_does_not_spin() {
    let host = Host::with(
        r#"
graph: spins
resources:
  exec:
  - {name: e, shell: /bin/sh, cmd: "echo x >> $DIR/own", watchfiles: [$DIR/own]}
"#,
    );
    let daemon = host.run(&[]);
    let line = daemon.wait_for_of("contended", "exec[e]");
    assert!(line.message.contains("not idempotent: by the resource's own run"), "{line:?}");
    assert!(host.lines("own").len() <= 10, "{}", host.lines("own").len());
}

/// F-10, E-20: two commands that undo each other without overlapping claims are reported with each other's names.
#[test]
fn f10_two_commands_on_one_thing_name_each_other() {
    let exec = |name: &str| {
        format!(
            "{{name: {name}, shell: /bin/sh, cmd: \"echo {name} > $DIR/thing\", \
             nifcmd: \"/bin/grep -qx {name} $DIR/thing\", watchfiles: [$DIR/thing]}}"
        )
    };
    let graph = format!("graph: two\nresources:\n  exec:\n  - {}\n  - {}\n", exec("a"), exec("b"));
    let host = Host::with(&graph);
    let daemon = host.run(&[]);
    host.wait_until("each names the other", || {
        [("exec[a]", "exec[b]"), ("exec[b]", "exec[a]")].iter().any(|(mine, other)| {
            let words = format!("not idempotent: by {other}");
            of(&daemon, "contended", mine).iter().any(|line| line.message.contains(&words))
        })
    });
}

/// F-10: two daemons with opposite graphs and separate state directories each see contention; repairs become rare,
/// and other resources converge.
#[test]
fn f10_two_daemons_with_opposite_graphs_come_to_rest() {
    let (one, other) = (Host::with(""), Host::with(""));
    let shared = one.path("shared");
    let opposite = |host: &Host, says: &str| {
        host.graph(&format!(
            "graph: {says}\nresources:\n  file:\n  - {{name: shared, path: {}, content: \"{says}\\n\"}}\n  \
             - {{name: own, path: $DIR/own, content: \"{says}\\n\"}}\n",
            shared.display()
        ));
    };
    opposite(&one, "one");
    opposite(&other, "other");
    let daemons = [one.run(&[]), other.run(&[])];
    for daemon in &daemons {
        daemon.wait_for_of("contended", "file[shared]");
    }
    let hosts = [&one, &other];
    let before = hosts.map(changes);
    let began = Instant::now();
    for (host, says) in [(&one, "one\n"), (&other, "other\n")] {
        host.write("own", "drift\n");
        host.wait_until("what is its own is repaired", || host.read("own") == says);
    }
    wait_a_while(&one, began);
    let repairs = [0, 1].map(|n: usize| changes(hosts[n]).contended - before[n].contended);
    assert!(repairs.iter().all(|count| count <= RARE.end()), "{repairs:?}");
    assert!(
        repairs.iter().any(|count| RARE.contains(count)),
        "the contention goes on: {repairs:?}"
    );
}

fn wait_a_while(host: &Host, began: Instant) {
    host.wait_until("time has passed", || began.elapsed() >= CONTENDED);
}

/// F-10: two daemons with one graph and separate state directories do not undo each other: either one repairs drift,
/// and both come to rest.
#[test]
fn f10_two_daemons_with_the_same_graph_do_not_contend() {
    const DRIFTS: u32 = 3;
    let (one, other) = (Host::with(""), Host::with(""));
    let shared = one.path("shared");
    let graph = format!(
        "graph: same\nresources:\n  file:\n  - {{name: shared, path: {}, content: \"x\\n\"}}\n",
        shared.display()
    );
    let hosts = [&one, &other];
    let daemons = hosts.map(|host| host.graph(&graph).run(&[]));
    for daemon in &daemons {
        daemon.wait_for("converged");
    }
    let all_rest = || hosts.iter().all(|host| status(host)["verdict"] == "converged");
    for drift in 1..=DRIFTS {
        one.write("shared", format!("drift {drift}\n"));
        one.wait_until("it is put back", || one.read("shared") == "x\n" && all_rest());
    }
    let repairs = || hosts.map(|host| changes(host).corrective);
    let after = repairs();
    let sum: u32 = after.iter().sum();
    assert!((DRIFTS..=DRIFTS * 2).contains(&sum), "each is repaired, by each once: {after:?}");
    wait_a_while(&one, Instant::now());
    assert_eq!(repairs(), after, "both rest");
    for (host, daemon) in hosts.iter().zip(&daemons) {
        let all = changes(host);
        assert_eq!((all.contended, all.not_idempotent, daemon.count("contended")), (0, 0, 0));
    }
}

/// The repair limit: after this many undone repairs, repeated repairs stop for a minute. Another file is repaired at
/// once, and changes of a new graph are still made.
#[test]
fn e20_a_suspension_is_reported_and_lets_a_new_graph_through() {
    let files = |content: &str| {
        let each = (0..5)
            .map(|n| format!("  - {{name: f{n}, path: $DIR/f{n}, content: \"{content}\\n\"}}\n"));
        format!("graph: suspended\nresources:\n  file:\n{}", each.collect::<String>())
    };
    let host = Host::with(&files("old"));
    let daemon = host.run(&["--max-repairs-per-minute", "6"]);
    daemon.wait_for("converged");
    besieged(&host, &["f0", "f1", "f2", "f3"], || {
        let line = daemon.wait_for("repairs_suspended");
        assert!(line.message.contains("7 repairs were reverted within a minute"), "{line:?}");
    });
    host.write("f4", "undone\n");
    host.wait_until("the file of nobody else is repaired", || host.read("f4") == "old\n");
    assert_eq!(daemon.count("repairs_resumed"), 0, "it is still on");
    host.graph(&files("new"));
    daemon.signal(SIGHUP);
    daemon.wait_for("converged");
    assert_eq!(host.read("f3"), "new\n");
    assert_eq!(daemon.count("repairs_resumed"), 0, "it is still on");
}

/// Returns the name of the weekday this many days from now, in UTC.
pub(crate) fn day(ahead: u64) -> &'static str {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let days = since.as_secs() / 86_400 + ahead;
    // 1 January 1970 was a Thursday.
    ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][usize::try_from(days % 7).expect("small")]
}

/// `when_allowed`: outside its window a file is held and shown with the change and the time of the window; inside the
/// window it is written at once.
#[test]
fn a_closed_window_holds_and_an_open_one_lets_in() {
    let graph = |when: &str| {
        format!(
            "graph: held\nresources:\n  file:\n  - {{name: f, path: $DIR/f, content: \"f\\n\", \
             meta: {{when_allowed: \"{when}\"}}}}\n"
        )
    };
    let far = day(3);
    let host = Host::with(&graph(far));
    let daemon = host.run(&[]);
    let line = daemon.wait_for_of("held", "file[f]");
    assert!(line.message.contains(&format!("changes are allowed {far}; would change")), "{line:?}");
    assert!(!host.exists("f"));
    let today = [day(0), day(1), day(6)].join(", ");
    host.graph(&graph(&today));
    daemon.signal(SIGHUP);
    daemon.wait_for("converged");
    assert_eq!(host.read("f"), "f\n");
}

/// `apply` obeys maintenance windows: a held resource is reported and is no failure.
#[test]
fn a_closed_window_holds_an_apply() {
    let host = Host::with("");
    host.graph(&format!(
        "graph: held\nresources:\n  file:\n  - {{name: f, path: $DIR/f, content: x, \
         meta: {{when_allowed: {}}}}}\n",
        day(3)
    ));
    host.apply().exits(0).prints("held file[f]: changes are allowed").prints("1 held");
    assert!(!host.exists("f"));
}

/// Each change has a class: changes that the graph requests have none shown, corrections of foreign changes are
/// marked.
#[test]
fn apply_says_what_was_corrective() {
    let host = Host::with(FILES);
    let first = host.apply();
    first.exits(0).prints("changed file[a]");
    assert!(!first.stdout.contains("corrective"), "{first}");
    host.append("a", "drift\n");
    host.apply().exits(0).prints("changed file[a]: ").prints(", corrective)");
}

/// `realize`: a resource that a reload removes before its first run is applied once first.
#[test]
fn realize_makes_it_once_before_a_reload_removes_it() {
    let slow = "{name: slow, shell: /bin/sh, cmd: \"until test -e $DIR/go; do sleep 0.02; done\"}";
    let host = Host::with(&format!(
        "graph: g\nresources:\n  exec:\n  - {slow}\n  file:\n  - {{name: f, path: $DIR/f, content: x, \
         after: \"exec[slow]\", meta: {{realize: true}}}}\n"
    ));
    let daemon = host.run_telling_starts(&[]);
    daemon.wait_for_of("started", "exec[slow]");
    host.graph(&format!("graph: g\nresources:\n  exec:\n  - {slow}\n"));
    daemon.signal(SIGHUP);
    let line = daemon.wait_for("loading");
    assert!(line.message.contains("file[f]"), "{line:?}");
    host.write("go", "");
    let line = daemon.wait_for("loaded");
    assert!(line.message.contains("1 removed"), "{line:?}");
    assert_eq!(host.read("f"), "x", "it was made, and is forgotten");
}

/// F6: a command that runs at each repair but names other paths is not reported as the culprit; the command that
/// writes the file is.
#[test]
fn f6_a_command_that_writes_elsewhere_is_not_named() {
    let graph = |cmd: &str| {
        format!(
            "graph: g\nresources:\n  file:\n  - {{name: a, path: $DIR/a, content: \"a\\n\", notify: \"exec[told]\"}}\n  exec:\n  \
             - {{name: told, shell: /bin/sh, cmd: \"{cmd}\", refresh_only: true}}\n"
        )
    };
    let host = Host::with(&graph("echo x >> $DIR/log"));
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    // The file changes each time while the command runs or has just run.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seen = 0;
            while !stop.load(Ordering::Relaxed) {
                let now = host.lines("log").len();
                if std::mem::replace(&mut seen, now) != now {
                    host.write("a", "undone\n");
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let _adversary = Adversary(&stop);
        let line = daemon.wait_for_of("contended", "file[a]");
        assert!(!line.message.contains("exec[told]"), "{line:?}");
        let keeps = "repeatedly reverted by something else";
        host.wait_until("the status names nobody", || {
            host.ask_daemon(&["status"]).stdout.contains(keeps)
        });
    });
    drop(daemon);
    let host = Host::with(&graph("echo x >> $DIR/log; echo y >> $DIR/a"));
    let daemon = host.run(&["--sweep", "0"]);
    let line = daemon.wait_for_of("contended", "file[a]");
    assert!(line.message.contains("not idempotent: by exec[told]"), "{line:?}");
}

/// F6: of two commands that run at each repair, the one that could have written the file is reported, in either
/// order.
#[test]
fn f6_the_second_of_two_commands_is_named() {
    let host = Host::with(
        r#"
graph: g
resources:
  file:
  - {name: a, path: $DIR/a, content: "a\n", notify: ["exec[told]", "exec[undoes]"]}
  exec:
  - {name: told, shell: /bin/sh, cmd: "echo x >> $DIR/log", refresh_only: true}
  - {name: undoes, shell: /bin/sh, cmd: "echo y >> $DIR/a", refresh_only: true}
"#,
    );
    let daemon = host.run(&["--sweep", "0"]);
    let line = daemon.wait_for_of("contended", "file[a]");
    assert!(line.message.contains("not idempotent: by exec[undoes]"), "{line:?}");
    host.wait_until("the status names it", || {
        host.ask_daemon(&["status"]).stdout.contains("exec[undoes]")
    });
}

/// B17: a copy follows a source that changes many times: no contention is reported, and every version arrives.
#[test]
fn b17_a_source_that_changes_often_is_no_contention() {
    let host = Host::with(
        "graph: g\nresources:\n  file:\n  - {name: copy, path: $DIR/copy, source: $DIR/src}\n  - {name: other, path: $DIR/other, content: x}\n",
    );
    host.write("src", "v0\n");
    let daemon = host.run(&["--sweep", "0"]);
    daemon.wait_for("converged");
    for version in 1..=12 {
        let text = format!("v{version}\n");
        host.write("new", &text).rename("new", "src");
        host.wait_until("the copy follows", || host.read("copy") == text);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(daemon.count("contended"), 0, "{:?}", daemon.log());
    host.ask_daemon(&["wait", "--timeout", "60"]).exits(0);
    assert!(changes(&host).intentional > 12, "{:?}", changes(&host));
}
