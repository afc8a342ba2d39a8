//! The path of the socket, its replacement, and the rights of clients (S-12).

use crate::{Echo, LONG, short};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Gid, Uid, geteuid};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use steadfast::api::{Order, PROTOCOL, Request};
use steadfast::control::{Address, BindError, Client, Limits, Server};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run/control.socket");
    std::fs::create_dir(directory.path().join("run")).expect("made");
    (directory, path)
}

async fn bind(path: &Path, group: Option<u32>) -> Result<Server, BindError> {
    Server::bind(Address::at(path.to_owned()), group, Limits::default()).await
}

/// A file that is no socket is never replaced, even if its path is given explicitly.
#[tokio::test]
async fn a_file_is_not_replaced() {
    let (_directory, path) = place();
    std::fs::write(&path, "somebody's").expect("written");
    let refused = bind(&path, None).await;
    assert!(matches!(refused, Err(BindError::Other(_))), "{refused:?}");
    assert_eq!(std::fs::read(&path).expect("still there"), b"somebody's");
}

/// A daemon that is slow to accept connections counts as living.
#[tokio::test]
async fn a_busy_daemon_keeps_its_place() {
    let (_directory, path) = place();
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = || {
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .expect("a socket")
    };
    let name = SocketAddrUnix::new(&path).expect("a name");
    let busy = socket();
    rustix::net::bind(&busy, &name).expect("bound");
    rustix::net::listen(&busy, 1).expect("listens");
    let mut waiting = Vec::new();
    loop {
        let one = socket();
        match rustix::net::connect(&one, &name) {
            Ok(()) => waiting.push(one),
            Err(error) => {
                assert_eq!(error, rustix::io::Errno::AGAIN);
                break;
            }
        }
    }
    let inode = std::fs::metadata(&path).expect("there").ino();
    let refused = bind(&path, None).await;
    assert!(matches!(refused, Err(BindError::Alive(_))), "{refused:?}");
    assert_eq!(std::fs::metadata(&path).expect("there").ino(), inode);
}

/// Several servers start at once over a leftover socket: exactly one listens and stays reachable.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_start_at_once_one_listens() {
    for _ in 0..6 {
        let (_directory, path) = place();
        drop(UnixListener::bind(&path).expect("bound"));
        let starting: Vec<_> = (0..8)
            .map(|_| {
                let path = path.clone();
                tokio::spawn(async move { bind(&path, None).await })
            })
            .collect();
        let mut listening = Vec::new();
        for one in starting {
            match one.await.expect("no panic") {
                Ok(server) => listening.push(server),
                Err(why) => assert!(matches!(why, BindError::Alive(_)), "{why}"),
            }
        }
        assert_eq!(listening.len(), 1);
        let stopping = CancellationToken::new();
        let server = listening.remove(0);
        let serving = tokio::spawn(server.serve(Arc::new(Echo), stopping.clone(), crate::TURNS));
        let address = Address::at(path.clone());
        let mut client = Client::ask(&address, &Request::Status { limit: 1 }).await.expect("there");
        assert!(client.next(Some(LONG)).await.expect("answered").is_some());
        stopping.cancel();
        serving.await.expect("no panic").expect("it lets in who waits");
    }
}

/// A created directory, and the temporary name and the lock inside, are private.
#[tokio::test]
async fn a_directory_that_is_made_is_ours_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("new/control.socket");
    let server = bind(&path, None).await.expect("listens");
    let mode = |path: &Path| std::fs::symlink_metadata(path).expect("there").mode() & 0o777;
    assert_eq!(mode(path.parent().expect("a directory")), 0o700);
    let lock = path.with_file_name(".control.socket.lock");
    assert_eq!((mode(&path), mode(&lock)), (0o600, 0o600));
    drop(server);
}

/// F-1: the temporary name left by a kill is removed by the next server.
#[tokio::test]
async fn a_hidden_name_that_was_left_is_taken_away() {
    let directory = tempfile::tempdir().expect("a directory");
    let hidden = directory.path().join(".control.socket~");
    drop(UnixListener::bind(&hidden).expect("bound"));
    let server = bind(&directory.path().join("control.socket"), None).await.expect("listens");
    assert!(!hidden.exists());
    drop(server);
}

/// Connects as another user and sends a line; returns the first reply line, or none if the connection fails. Runs on
/// its own thread, since credentials are set per thread.
fn as_user(uid: u32, gid: u32, path: &Path, line: String) -> Option<String> {
    let path = path.to_owned();
    let asking = std::thread::spawn(move || {
        rustix::thread::set_thread_groups(&[]).expect("no groups");
        rustix::thread::set_thread_gid(Gid::from_raw(gid)).expect("a group");
        rustix::thread::set_thread_uid(Uid::from_raw(uid)).expect("a user");
        let mut stream = UnixStream::connect(path).ok()?;
        stream.write_all(line.as_bytes()).ok()?;
        // The handler of these tests answers `workers` only after the client has closed its side.
        if line.contains("\"workers\"") {
            stream.shutdown(std::net::Shutdown::Write).ok()?;
        }
        stream.set_read_timeout(Some(LONG)).expect("set");
        let mut answer = String::new();
        let _cut = BufReader::new(stream).read_line(&mut answer);
        Some(answer)
    });
    asking.join().expect("no panic")
}

/// Returns a request of each verb, with true for those that change something.
fn requests() -> Vec<(Request, bool)> {
    let resource = "file[a]".to_owned();
    let resources = vec![resource.clone()];
    let limit = 1;
    let list = Request::List { filter: String::new(), order: Order::State, from: 0, limit };
    let mut all = vec![
        (Request::Status { limit }, false),
        (Request::Show { resource: resource.clone() }, false),
        (Request::Names { prefix: String::new(), limit }, false),
        (list, false),
        (Request::Why { resource: resource.clone() }, false),
        (Request::lately(None, usize::MAX), false),
        (Request::Workers, false),
        (Request::Diff { resources: resources.clone(), resume: true }, true),
        (Request::Protect { resources: resources.clone() }, true),
        (Request::Unprotect { resources: resources.clone() }, true),
        (Request::Forget { resources: resources.clone() }, true),
        (Request::StateImport, true),
        (Request::StateRepair, true),
        (Request::Undo { resource, to: None, seconds: 1, partial: false }, true),
        (
            Request::Pause {
                seconds: None,
                reason: String::new(),
                resources: Vec::new(),
                drain: false,
            },
            true,
        ),
        (Request::Resume { resources: Vec::new() }, true),
        (Request::Reload { allow_empty: false, yes: false }, true),
        (Request::Retry { resources: resources.clone(), persist: false }, true),
        (Request::Select { resources: resources.clone(), limit: 1 }, false),
        (Request::Check { resources }, true),
        (Request::Stop { now: true }, true),
        (Request::LogLevel { filter: "trace".to_owned() }, true),
    ];
    if let Ok(fault) = serde_json::from_value(json!({"verb": "fault", "worker": "", "how": ""})) {
        all.push((fault, true));
    }
    all
}

/// S-12: every verb of the protocol is covered by the tests of rights.
#[test]
fn each_verb_has_a_row() {
    let unknown = serde_json::from_value::<Request>(json!({"verb": "?"})).expect_err("no verb");
    let said = unknown.to_string();
    let (_, listed) = said.split_once("expected one of ").expect("all verbs");
    let mut verbs: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
    let rows: Vec<serde_json::Value> =
        requests().iter().map(|(ask, _)| serde_json::to_value(ask).expect("JSON")).collect();
    let mut rows: Vec<&str> =
        rows.iter().map(|row| row["verb"].as_str().expect("a verb")).collect();
    verbs.sort_unstable();
    rows.sort_unstable();
    assert!(verbs.len() > 15 && verbs.contains(&"undo"), "{said}");
    assert_eq!(rows, verbs);
}

/// S-12: a member of the socket's group may use every reading verb and no changing one; another user cannot connect.
/// Needs root.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_may_read_and_nothing_else() {
    const NOBODY: u32 = 65534;
    const GROUP: u32 = 64123;
    assert!(geteuid().is_root(), "this test must run as root");
    let directory = tempfile::tempdir().expect("a directory");
    let pass = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), pass).expect("set");
    let path = directory.path().join("new/control.socket");
    let address = Address::at(path.clone());
    let server = Server::bind(address, Some(GROUP), short()).await.expect("listens");
    let stopping = CancellationToken::new();
    let serving = tokio::spawn(server.serve(Arc::new(Echo), stopping.clone(), crate::TURNS));
    let found = std::fs::symlink_metadata(&path).expect("there");
    assert_eq!((found.mode() & 0o777, found.uid(), found.gid()), (0o660, 0, GROUP));
    for (ask, changes) in requests() {
        assert_eq!(ask.changes(), changes, "{ask:?}");
        let ask = serde_json::to_string(&ask).expect("JSON");
        let line = format!("{{\"protocol\":{PROTOCOL},\"request\":{ask}}}\n");
        let told = |uid, gid| {
            let (path, line) = (path.clone(), line.clone());
            tokio::task::spawn_blocking(move || as_user(uid, gid, &path, line))
        };
        let member = told(NOBODY, GROUP).await.expect("no panic").expect("connects");
        assert_eq!(member.contains("\"denied\""), changes, "{ask}: {member}");
        assert_eq!(told(NOBODY, NOBODY).await.expect("no panic"), None, "{ask}: a stranger");
        let root = told(0, 0).await.expect("no panic").expect("connects");
        assert!(!root.contains("denied"), "{ask}: {root}");
    }
    stopping.cancel();
    serving.await.expect("no panic").expect("it lets in who waits");
}

/// A connection carries one request: further bytes are rejected and end the reply.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_may_follow_a_request() {
    let (_directory, path) = place();
    let server = bind(&path, None).await.expect("listens");
    let stopping = CancellationToken::new();
    let serving = tokio::spawn(server.serve(Arc::new(Echo), stopping.clone(), crate::TURNS));
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = UnixStream::connect(path).expect("connects");
        let report = format!("{{\"protocol\":{PROTOCOL},\"request\":{{\"verb\":\"workers\"}}}}\n");
        stream.write_all(report.as_bytes()).expect("sent");
        std::thread::sleep(Duration::from_millis(50));
        stream.write_all(b"more").expect("sent");
        stream.set_read_timeout(Some(LONG)).expect("set");
        let mut answer = String::new();
        let _cut = stream.read_to_string(&mut answer);
        answer
    });
    assert!(answer.await.expect("no panic").contains("a connection carries one request only"));
    stopping.cancel();
    serving.await.expect("no panic").expect("it lets in who waits");
}
