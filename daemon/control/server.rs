//! The server side of the control socket: accepts a limited number of connections and passes requests to the handler.

use super::address::{Address, BindError, Place};
use super::framing;
use super::framing::{NoLine, milliseconds_since_boot};
use crate::api::{Delivered, PROTOCOL, Principal, Reply, ReplyLine, ReplySink, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Deserialize;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, SocketAddr};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// The pause after a failed accept.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// The interval at which the server checks that its socket still exists.
const LOOK: Duration = Duration::from_secs(2);

/// A component that answers requests.
pub trait RequestHandler: Send + Sync {
    /// Answers one request. The reply is complete when the future ends.
    fn answer<'a>(
        &'a self,
        ask: Request,
        caller: Principal,
        replies: &'a mut dyn ReplySink,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// The limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum number of connections.
    pub clients: usize,
    /// The maximum number of connections of one untrusted user.
    pub of_one: usize,
    /// The maximum size of a request in bytes.
    pub request: usize,
    /// The time limit for receiving a request.
    pub patience: Duration,
    /// The time limit for writing a line of a reply.
    pub write: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 2048,
            of_one: 64,
            request: 64 * 1024,
            patience: Duration::from_secs(5),
            write: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Limits the connections to a quarter of `files`, the number of files that the process may open.
    fn within(self, files: u64) -> Self {
        let most = usize::try_from(files / 4).unwrap_or(usize::MAX).max(8);
        Self { clients: self.clients.min(most), ..self }
    }
}

/// Returns the number of files that the process may open.
fn open_files() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// A server with a bound socket.
#[derive(Debug)]
pub struct Server {
    place: Place,
    address: Address,
    group: Option<u32>,
    limits: Limits,
    clients: Arc<Clients>,
}

/// The number of connections of each user.
#[derive(Debug, Default)]
struct Clients(Mutex<HashMap<u32, usize>>);

impl Clients {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection if a slot is free. Some slots are reserved for trusted users.
    fn admit(self: &Arc<Self>, caller: Principal, limits: &Limits) -> Option<Admitted> {
        let mut all = self.lock();
        let total: usize = all.values().sum();
        let own = all.get(&caller.uid()).copied().unwrap_or_default();
        let free = if caller.is_trusted() {
            total < limits.clients + limits.clients / 8
        } else {
            total < limits.clients && own < limits.of_one
        };
        if !free {
            return None;
        }
        all.insert(caller.uid(), own + 1);
        Some(Admitted { clients: Arc::clone(self), uid: caller.uid() })
    }
}

/// A slot of a connection; dropping the value frees the slot.
struct Admitted {
    clients: Arc<Clients>,
    uid: u32,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut all = self.clients.lock();
        if let Some(count) = all.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.uid);
            }
        }
    }
}

/// The connection that receives the lines of a reply.
#[derive(Debug)]
struct Connection {
    to: OwnedWriteHalf,
    write: Duration,
    gone: bool,
}

impl ReplySink for Connection {
    fn send<'a>(&'a mut self, reply: &'a Reply) -> Delivered<'a> {
        Box::pin(async move {
            let Ok(line) = serde_json::to_vec(&ReplyLine::new(reply)) else { return false };
            if !self.gone && framing::write(&mut self.to, line, self.write).await.is_err() {
                self.gone = true;
            }
            !self.gone
        })
    }

    fn send_lines<'a>(&'a mut self, lines: &'a str) -> Delivered<'a> {
        Box::pin(async move {
            let written = framing::write_all(&mut self.to, lines.as_bytes(), self.write);
            if !self.gone && !lines.is_empty() && written.await.is_err() {
                self.gone = true;
            }
            !self.gone
        })
    }
}

impl Connection {
    /// Returns true if the client has closed its connection, so that nobody waits for the reply.
    fn is_abandoned(&self) -> bool {
        let stream: &UnixStream = self.to.as_ref();
        let mut end = [PollFd::new(stream, PollFlags::empty())];
        let found = poll(&mut end, Some(&Timespec::default()));
        found.is_ok() && end[0].revents().contains(PollFlags::HUP)
    }
}

impl Server {
    /// Binds the socket for the daemon's user, and for the members of `group`, who may read.
    ///
    /// # Errors
    /// [`BindError`] if the socket cannot be bound.
    pub async fn bind(
        address: Address,
        group: Option<u32>,
        limits: Limits,
    ) -> Result<Self, BindError> {
        let place = address.listen(group).await?;
        let limits = limits.within(open_files());
        Ok(Self { place, address, group, limits, clients: Arc::default() })
    }

    /// Accepts connections until `stopping` is cancelled; open replies end then. The loop calls `turns` at the interval
    /// `every`.
    ///
    /// # Errors
    /// [`AcceptFailing`] if a client waits for longer than `every` while the system accepts no connection.
    pub async fn serve(
        mut self,
        desk: Arc<dyn RequestHandler>,
        stopping: CancellationToken,
        (every, turns): (Duration, impl Fn()),
    ) -> Result<(), AcceptFailing> {
        let tasks = tokio_util::task::TaskTracker::new();
        let mut beat = tokio::time::interval(every);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut is_waited_for, mut refuses) = (false, Refuses::default());
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut loss = None;
        loop {
            turns();
            let accepted = tokio::select! {
                biased;
                () = stopping.cancelled() => break,
                accepted = self.accept(&refuses) => accepted,
                _ = look.tick() => {
                    self.renew(&mut loss).await;
                    continue;
                }
                _ = beat.tick() => {
                    #[cfg(feature = "fault-injection")]
                    inject_fault(&mut refuses).await;
                    let before = std::mem::replace(&mut is_waited_for, self.is_waited_for());
                    // A restart does not help if the system refuses connections (`refuses.until` is set).
                    if before && is_waited_for && refuses.until.is_none() {
                        self.address.leave(&self.place);
                        return Err(AcceptFailing(every));
                    }
                    continue;
                }
            };
            match accepted {
                Ok((stream, _)) => {
                    is_waited_for = false;
                    refuses.none();
                    let (desk, limits) = (Arc::clone(&desk), self.limits);
                    let clients = Arc::clone(&self.clients);
                    let stopping = stopping.clone();
                    tasks.spawn(async move {
                        let answering = attend(stream, &*desk, &limits, &clients);
                        tokio::select! {
                            () = answering => {}
                            // An active reply gets a short time to finish.
                            () = late(stopping) => {}
                        }
                    });
                }
                Err(error) => refuses.one(&error),
            }
        }
        self.address.leave(&self.place);
        tasks.close();
        tasks.wait().await;
        Ok(())
    }

    /// Creates the socket again if it was removed. `loss` is the reason that was logged last.
    async fn renew(&mut self, loss: &mut Option<String>) {
        if !self.address.has_lost(&self.place) {
            return;
        }
        let path = self.address.path().display().to_string();
        match self.address.listen_again(&mut self.place, self.group).await {
            Ok(()) => {
                *loss = None;
                tracing::warn!(event = "control", "{path} was removed and is recreated");
            }
            Err(why) => {
                let why = why.to_string();
                if loss.as_ref() != Some(&why) {
                    tracing::error!(
                        event = "control",
                        "{path} was removed; commands cannot reach this daemon: {why}"
                    );
                    *loss = Some(why);
                }
            }
        }
    }

    async fn accept(&self, refuses: &Refuses) -> std::io::Result<(UnixStream, SocketAddr)> {
        refuses.over().await;
        self.place.listener.accept().await
    }

    /// Returns true if a client waits for its connection to be accepted.
    fn is_waited_for(&self) -> bool {
        let mut ready = [PollFd::new(&self.place.listener, PollFlags::IN)];
        // An error of poll counts as no client.
        poll(&mut ready, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }
}

/// An error of the server: it accepts no connections any more.
#[derive(Debug, Error)]
#[error("a connection has waited at the socket for {0:?} without being accepted")]
pub struct AcceptFailing(Duration);

/// The state after a failed accept. The usual cause is a lack of file descriptors, which may end soon.
#[derive(Debug, Default)]
struct Refuses {
    /// The time of the next attempt; `None` if the last accept succeeded.
    until: Option<Instant>,
    #[cfg(feature = "fault-injection")]
    for_ever: bool,
}

impl Refuses {
    /// Waits until the next attempt is due.
    async fn over(&self) {
        #[cfg(feature = "fault-injection")]
        if self.for_ever {
            std::future::pending::<()>().await;
        }
        if let Some(until) = self.until {
            tokio::time::sleep_until(until).await;
        }
    }

    fn one(&mut self, error: &std::io::Error) {
        if self.until.is_none() {
            tracing::error!(event = "accept_failed", %error, "no connections can be accepted at the socket; retrying");
        }
        self.until = Some(Instant::now() + TRY_AGAIN);
    }

    fn none(&mut self) {
        self.until = None;
    }
}

/// Carries out an injected fault: the loop hangs, or accepts no connection any more.
#[cfg(feature = "fault-injection")]
async fn inject_fault(refuses: &mut Refuses) {
    match crate::fault_injection::take("accept") {
        None => {}
        Some(crate::fault_injection::Fault::Hang) => std::future::pending().await,
        Some(_) => refuses.for_ever = true,
    }
}

/// The time that an active reply has after the stop. The client can still read lines that were written before.
const LATE: Duration = Duration::from_millis(20);

async fn late(stopping: CancellationToken) {
    stopping.cancelled().await;
    tokio::time::sleep(LATE).await;
}

async fn attend(
    stream: UnixStream,
    desk: &dyn RequestHandler,
    limits: &Limits,
    clients: &Arc<Clients>,
) {
    let Ok(credentials) = stream.peer_cred() else { return };
    let (uid, gid, pid) = (credentials.uid(), credentials.gid(), credentials.pid());
    let caller = Principal::Local { uid, gid, pid };
    let (read, write) = stream.into_split();
    let mut replies = Connection { to: write, write: limits.write, gone: false };
    let Some(_admitted) = clients.admit(caller, limits) else {
        replies.write = Duration::from_secs(1);
        let many = "too many connections; try again in a few seconds".to_owned();
        replies.send(&Reply::Unavailable(many)).await;
        return;
    };
    let mut read = BufReader::new(read);
    match request(&mut read, limits).await {
        Ok((ask, sent_at)) if caller.may(&ask) => {
            let changes = ask.changes();
            if !changes && replies.is_abandoned() {
                // Nobody waits for the reply: a flood of such requests must not delay others.
                return;
            }
            if changes && is_late(sent_at) && replies.is_abandoned() {
                let command = ask.command();
                let why = "its client has disconnected";
                tracing::info!(event = "request", "command {command:?} dropped: {why}");
                return;
            }
            // A request that was begun is carried out even if the client leaves.
            let left = tokio::select! {
                // The order matters: a client that leaves now does not stop the begin.
                biased;
                () = desk.answer(ask, caller, &mut replies) => None,
                // A client that only follows may leave at any time.
                left = left(&mut read), if !changes => Some(left),
            };
            match left {
                None => replies.send(&Reply::Done).await,
                Some(Left::Gone) => return,
                Some(Left::SaidMore) => {
                    let more = "a connection carries one request only".to_owned();
                    replies.send(&Reply::Refused(more)).await
                }
            };
        }
        Ok(_) => {
            let denied = format!("user {} may only query; root may make changes", caller.uid());
            replies.send(&Reply::Denied(denied)).await;
        }
        Err(Some(refused)) => {
            replies.send(&Reply::Refused(refused)).await;
        }
        Err(None) => {}
    }
}

/// The event that ends a reply early.
enum Left {
    Gone,
    SaidMore,
}

/// Waits until the other side closes the connection or sends more than one request.
async fn left(read: &mut BufReader<OwnedReadHalf>) -> Left {
    match read.fill_buf().await {
        Ok([_, ..]) => Left::SaidMore,
        Ok([]) | Err(_) => Left::Gone,
    }
}

/// The line of a request whose version is not checked yet. Another version may have other requests.
#[derive(Deserialize)]
struct Envelope {
    protocol: u32,
    request: serde_json::Value,
    #[serde(default)]
    sent_at: Option<u64>,
}

/// Reads the request of a connection. The error is a message for the client; `None` if nothing was sent.
async fn request(
    read: &mut BufReader<OwnedReadHalf>,
    limits: &Limits,
) -> Result<(Request, Option<u64>), Option<String>> {
    let line = framing::read(read, limits.request, Some(limits.patience)).await;
    let line = line.map_err(|why| match why {
        NoLine::End | NoLine::Failed(_) => None,
        NoLine::Half => Some("the request ends in the middle of a line".to_owned()),
        NoLine::Long => Some(format!("a request has at most {} bytes", limits.request)),
        NoLine::Late => Some(format!("no request within {} seconds", limits.patience.as_secs())),
    })?;
    let envelope: Envelope =
        serde_json::from_slice(&line).map_err(|why| Some(format!("invalid request: {why}")))?;
    if envelope.protocol != PROTOCOL {
        let theirs = envelope.protocol;
        return Err(Some(format!(
            "the daemon speaks protocol {PROTOCOL}, the client {theirs}: use the same release"
        )));
    }
    let sent_at = envelope.sent_at;
    let request = serde_json::from_value(envelope.request);
    request.map(|request| (request, sent_at)).map_err(|why| Some(format!("unknown request: {why}")))
}

/// Returns true if a request was sent so long ago that its client may have given up: the daemon was stopped, or hung.
/// A client that leaves at once has its request carried out.
fn is_late(sent_at: Option<u64>) -> bool {
    let now = milliseconds_since_boot();
    sent_at.is_some_and(|sent_at| sent_at + PATIENCE_OF_CLIENTS <= now)
}

/// The age in milliseconds at which a request of a client that is gone is dropped.
const PATIENCE_OF_CLIENTS: u64 = 1000;
