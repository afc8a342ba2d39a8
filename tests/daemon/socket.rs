//! The control socket of the real daemon: access rights, trust, and resistance to many connections (S-12).

use crate::daemon::Daemon;
use crate::host::{Host, LIMIT, is_root};
use crate::output::Output;
use rustix::process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const GRAPH: &str = r#"
graph: besieged
resources:
  file:
  - {name: a, path: $DIR/a, content: "x"}
"#;

/// The group with read access.
const GROUP: u32 = 64123;

/// Runs the program as this user with this group.
fn as_user(host: &Host, (uid, gid): (u32, u32), words: &[&str]) -> Output {
    // Other users may not be able to reach the build folder.
    let program = host.path("ours");
    if !program.exists() {
        std::fs::copy(env!("CARGO_BIN_EXE_steadfast"), &program).expect("a copy");
        host.chmod("ours", 0o755).chmod("", 0o755);
    }
    let mut command = Command::new(program);
    command.args(words.iter().map(|word| host.full(word)));
    command.env_clear().current_dir("/").uid(uid).gid(gid);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    host.finish(command)
}

/// Runs a daemon whose socket a group may read.
fn run_with_group(host: &Host) -> Daemon {
    host.chmod("", 0o755);
    let daemon = host.run(&["--socket", "$DIR/run/socket", "--socket-group", "64123"]);
    daemon.wait_for("converged");
    host.wait_until("it listens", || host.exists("run/socket"));
    daemon
}

/// A removed control socket is made again, and later a removed directory of the socket as well (audit, surprises).
#[test]
fn a_removed_socket_is_made_again() {
    let host = Host::with(GRAPH);
    let daemon = host.run(&["--socket", "$DIR/run/socket"]);
    daemon.wait_for("converged");
    let status = ["status", "--socket", "$DIR/run/socket"];
    for removed in ["run/socket", "run"] {
        host.wait_until("it listens", || host.finish(host.bare(&status)).code == 0);
        let path = host.path(removed);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).expect("removed");
        } else {
            host.remove(removed);
        }
        host.wait_until("it listens again", || host.finish(host.bare(&status)).code == 0);
    }
    let made_again = "was removed and is recreated";
    host.wait_until("the log says so", || {
        daemon.log().iter().any(|line| line.message.contains(made_again))
    });
}

/// S-12: members of the socket's group can read and not change; other users cannot connect. Needs root.
#[test]
fn a_group_may_look() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    let daemon = run_with_group(&host);
    let (member, stranger) = ((65534, GROUP), (65534, 65534));
    let socket = ["--socket", "$DIR/run/socket"];
    let with = |words: &[&'static str]| [words, &socket[..]].concat();
    // The event of the daemon's own write makes one more check.
    host.wait_until("it rests", || as_user(&host, (0, 0), &with(&["status"])).code == 0);
    as_user(&host, member, &with(&["status"])).exits(0).prints("besieged: converged");
    for words in [&["pause"][..], &["stop"], &["reload"], &["check", "file[a]"]] {
        as_user(&host, member, &with(words))
            .exits(77)
            .says("may only query; root may make changes");
    }
    // The reply tells a user without access that the differences are not shown.
    let shown = as_user(&host, member, &with(&["show", "file[a]"]));
    shown.exits(0).prints("differs: unknown").prints("may only query; root may make changes");
    as_user(&host, stranger, &with(&["status"])).exits(77).says("permission denied to connect to");
    daemon.has_not_said("paused");
    as_user(&host, (0, 0), &with(&["status"])).exits(0);
}

/// Events show the values of differences to root only: members of the group may be unable to read the file. Needs root.
#[test]
fn a_group_sees_no_values() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(
        "graph: g\nresources:\n  line:\n  - {name: l, path: $DIR/l, match: ^pw, line: pw new-1f3}\n",
    );
    host.write("l", "pw old-7c2\n").chmod("", 0o755);
    let daemon = host.run(&["--socket", "$DIR/run/socket", "--socket-group", "64123"]);
    daemon.wait_for_of("changed", "line[l]");
    host.wait_until("it listens", || host.exists("run/socket"));
    let events = ["events", "--json", "--socket", "$DIR/run/socket"];
    host.wait_until("it is recorded", || {
        as_user(&host, (0, 0), &events).stdout.contains("old-7c2")
    });
    let seen = as_user(&host, (65534, GROUP), &events).exits(0).stdout.clone();
    assert!(seen.contains("line[l]") && seen.contains("not shown"), "{seen}");
    assert!(!seen.contains("old-7c2") && !seen.contains("new-1f3"), "{seen}");
    // The message of a repair has the values before and after. The graph is for root only.
    host.chmod("graph.yaml", 0o600);
    daemon.wait_for("converged");
    // In one step: a check between the truncation and the write would report an empty file.
    host.write("l.new", "pw drift-5e8\n");
    std::fs::rename(host.path("l.new"), host.path("l")).expect("renamed");
    host.wait_until("it is recorded", || {
        as_user(&host, (0, 0), &events).stdout.contains("drift-5e8 ->")
    });
    let socket = ["--socket", "$DIR/run/socket"];
    for ask in [&["events"][..], &["events", "--json"], &["show", "line[l]"], &["status"]] {
        let seen = as_user(&host, (65534, GROUP), &[ask, &socket].concat()).stdout.clone();
        assert!(!seen.is_empty(), "{ask:?}");
        for value in ["old-7c2", "new-1f3", "drift-5e8"] {
            assert!(!seen.contains(value), "{ask:?}: {seen}");
        }
    }
}

/// The messages of a rejected graph quote its values: they are for root only. Needs root.
#[test]
fn a_group_sees_no_messages_of_a_rejected_graph() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    let _daemon = run_with_group(&host);
    let socket = ["--socket", "$DIR/run/socket"];
    let ask = |uid: u32, words: &[&str]| {
        let gid = if uid == 0 { 0 } else { GROUP };
        as_user(&host, (uid, gid), &[words, &socket].concat()).stdout
    };
    let graph = "graph: g\nvars: {p: pw-9d1}\nresources:\n  \
                 file:\n  - {name: $DIR/a, mode: \"${vars.p}\"}\n";
    host.graph(graph);
    as_user(&host, (0, 0), &[&["reload"][..], &socket].concat());
    host.wait_until("it is rejected", || ask(0, &["status", "--json"]).contains("pw-9d1"));
    for words in [&["status"][..], &["status", "--json"], &["events"], &["events", "--json"]] {
        let seen = ask(65534, words);
        assert!(seen.contains("not shown [C208]"), "{words:?}: {seen}");
        assert!(!seen.contains("pw-9d1"), "{words:?}: {seen}");
    }
}

/// Opens event connections of one user of the group.
fn followers(host: &Host, uid: u32, number: usize) -> Vec<UnixStream> {
    let path = host.path("run/socket");
    let connecting = std::thread::spawn(move || {
        rustix::thread::set_thread_groups(&[]).expect("no groups");
        rustix::thread::set_thread_gid(Gid::from_raw(GROUP)).expect("a group");
        rustix::thread::set_thread_uid(Uid::from_raw(uid)).expect("a user");
        let ask = serde_json::json!({ "verb": "events", "follow": true, "from": null });
        let order = serde_json::json!({ "protocol": 1, "request": ask });
        let connect = |_| {
            let mut socket = UnixStream::connect(&path).expect("connects");
            // A rejected connection may be closed already.
            let _written = writeln!(socket, "{order}");
            socket
        };
        (0..number).map(connect).collect()
    });
    connecting.join().expect("no panic")
}

/// Counts the rejected connections by their first line; the others stream events.
fn turned_away(followers: &[UnixStream]) -> usize {
    let is_turned_away = |socket: &&UnixStream| {
        socket.set_read_timeout(Some(LIMIT)).expect("set");
        let mut line = String::new();
        BufReader::new(*socket).read_line(&mut line).expect("a line");
        assert!(!["refused", "denied"].iter().any(|no| line.contains(no)), "{line}");
        line.contains("too many connections")
    };
    followers.iter().filter(is_turned_away).count()
}

/// S-12: an untrusted user gets 64 connections, and the 65th is rejected; all users together leave an eighth for
/// root. Closed connections free their places. Needs root.
#[test]
fn a_group_leaves_room_for_root() {
    assert!(is_root(), "this test must run as root");
    let maximum = getrlimit(Resource::Nofile).maximum;
    // A quarter of the descriptors, 256, serves connections: those of four users.
    setrlimit(Resource::Nofile, Rlimit { current: Some(1024), maximum }).expect("narrowed");
    let host = Host::with(GRAPH);
    let _daemon = run_with_group(&host);
    let status = ["status", "--socket", "$DIR/run/socket"];
    host.wait_until("it rests", || as_user(&host, (0, 0), &status).code == 0);
    let mut all = followers(&host, 65_530, 65);
    assert_eq!(turned_away(&all), 1, "the 65th");
    as_user(&host, (65_530, GROUP), &status).exits(1).says("too many connections");
    as_user(&host, (65_531, GROUP), &status).exits(0);
    for uid in 65_531..=65_533 {
        let more = followers(&host, uid, 64);
        assert_eq!(turned_away(&more), 0, "{uid}");
        all.extend(more);
    }
    as_user(&host, (65_534, GROUP), &status).exits(1).says("too many connections");
    as_user(&host, (0, 0), &status).exits(0).prints("besieged: converged");
    drop(all);
    host.wait_until("there is room", || as_user(&host, (65_530, GROUP), &status).code == 0);
}

/// In a directory open to all, only sockets of root and of the own user are trusted. Needs root.
#[test]
fn only_trusted_listeners_are_used() {
    const OWN: u32 = 64321;
    const THIEF: u32 = 64322;
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    let directory = format!("/tmp/steadfast-{OWN}");
    let directory = Path::new(&directory);
    let _leftover = std::fs::remove_dir_all(directory);
    std::fs::create_dir(directory).expect("made");
    chown(directory, Some(THIEF), Some(THIEF)).expect("given away");
    let path = directory.join("control.socket");
    // The kernel records the owner of a socket when it begins to listen.
    let listening = std::thread::spawn(move || {
        rustix::thread::set_thread_uid(Uid::from_raw(THIEF)).expect("a user");
        let listener = UnixListener::bind(&path).expect("bound");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("set");
        listener
    });
    let listener = listening.join().expect("no panic");
    // A directory of another user is skipped.
    let elsewhere = as_user(&host, (OWN, OWN), &["status"]);
    chown(directory, Some(OWN), Some(OWN)).expect("given away");
    let answer = as_user(&host, (OWN, OWN), &["status"]);
    std::fs::remove_dir_all(directory).expect("removed");
    elsewhere.exits(69).says("no daemon listens at /.local/state/steadfast/control.socket");
    answer.exits(77).says("the socket /tmp/steadfast-64321/control.socket belongs to user 64322");
    drop(listener);
}

/// S-12: with ten thousand idle connections and a limit of a thousand files, the daemon goes on working and soon
/// answers again. Needs root.
#[test]
fn a_siege_moves_nothing() {
    const SIEGE: usize = 10_000;
    const ROOM: u64 = 11_000;
    assert!(is_root(), "this test must run as root");
    let most = getrlimit(Resource::Nofile).maximum.map(|most| most.max(ROOM));
    let may_open =
        |files| setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: most });
    let host = Host::with(GRAPH);
    may_open(1024).expect("narrowed");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    host.wait_until("it listens", || host.exists("state/control.socket"));
    may_open(ROOM).expect("widened");
    let mut idle = Vec::new();
    for n in 0..SIEGE {
        idle.push(UnixStream::connect(host.path("state/control.socket")).expect("connects"));
        if n % (SIEGE / 5) == 0 {
            host.write("a", "edited");
            host.wait_until("it is put back", || host.read("a") == "x");
        }
    }
    assert_eq!(idle.len(), SIEGE);
    host.remove("a");
    host.wait_until("it is made again", || host.exists("a") && host.read("a") == "x");
    assert_eq!(daemon.count("failed"), 0);
    host.wait_until("it answers", || {
        let mut command = host.bare(&["status"]);
        command.arg("--state-dir").arg(host.path("state"));
        // Converged or contended: the test has made many edits.
        String::from_utf8_lossy(&command.output().expect("ran").stdout).starts_with("besieged: ")
    });
    drop(idle);
}

/// L7: a socket group does not open a new state directory that contains the socket. Needs root.
#[test]
fn a_socket_group_leaves_a_new_state_directory_closed() {
    assert!(is_root(), "this test must run as root");
    let host = Host::with(GRAPH);
    let daemon = host.run(&["--socket-group", "64123"]);
    daemon.wait_for("control");
    daemon.wait_for("converged");
    assert_eq!(host.mode("state"), 0o700);
    host.ask_daemon(&["status"]).exits(0);
}

/// L4: a reply has at most a thousand rows and gives the total number.
#[test]
fn a_list_is_bounded() {
    let resources: Vec<String> = (0..1200).map(|n| format!("{{name: n{n}}}")).collect();
    let host = Host::with(&format!("graph: g\nresources: {{noop: [{}]}}\n", resources.join(", ")));
    let daemon = host.run(&["--socket", "$DIR/run/socket"]);
    daemon.wait_for("converged");
    host.wait_until("it listens", || host.exists("run/socket"));
    let ask = |ask: serde_json::Value| {
        let mut socket = UnixStream::connect(host.path("run/socket")).expect("connects");
        writeln!(socket, "{}", serde_json::json!({ "protocol": 1, "request": ask })).expect("sent");
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line).expect("an answer");
        line
    };
    let all = ask(serde_json::json!(
        { "verb": "list", "filter": "", "order": "name", "from": 0, "limit": 999_999_999 }
    ));
    assert_eq!(all.matches("noop[n").count(), 1000, "{}", all.len());
    assert!(all.contains("\"total\":1200"), "the number of all is told");
    let names = ask(serde_json::json!({ "verb": "names", "prefix": "", "limit": 999_999_999 }));
    assert_eq!(names.matches("noop[n").count(), 1000);
}

/// Returns the milliseconds since the boot, with all suspends.
fn since_boot() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// R9: a request of a client that gave up before the daemon read the request is dropped. The next request of a waiting
/// client is carried out.
#[test]
fn a_request_of_a_client_that_gave_up_is_dropped() {
    let host = Host::with("graph: g\nresources: {noop: [{name: n}]}\n");
    let daemon = host.run(&[]);
    daemon.wait_for("converged");
    daemon.signal(nix::sys::signal::Signal::SIGSTOP);
    let mut client = UnixStream::connect(host.path("state/control.socket")).expect("connects");
    let ask = serde_json::json!({ "verb": "pause", "seconds": 3600, "reason": "late" });
    // As if the client had waited for five seconds.
    let order =
        serde_json::json!({ "protocol": 1, "request": ask, "sent_at": since_boot() - 5000 });
    writeln!(client, "{order}").expect("sent");
    drop(client);
    daemon.signal(nix::sys::signal::Signal::SIGCONT);
    let line = daemon.wait_for("request").message;
    assert!(line.contains("pause") && line.contains("dropped"), "{line}");
    host.ask_daemon(&["status"]).exits(0);
    host.ask_daemon(&["pause", "--for", "1h"]).exits(0);
    let status = host.ask_daemon(&["status"]);
    assert!(status.stdout.contains("paused"), "{status}");
}

/// The kernel takes no socket path of more than 107 bytes: the client says so and names the option.
#[test]
fn a_long_socket_path_is_explained() {
    let host = Host::with(GRAPH);
    let long = format!("$DIR/{}/control.socket", "x".repeat(110));
    host.finish(host.bare(&["status", "--socket", &long]))
        .exits(69)
        .says("the path of its socket exceeds 107 bytes")
        .says("--socket");
}
