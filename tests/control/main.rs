//! The control socket: server and client, with a test's request handler and misbehaving clients (S-12).
//!
//! Nothing here starts a daemon. Reading order: this file (requests and limits), then `places` (paths and rights).

mod places;

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steadfast::api::{Data, PROTOCOL, Principal, Reply, ReplySink, Request};
use steadfast::control::{
    AcceptFailing, Address, BindError, Client, Limits, RequestHandler, Server, Unanswered,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The heartbeat interval of a server's loop and its callback, which does nothing here.
const TURNS: (Duration, fn()) = (Duration::from_secs(10), || {});

/// A request handler that echoes `status`, streams endlessly on `events`, and knows no resource.
struct Echo;

impl RequestHandler for Echo {
    fn answer<'a>(
        &'a self,
        ask: Request,
        _caller: Principal,
        replies: &'a mut dyn ReplySink,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            match ask {
                Request::Status { limit } => {
                    replies.send_data(lines(&limit.to_string())).await;
                }
                Request::Events { .. } => {
                    let big = "x".repeat(10_000);
                    while replies.send_data(vec![big.clone()]).await {}
                }
                Request::Show { resource } => {
                    replies.send(&Reply::Unknown(vec![resource])).await;
                }
                Request::Workers => std::future::pending().await,
                _ => {
                    replies.send(&Reply::Unavailable("not now".to_owned())).await;
                }
            }
        })
    }
}

struct Listening {
    directory: TempDir,
    address: Address,
    stopping: CancellationToken,
    served: tokio::task::JoinHandle<Result<(), AcceptFailing>>,
}

impl Listening {
    async fn with(limits: Limits) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let address = Address::at(directory.path().join("run/control.socket"));
        let server = Server::bind(address.clone(), None, limits).await.expect("listens");
        let stopping = CancellationToken::new();
        let task = tokio::spawn(server.serve(Arc::new(Echo), stopping.clone(), TURNS));
        Self { directory, address, stopping, served: task }
    }

    fn path(&self) -> PathBuf {
        self.address.path().to_owned()
    }

    async fn status(&self, limit: usize) -> Result<Data, Unanswered> {
        let mut client = Client::ask(&self.address, &Request::Status { limit }).await?;
        let value = client.next(Some(LONG)).await?.expect("an answer");
        assert_eq!(client.next(Some(LONG)).await?, None);
        Ok(value)
    }

    /// Sends these bytes and returns everything that the server sends until it closes the connection.
    async fn raw(&self, bytes: Vec<u8>, end: bool) -> String {
        let path = self.path();
        let answered = tokio::task::spawn_blocking(move || {
            let mut stream = UnixStream::connect(path).expect("connects");
            let _cut = stream.write_all(&bytes);
            if end {
                stream.shutdown(std::net::Shutdown::Write).expect("ended");
            }
            stream.set_read_timeout(Some(LONG)).expect("set");
            let mut answer = String::new();
            let _cut = stream.read_to_string(&mut answer);
            answer
        });
        answered.await.expect("no panic")
    }
}

/// Returns the data that the handler of these tests answers `status` with.
fn lines(line: &str) -> Data {
    Data::Lines(vec![line.to_owned()])
}

const LONG: Duration = Duration::from_secs(30);

fn short() -> Limits {
    Limits {
        patience: Duration::from_millis(200),
        write: Duration::from_millis(200),
        ..Limits::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_comes_back_whole() {
    let listening = Listening::with(Limits::default()).await;
    assert_eq!(listening.status(7).await.expect("answered"), lines("7"));
    let shown = Request::Show { resource: "file[a]".to_owned() };
    let mut client = Client::ask(&listening.address, &shown).await.expect("asked");
    let unknown = client.next(Some(LONG)).await.unwrap_err();
    assert_eq!(unknown.to_string(), "no such resource: file[a]");
    let mut client = Client::ask(&listening.address, &Request::Resume { resources: Vec::new() })
        .await
        .expect("asked");
    assert!(matches!(client.next(Some(LONG)).await, Err(Unanswered::Unavailable(_))));
}

/// S-12: the socket has a path in a private directory, and only its user may connect.
#[tokio::test(flavor = "multi_thread")]
async fn only_its_user_may_connect() {
    let listening = Listening::with(Limits::default()).await;
    let found = std::fs::symlink_metadata(listening.path()).expect("there");
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    let names: Vec<_> = std::fs::read_dir(listening.path().parent().expect("a directory"))
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    let mut names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
    names.sort();
    assert_eq!(names, [".control.socket.lock", "control.socket"], "nothing else is left there");
}

/// S-12: invalid requests (garbage, half lines, too long, empty, wrong protocol, unknown verb) are each answered with
/// a message and disturb no other client.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_rejected_with_a_message() {
    let listening = Listening::with(short()).await;
    let long = vec![b'x'; 70_000];
    let length = [&u32::MAX.to_be_bytes()[..], b"{}\n"].concat();
    let newer = format!("{{\"protocol\":{},\"request\":{{\"verb\":\"hop\"}}}}\n", PROTOCOL + 1);
    let unknown = format!("{{\"protocol\":{PROTOCOL},\"request\":{{\"verb\":\"hop\"}}}}\n");
    let surplus = format!(
        "{{\"protocol\":{PROTOCOL},\"request\":{{\"verb\":\"status\",\"limit\":1,\"x\":1}}}}\n"
    );
    for (bytes, end, words) in [
        (b"\x00\xff\n".to_vec(), false, "invalid request"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), false, "invalid request"),
        (b"{\"protocol\":1".to_vec(), true, "in the middle of a line"),
        (b"{\"protocol\":1".to_vec(), false, "no request within"),
        (Vec::new(), false, "no request within"),
        (long, false, "at most 65536 bytes"),
        (length, false, "invalid request"),
        (newer.into_bytes(), false, "use the same release"),
        (b"{\"protocol\":0,\"request\":null}\n".to_vec(), false, "use the same release"),
        (unknown.into_bytes(), false, "unknown variant `hop`"),
        (surplus.into_bytes(), false, "unknown field `x`"),
        (b"[[[[[[[[[[[[[[[[".repeat(100), true, "in the middle of a line"),
    ] {
        let answer = listening.raw(bytes.clone(), end).await;
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
        assert!(answer.contains("refused") && answer.contains(words), "{shown:?}: {answer}");
        assert_eq!(listening.status(1).await.expect("unmoved"), lines("1"));
    }
    assert_eq!(listening.raw(Vec::new(), true).await, "", "who says nothing is told nothing");
}

/// S-12: a client that sends byte by byte has the same time limit as others.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_sender_is_cut_off() {
    let listening = Listening::with(short()).await;
    let path = listening.path();
    let began = Instant::now();
    let sent = tokio::task::spawn_blocking(move || {
        let mut stream = UnixStream::connect(path).expect("connects");
        for _ in 0..1000 {
            if stream.write_all(b"{").is_err() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    });
    assert!(sent.await.expect("no panic"), "it was cut off");
    assert!(began.elapsed() < Duration::from_secs(15));
}

/// Returns true if the server has rejected the connection for lack of a place.
fn is_turned_away(mut idle: UnixStream) -> bool {
    idle.set_read_timeout(Some(LONG)).expect("set");
    let mut answer = String::new();
    let _cut = idle.read_to_string(&mut answer);
    answer.contains("too many connections")
}

/// S-12: any number of idle connections occupy only the limited places, and these are soon free again.
#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_bounded() {
    let limits = Limits { clients: 64, patience: Duration::from_millis(500), ..short() };
    let listening = Listening::with(limits).await;
    let mut was_full = false;
    for _ in 0..10 {
        let idle: Vec<_> = (0..100).map(|_| UnixStream::connect(listening.path())).collect();
        assert!(idle.iter().filter(|one| one.is_ok()).count() >= 64);
        let limit = Instant::now() + LONG;
        loop {
            match listening.status(3).await {
                Ok(_) => break,
                Err(Unanswered::Unavailable(why)) => {
                    assert!(why.contains("too many connections"), "{why}");
                    was_full = true;
                }
                Err(other) => assert!(matches!(other, Unanswered::Broken(_)), "{other}"),
            }
            assert!(Instant::now() < limit, "no place becomes free");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The rejected connection is either the asking or an idle one, by chance.
        was_full |= tokio::task::block_in_place(|| idle.into_iter().flatten().any(is_turned_away));
    }
    assert!(was_full, "a hundred were too many");
}

/// S-12: a client that does not read an endless reply is dropped; a reading client gets everything.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_dropped() {
    let listening = Listening::with(Limits { clients: 1, ..short() }).await;
    let (resources, from, since, limit) = (Vec::new(), None, None, None);
    let events = Request::Events { follow: true, resources, from, since, limit, debug: false };
    let mut reads = Client::ask(&listening.address, &events).await.expect("asked");
    for _ in 0..100 {
        assert!(reads.next(Some(LONG)).await.expect("goes on").is_some());
    }
    drop(reads);
    let _stalls = Client::ask(&listening.address, &events).await.expect("asked");
    let limit = Instant::now() + LONG;
    while listening.status(1).await.is_err() {
        assert!(Instant::now() < limit, "its place is never free again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A client that disconnects while nothing is sent frees its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_frees_its_place() {
    let listening = Listening::with(Limits { clients: 1, ..Limits::default() }).await;
    let waits = Client::ask(&listening.address, &Request::Workers).await.expect("asked");
    drop(waits);
    let limit = Instant::now() + LONG;
    while listening.status(1).await.is_err() {
        assert!(Instant::now() < limit, "its place is never free again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The socket of a dead daemon is replaced; the socket of a living one is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_living_daemon_keeps_its_place() {
    let listening = Listening::with(Limits::default()).await;
    let address = listening.address.clone();
    let second = Server::bind(address.clone(), None, Limits::default()).await;
    assert!(matches!(second, Err(BindError::Alive(_))), "{second:?}");
    listening.status(1).await.expect("unmoved");
    listening.stopping.cancel();
    listening.served.await.expect("ended").expect("it lets in who waits");
    assert!(!address.path().exists(), "it is taken away at the end");
    let gone = Client::ask(&address, &Request::Workers).await.unwrap_err();
    assert!(matches!(gone, Unanswered::NoDaemon(_)), "{gone}");

    // A leftover socket, as after `kill -9`.
    drop(std::os::unix::net::UnixListener::bind(address.path()).expect("bound"));
    assert!(address.path().exists());
    let third = Server::bind(address.clone(), None, Limits::default()).await.expect("replaced");
    drop(third);
    drop(listening.directory);
}

/// S-12: a directory in which others could replace the socket is rejected.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_others_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = directory.path().join("open");
    std::fs::create_dir(&open).expect("made");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).expect("set");
    let address = Address::at(open.join("control.socket"));
    let refused = Server::bind(address, None, Limits::default()).await;
    assert!(matches!(refused, Err(BindError::Unsafe(_))), "{refused:?}");
    assert!(
        std::fs::metadata(&open).expect("there").is_dir()
            && open.metadata().expect("there").uid() < u32::MAX
    );
}
