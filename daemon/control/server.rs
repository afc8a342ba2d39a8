//! The daemon's end: takes connections, a bounded number of them, and passes on what is asked.

use super::address::{Address, BindError, Place};
use super::framing;
use super::framing::NoLine;
use super::peer::Peer;
use super::protocol::{Envelope, PROTOCOL, Reply, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
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

/// How soon it is tried again to let somebody in where the system did not.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// The interval at which the server checks that its socket is still there.
const LOOK: Duration = Duration::from_secs(2);

/// Whoever knows the answers.
pub trait RequestHandler: Send + Sync {
    /// Answers one request. The answer is complete when this returns.
    fn answer<'a>(
        &'a self,
        ask: Request,
        peer: Peer,
        replies: &'a mut Replies,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// What a server takes upon itself.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many connections in all.
    pub clients: usize,
    /// So many of one user who is not trusted.
    pub of_one: usize,
    /// So many bytes for a request.
    pub request: usize,
    /// So long for a request to come.
    pub patience: Duration,
    /// So long for a line of the answer to be taken.
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
    /// No more connections than a quarter of the files that this process may have open: the rest is for its work.
    fn within(self, files: u64) -> Self {
        let most = usize::try_from(files / 4).unwrap_or(usize::MAX).max(8);
        Self { clients: self.clients.min(most), ..self }
    }
}

/// How many files this process may have open.
fn open_files() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// A socket that is listened at.
#[derive(Debug)]
pub struct Server {
    place: Place,
    address: Address,
    group: Option<u32>,
    limits: Limits,
    clients: Arc<Clients>,
}

/// How many are connected, by user.
#[derive(Debug, Default)]
struct Clients(Mutex<HashMap<u32, usize>>);

impl Clients {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more, if there is any. Of the places a few are kept for those who are trusted.
    fn admit(self: &Arc<Self>, peer: Peer, limits: &Limits) -> Option<Admitted> {
        let mut all = self.lock();
        let total: usize = all.values().sum();
        let own = all.get(&peer.uid).copied().unwrap_or_default();
        let free = if peer.is_trusted() {
            total < limits.clients + limits.clients / 8
        } else {
            total < limits.clients && own < limits.of_one
        };
        if !free {
            return None;
        }
        all.insert(peer.uid, own + 1);
        Some(Admitted { clients: Arc::clone(self), uid: peer.uid })
    }
}

/// A place, as long as it is held.
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

/// Where the lines of an answer go.
#[derive(Debug)]
pub struct Replies {
    to: OwnedWriteHalf,
    write: Duration,
    gone: bool,
}

impl Replies {
    /// Sends one; false when nobody is there to take it.
    pub async fn send(&mut self, reply: &Reply) -> bool {
        let Ok(line) = serde_json::to_vec(reply) else { return false };
        if !self.gone && framing::write(&mut self.to, line, self.write).await.is_err() {
            self.gone = true;
        }
        !self.gone
    }

    /// The same for lines that are made already, each with its end.
    pub async fn lines(&mut self, lines: &str) -> bool {
        let written = framing::write_all(&mut self.to, lines.as_bytes(), self.write);
        if !self.gone && !lines.is_empty() && written.await.is_err() {
            self.gone = true;
        }
        !self.gone
    }

    /// The same with data of any sort.
    pub async fn data(&mut self, data: &impl serde::Serialize) -> bool {
        match serde_json::to_value(data) {
            Ok(value) => self.send(&Reply::Data(value)).await,
            Err(_) => false,
        }
    }
}

impl Server {
    /// Listens, for the daemon's user alone, or also for a group, whose members may read.
    pub async fn bind(
        address: Address,
        group: Option<u32>,
        limits: Limits,
    ) -> Result<Self, BindError> {
        let place = address.listen(group).await?;
        let limits = limits.within(open_files());
        Ok(Self { place, address, group, limits, clients: Arc::default() })
    }

    /// Takes connections until it is stopped; those that are being answered end then. Its loop says so often that it turns; where somebody
    /// waits for as long and is not let in, it fails.
    pub async fn serve(
        mut self,
        desk: Arc<dyn RequestHandler>,
        stopping: CancellationToken,
        (every, turns): (Duration, impl Fn()),
    ) -> Result<(), Deaf> {
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
                    #[cfg(debug_assertions)]
                    suffer(&mut refuses).await;
                    let before = std::mem::replace(&mut is_waited_for, self.is_waited_for());
                    // Where the system lets nobody in, another worker would not either.
                    if before && is_waited_for && refuses.until.is_none() {
                        self.address.leave(&self.place);
                        return Err(Deaf(every));
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
                            // An answer that is under way may still be finished.
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

    /// Makes the socket again if it was removed. `loss` is the reason that was logged last.
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

    /// Whether somebody waits to be let in.
    fn is_waited_for(&self) -> bool {
        let mut ready = [PollFd::new(&self.place.listener, PollFlags::IN)];
        // Where that cannot be asked, nothing is known.
        poll(&mut ready, Some(&Timespec::default())).is_ok_and(|count| count > 0)
    }
}

/// Nobody is let in any more.
#[derive(Debug, Error)]
#[error("a connection has waited at the socket for {0:?} without being accepted")]
pub struct Deaf(Duration);

/// The system lets nobody in: mostly no descriptor is free, and the next moment may be better.
#[derive(Debug, Default)]
struct Refuses {
    /// When it is tried again; none where the last one was let in.
    until: Option<Instant>,
    #[cfg(debug_assertions)]
    for_ever: bool,
}

impl Refuses {
    /// Until it may be tried again.
    async fn over(&self) {
        #[cfg(debug_assertions)]
        if self.for_ever {
            std::future::pending::<()>().await;
        }
        if let Some(until) = self.until {
            tokio::time::sleep_until(until).await;
        }
    }

    fn one(&mut self, error: &std::io::Error) {
        if self.until.is_none() {
            tracing::error!(event = "deaf", %error, "no connections can be accepted at the socket; retrying");
        }
        self.until = Some(Instant::now() + TRY_AGAIN);
    }

    fn none(&mut self) {
        self.until = None;
    }
}

/// The loop stands still, or accepts nobody any more, where a test wants it to.
#[cfg(debug_assertions)]
async fn suffer(refuses: &mut Refuses) {
    match crate::fault_injection::take("accept") {
        None => {}
        Some(crate::fault_injection::Fault::Hang) => std::future::pending().await,
        Some(_) => refuses.for_ever = true,
    }
}

/// How long an answer that is under way may take after the end. What is written already is the caller's to read at leisure.
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
    let peer = Peer { uid: credentials.uid() };
    let (read, write) = stream.into_split();
    let mut replies = Replies { to: write, write: limits.write, gone: false };
    let Some(_admitted) = clients.admit(peer, limits) else {
        replies.write = Duration::from_secs(1);
        let many = "too many connections; try again in a few seconds".to_owned();
        replies.send(&Reply::Unavailable(many)).await;
        return;
    };
    let mut read = BufReader::new(read);
    match request(&mut read, limits).await {
        Ok(ask) if peer.may(&ask) => {
            // A request that changes something is carried out, also when the client has gone by now.
            let changes = ask.changes();
            let left = tokio::select! {
                // In this order: what was asked is begun, also where who asked has gone by now.
                biased;
                () = desk.answer(ask, peer, &mut replies) => None,
                // Who follows may leave when nothing happens.
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
            let denied = format!("user {} may only query; root may make changes", peer.uid);
            replies.send(&Reply::Denied(denied)).await;
        }
        Err(Some(refused)) => {
            replies.send(&Reply::Refused(refused)).await;
        }
        Err(None) => {}
    }
}

/// What ends an answer early.
enum Left {
    Gone,
    SaidMore,
}

/// Until the other side has ended, or says what it may not.
async fn left(read: &mut BufReader<OwnedReadHalf>) -> Left {
    match read.fill_buf().await {
        Ok([_, ..]) => Left::SaidMore,
        Ok([]) | Err(_) => Left::Gone,
    }
}

/// What is asked; or in words what is wrong with it; or nothing at all.
async fn request(
    read: &mut BufReader<OwnedReadHalf>,
    limits: &Limits,
) -> Result<Request, Option<String>> {
    let line = framing::read(read, limits.request, Some(limits.patience)).await;
    let line = line.map_err(|why| match why {
        NoLine::End | NoLine::Failed(_) => None,
        NoLine::Half => Some("the request ends in the middle of a line".to_owned()),
        NoLine::Long => Some(format!("a request has at most {} bytes", limits.request)),
        NoLine::Late => Some(format!("no request within {} seconds", limits.patience.as_secs())),
    })?;
    let request: Envelope =
        serde_json::from_slice(&line).map_err(|why| Some(format!("invalid request: {why}")))?;
    if request.protocol != PROTOCOL {
        let theirs = request.protocol;
        return Err(Some(format!(
            "the daemon speaks protocol {PROTOCOL}, the client {theirs}: use the same release"
        )));
    }
    serde_json::from_value(request.ask).map_err(|why| Some(format!("unknown request: {why}")))
}
