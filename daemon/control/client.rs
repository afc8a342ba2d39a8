//! The client side of the control socket.

use super::address::Address;
use super::framing;
use super::framing::{NoLine, milliseconds_since_boot};
use crate::api::{Data, PROTOCOL, Principal, Reply, ReplyLine, Request, RequestLine};
use serde::de::IgnoredAny;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

/// The longest line of a reply, in bytes.
const LONGEST: usize = 64 << 20;

/// An error of a request.
#[derive(Debug, Error)]
pub enum Unanswered {
    /// No process listens at the socket.
    #[error("no daemon listens at {}", .0.display())]
    NoDaemon(PathBuf),
    /// The socket may not be opened, or the caller may not make this request.
    #[error("{0}")]
    Denied(String),
    /// The daemon cannot carry out the request now.
    #[error("{0}")]
    Unavailable(String),
    /// The daemon refuses the request.
    #[error("{0}")]
    Refused(String),
    /// The graph or the settings are invalid.
    #[error("{0}")]
    Rejected(String),
    /// No resources have these names.
    #[error("{}", unknown(.0))]
    Unknown(Vec<String>),
    /// Several resources have a name that must be unique.
    #[error("{}", .0.join("; "))]
    Ambiguous(Vec<String>),
    /// The connection broke, or the reply was malformed.
    #[error("the daemon did not respond: {0}")]
    Broken(String),
}

/// Describes names and selectors that select nothing.
fn unknown(names: &[String]) -> String {
    match names {
        [only] => match only.strip_prefix("label:") {
            Some(label) => format!("no resource has the label {label}"),
            None => format!("no such resource: {only}"),
        },
        _ => format!("no such resource: {}", names.join(", ")),
    }
}

/// A connection on which a request was sent; it receives the replies.
#[derive(Debug)]
pub struct Client {
    read: BufReader<OwnedReadHalf>,
    listener: Option<i32>,
    /// The write half; it stays open because the daemon reads a closed half as the end of the client.
    _write: tokio::net::unix::OwnedWriteHalf,
}

impl Client {
    /// Connects to a daemon and sends a request.
    ///
    /// # Errors
    /// [`Unanswered`] if no daemon listens, the listening process is not trusted, or the connection breaks.
    pub async fn ask(address: &Address, ask: &Request) -> Result<Self, Unanswered> {
        let path = address.path();
        let stream = connect(path).await?;
        let found = stream.peer_cred().map_err(|why| Unanswered::Broken(why.to_string()))?;
        let (uid, gid, pid) = (found.uid(), found.gid(), found.pid());
        let listener = Principal::Local { uid, gid, pid };
        if !address.believes(listener) {
            let path = path.display();
            return Err(Unanswered::Denied(format!("the socket {path} belongs to user {uid}")));
        }
        let broken = |error: &dyn ToString| Unanswered::Broken(error.to_string());
        let sent_at = Some(milliseconds_since_boot());
        let request = RequestLine { protocol: PROTOCOL, request: ask.clone(), sent_at };
        let line = serde_json::to_vec(&request).map_err(|error| broken(&error))?;
        let (read, mut write) = stream.into_split();
        // A daemon that rejects a connection at once does not read the request, yet its reply can be read.
        let _unread = framing::write(&mut write, line, Duration::from_secs(5)).await;
        Ok(Self { read: BufReader::new(read), listener: found.pid(), _write: write })
    }

    /// Returns the id of the listening process; `None` if the process is in another pid namespace.
    #[must_use]
    pub fn listener(&self) -> Option<i32> {
        self.listener.filter(|pid| *pid > 0)
    }

    /// Returns the next part of the reply; `None` when the reply is complete.
    ///
    /// # Errors
    /// [`Unanswered`] if the daemon replied with an error, the connection broke, or the time `within` is over.
    pub async fn next(&mut self, within: Option<Duration>) -> Result<Option<Data>, Unanswered> {
        let line = framing::read(&mut self.read, LONGEST, within).await.map_err(|why| {
            Unanswered::Broken(match why {
                NoLine::End | NoLine::Half => "the connection was closed".to_owned(),
                NoLine::Long => "the reply is too long".to_owned(),
                NoLine::Late => "the request timed out".to_owned(),
                NoLine::Failed(error) => error.to_string(),
            })
        })?;
        match read_reply(&line)? {
            Reply::Data(data) => Ok(Some(*data)),
            Reply::Done => Ok(None),
            Reply::Unknown(names) => Err(Unanswered::Unknown(names)),
            Reply::Ambiguous(candidates) => Err(Unanswered::Ambiguous(candidates)),
            Reply::Unavailable(why) => Err(Unanswered::Unavailable(why)),
            Reply::Refused(why) => Err(Unanswered::Refused(why)),
            Reply::Rejected(why) => Err(Unanswered::Rejected(why)),
            Reply::Denied(why) => Err(Unanswered::Denied(why)),
        }
    }
}

/// Reads the line of a reply. Another version of the protocol may have other replies.
fn read_reply(line: &[u8]) -> Result<Reply, Unanswered> {
    let read = serde_json::from_slice(line);
    if let Ok(ReplyLine { protocol: PROTOCOL, reply }) = read {
        return Ok(reply);
    }
    match (serde_json::from_slice(line), read) {
        (Ok(ReplyLine { protocol: PROTOCOL, reply: IgnoredAny }), Err(why)) | (Err(why), _) => {
            Err(Unanswered::Broken(why.to_string()))
        }
        (Ok(ReplyLine { protocol, .. }), _) => Err(Unanswered::Broken(format!(
            "the daemon speaks protocol {protocol}, this program {PROTOCOL}: use the same release"
        ))),
    }
}

/// The time for which a connect is repeated while the queue of the daemon is full.
const BUSY: Duration = Duration::from_secs(5);

async fn connect(path: &Path) -> Result<UnixStream, Unanswered> {
    let began = Instant::now();
    loop {
        let error = match UnixStream::connect(path).await {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        return Err(match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                Unanswered::NoDaemon(path.to_owned())
            }
            io::ErrorKind::PermissionDenied => {
                Unanswered::Denied(format!("permission denied to connect to {}", path.display()))
            }
            io::ErrorKind::WouldBlock if began.elapsed() < BUSY => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            io::ErrorKind::WouldBlock => {
                Unanswered::Unavailable("too many pending connections".to_owned())
            }
            // The kernel takes no longer path.
            io::ErrorKind::InvalidInput => Unanswered::Broken(format!(
                "the path of its socket exceeds 107 bytes; start the daemon with a shorter --socket, and name it here: {}",
                path.display()
            )),
            _ => Unanswered::Broken(error.to_string()),
        });
    }
}
