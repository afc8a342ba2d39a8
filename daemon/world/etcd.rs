//! The world on etcd. Each member has a client of its own: a call that gets no answer in time goes to another member.
//!
//! Reads and unconditional writes are tried on each member; a conditional transaction is tried once, because nobody
//! knows the result of a lost call.

use super::{
    Committed, Compare, Entry, KeyChange, LeaseId, Operation, Range, Transaction, WatchBatch,
    WatchStream, World, WorldError, WorldFuture, check_limits, keys,
};
use etcd_client::{
    Certificate, Client, Compare as EtcdCompare, CompareOp, ConnectOptions, DeleteOptions, Error,
    Event, EventType, GetOptions, Identity, KeyValue, PutOptions, TlsOptions, Txn, TxnOp,
    WatchOptions, WatchResponse,
};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};

/// The time after which a call goes to another member.
const CALL: Duration = Duration::from_secs(3);

/// The interval of pings while a call or a watch runs. A member ends the connection of a client that pings more often
/// than every 5 s, or that pings without any call.
const PING: Duration = Duration::from_secs(7);

/// The interval of requests that prove a watch alive; twice this time without an answer is a loss.
const PROGRESS: Duration = Duration::from_secs(10);

/// The connection to a cluster of etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdSettings {
    /// The addresses of the members, as `https://HOST:2379`.
    pub endpoints: Vec<String>,
    /// The certificate of the authority that signed the members' certificates.
    pub ca: Option<PathBuf>,
    /// The certificate of this host; its common name is the user of etcd.
    pub cert: Option<PathBuf>,
    /// The private key of this host.
    pub key: Option<PathBuf>,
    /// The name of the cluster: the part of the prefix that all hosts share.
    pub cluster: String,
}

/// The world on etcd.
pub struct EtcdWorld {
    settings: EtcdSettings,
    prefix: String,
    /// A client for each endpoint, made at its first use.
    clients: Vec<Mutex<Option<Client>>>,
    /// The endpoint that answered last.
    present: AtomicUsize,
}

impl std::fmt::Debug for EtcdWorld {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdWorld")
            .field("endpoints", &self.settings.endpoints)
            .finish_non_exhaustive()
    }
}

/// The code numbers of gRPC that matter here.
mod code {
    pub(super) const INVALID_ARGUMENT: i32 = 3;
    pub(super) const NOT_FOUND: i32 = 5;
    pub(super) const PERMISSION_DENIED: i32 = 7;
    pub(super) const OUT_OF_RANGE: i32 = 11;
    pub(super) const UNAUTHENTICATED: i32 = 16;
}

fn failure_of(error: &Error) -> WorldError {
    let Error::GRpcStatus(status) = error else {
        return WorldError::Unavailable(error.to_string());
    };
    let message = status.message().to_owned();
    match i32::from(status.code()) {
        code::PERMISSION_DENIED | code::UNAUTHENTICATED => WorldError::Denied(message),
        // "user name is empty": the server requires a certificate that names a user.
        code::INVALID_ARGUMENT if message.contains("user name") => WorldError::Denied(message),
        code::INVALID_ARGUMENT => WorldError::Invalid(message),
        code::NOT_FOUND if message.contains("lease") => WorldError::LeaseEnded,
        code::OUT_OF_RANGE => WorldError::Compacted(0),
        _ => WorldError::Unavailable(message),
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The future of one call on one member.
type Called<T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

impl EtcdWorld {
    /// Makes a world; nothing is connected before the first call.
    #[must_use]
    pub fn new(settings: EtcdSettings) -> Self {
        let prefix = keys::cluster_prefix(&settings.cluster);
        let clients = settings.endpoints.iter().map(|_| Mutex::new(None)).collect();
        Self { settings, prefix, clients, present: AtomicUsize::new(0) }
    }

    fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn own_entry(&self, pair: &KeyValue) -> Option<Entry> {
        let key = std::str::from_utf8(pair.key()).ok()?.strip_prefix(&self.prefix)?;
        Some(entry_of(pair, key))
    }

    /// Returns the client of an endpoint. The files of the certificates are read at each new connection.
    async fn client_of(&self, number: usize) -> Result<Client, WorldError> {
        let lack = || WorldError::Unavailable("no endpoint is set".to_owned());
        let (slot, endpoint) =
            self.clients.get(number).zip(self.settings.endpoints.get(number)).ok_or_else(lack)?;
        let mut slot = slot.lock().await;
        if let Some(client) = &*slot {
            return Ok(client.clone());
        }
        let mut options = ConnectOptions::new()
            .with_connect_timeout(CALL)
            .with_timeout(CALL)
            .with_keep_alive(PING, CALL)
            .with_require_leader(true);
        if let Some(tls) = self.tls_options().await? {
            options = options.with_tls(tls);
        }
        let client =
            Client::connect([endpoint], Some(options)).await.map_err(|e| failure_of(&e))?;
        *slot = Some(client.clone());
        drop(slot);
        Ok(client)
    }

    async fn tls_options(&self) -> Result<Option<TlsOptions>, WorldError> {
        let read = async |path: &PathBuf| {
            let at = path.clone();
            let read = tokio::task::spawn_blocking(move || std::fs::read(at)).await;
            let failed =
                |why: String| WorldError::Unavailable(format!("{}: {why}", path.display()));
            read.map_err(|error| failed(error.to_string()))?
                .map_err(|error| failed(error.to_string()))
        };
        let Some(ca) = &self.settings.ca else { return Ok(None) };
        let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read(ca).await?));
        if let (Some(cert), Some(key)) = (&self.settings.cert, &self.settings.key) {
            tls = tls.identity(Identity::from_pem(read(cert).await?, read(key).await?));
        }
        Ok(Some(tls))
    }

    /// Forgets the client of an endpoint that did not answer, and moves on to the next endpoint.
    async fn skip_member(&self, number: usize) {
        if let Some(slot) = self.clients.get(number) {
            *slot.lock().await = None;
        }
        let next = (number + 1) % self.clients.len().max(1);
        // Another call may have moved on already.
        let moved = self.present.compare_exchange(number, next, Ordering::SeqCst, Ordering::SeqCst);
        tracing::debug!(number, next, moved = moved.is_ok(), "a member of etcd does not answer");
    }

    /// Runs a call on the present member, and on each other one while the call may be repeated.
    async fn call<T>(
        &self,
        is_repeatable: bool,
        call: impl Fn(Client) -> Called<T> + Send + Sync,
    ) -> Result<T, WorldError> {
        let mut last = WorldError::Unavailable("no endpoint is set".to_owned());
        for _ in 0..self.clients.len() {
            let number = self.present.load(Ordering::SeqCst);
            let outcome = match self.client_of(number).await {
                Ok(client) => match tokio::time::timeout(CALL, call(client)).await {
                    Ok(Ok(value)) => return Ok(value),
                    Ok(Err(error)) => failure_of(&error),
                    Err(_) => WorldError::Unavailable("no answer within 3 s".to_owned()),
                },
                Err(error) => error,
            };
            if !matches!(outcome, WorldError::Unavailable(_)) {
                return Err(outcome);
            }
            self.skip_member(number).await;
            last = outcome;
            if !is_repeatable {
                break;
            }
        }
        Err(last)
    }

    fn etcd_transaction(&self, wanted: &Transaction) -> Txn {
        let conditions: Vec<_> = wanted
            .conditions
            .iter()
            .map(|condition| match condition {
                Compare::ModRevision(key, revision) => {
                    EtcdCompare::mod_revision(self.full(key), CompareOp::Equal, signed(*revision))
                }
                Compare::CreateRevision(key, revision) => EtcdCompare::create_revision(
                    self.full(key),
                    CompareOp::Equal,
                    signed(*revision),
                ),
            })
            .collect();
        let operations: Vec<_> = wanted
            .operations
            .iter()
            .map(|operation| match operation {
                Operation::Put(key, value, lease) => {
                    let options = lease.map(|lease| PutOptions::new().with_lease(lease.0));
                    TxnOp::put(self.full(key), value.clone(), options)
                }
                Operation::Delete(key) => TxnOp::delete(self.full(key), Some(DeleteOptions::new())),
            })
            .collect();
        Txn::new().when(conditions).and_then(operations)
    }
}

/// Waits for the next answer of a watch. After silence a progress request proves the watch alive, or lost.
async fn next_answer(
    stream: &mut etcd_client::WatchStream,
) -> Result<Option<WatchResponse>, WorldError> {
    let lost = || WorldError::Unavailable("the watch is silent".to_owned());
    if let Ok(answer) = tokio::time::timeout(PROGRESS, stream.message()).await {
        return answer.map_err(|error| failure_of(&error));
    }
    stream.request_progress().await.map_err(|error| failure_of(&error))?;
    let answer = tokio::time::timeout(PROGRESS, stream.message()).await;
    answer.map_or_else(|_| Err(lost()), |answer| answer.map_err(|error| failure_of(&error)))
}

/// Returns the failure of an answer that cancels its watch.
fn cancellation(answer: &WatchResponse) -> WorldError {
    let why = answer.cancel_reason();
    if answer.compact_revision() > 0 {
        WorldError::Compacted(unsigned(answer.compact_revision()))
    } else if why.contains("permission denied") {
        WorldError::Denied(why.to_owned())
    } else {
        WorldError::Unavailable(format!("the watch was cancelled: {why}"))
    }
}

/// Returns the change of an event; none for a key outside of the cluster's prefix.
fn change_of(event: &Event, prefix: &str) -> Option<KeyChange> {
    let pair = event.kv()?;
    let key = std::str::from_utf8(pair.key()).ok()?.strip_prefix(prefix)?;
    let entry = (event.event_type() == EventType::Put).then(|| entry_of(pair, key));
    Some(KeyChange { key: key.to_owned(), entry, revision: unsigned(pair.mod_revision()) })
}

fn entry_of(pair: &KeyValue, key: &str) -> Entry {
    Entry {
        key: key.to_owned(),
        value: pair.value().to_vec(),
        create_revision: unsigned(pair.create_revision()),
        mod_revision: unsigned(pair.mod_revision()),
        lease: (pair.lease() != 0).then(|| LeaseId(pair.lease())),
    }
}

/// Sends the answers of a watch until it ends.
async fn send_answers(
    mut stream: etcd_client::WatchStream,
    prefix: String,
    from: u64,
    batches: mpsc::Sender<Result<WatchBatch, WorldError>>,
) {
    // Debian's 3.4.23 may name a revision in a progress notification before its changes are delivered, so that only
    // changes advance the revision.
    let mut revision = from.saturating_sub(1);
    loop {
        let batch = match next_answer(&mut stream).await {
            Ok(Some(answer)) if answer.canceled() => Err(cancellation(&answer)),
            Ok(Some(answer)) => {
                let changes: Vec<_> =
                    answer.events().iter().filter_map(|event| change_of(event, &prefix)).collect();
                revision = changes.iter().fold(revision, |last, change| last.max(change.revision));
                Ok(WatchBatch { revision, changes })
            }
            Ok(None) => Err(WorldError::Unavailable("the watch ended".to_owned())),
            Err(error) => Err(error),
        };
        let is_end = batch.is_err();
        if batches.send(batch).await.is_err() || is_end {
            return;
        }
    }
}

impl World for EtcdWorld {
    fn backend(&self) -> &'static str {
        "etcd"
    }

    fn server_version(&self) -> WorldFuture<'_, Option<String>> {
        Box::pin(async move {
            let status =
                self.call(true, |mut client| Box::pin(async move { client.status().await }));
            Ok(Some(status.await?.version().to_owned()))
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> WorldFuture<'a, Option<Entry>> {
        Box::pin(async move {
            let full = self.full(key);
            let read = move |mut client: Client| -> Called<_> {
                let full = full.clone();
                Box::pin(async move { client.get(full, None).await })
            };
            let answer = self.call(true, read).await?;
            Ok(answer.kvs().first().and_then(|pair| self.own_entry(pair)))
        })
    }

    fn list<'a>(&'a self, prefix: &'a str) -> WorldFuture<'a, Range> {
        Box::pin(async move {
            let full = self.full(prefix);
            let read = move |mut client: Client| -> Called<_> {
                let full = full.clone();
                Box::pin(
                    async move { client.get(full, Some(GetOptions::new().with_prefix())).await },
                )
            };
            let answer = self.call(true, read).await?;
            let revision = answer.header().map_or(0, |header| unsigned(header.revision()));
            let entries = answer.kvs().iter().filter_map(|pair| self.own_entry(pair)).collect();
            Ok(Range { revision, entries })
        })
    }

    fn transact(&self, transaction: Transaction) -> WorldFuture<'_, Committed> {
        Box::pin(async move {
            check_limits(&transaction)?;
            let is_repeatable = transaction.conditions.is_empty();
            let write = |mut client: Client| -> Called<_> {
                let wanted = self.etcd_transaction(&transaction);
                Box::pin(async move { client.txn(wanted).await })
            };
            let answer = self.call(is_repeatable, write).await?;
            let revision = answer.header().map_or(0, |header| unsigned(header.revision()));
            Ok(Committed { succeeded: answer.succeeded(), revision })
        })
    }

    fn watch<'a>(&'a self, prefix: &'a str, from: u64) -> WorldFuture<'a, WatchStream> {
        Box::pin(async move {
            let full = self.full(prefix);
            let open = move |mut client: Client| -> Called<_> {
                let full = full.clone();
                Box::pin(async move {
                    let options = WatchOptions::new()
                        .with_prefix()
                        .with_start_revision(signed(from))
                        .with_progress_notify();
                    let mut stream = client.watch(full, Some(options)).await?;
                    // The first answer confirms the watch; a second one may cancel it for a compacted revision.
                    let first = stream.message().await?;
                    Ok((stream, first))
                })
            };
            let (stream, first) = self.call(true, open).await?;
            if let Some(first) = first
                && first.canceled()
            {
                return Err(match first.compact_revision() {
                    0 => WorldError::Denied(first.cancel_reason().to_owned()),
                    oldest => WorldError::Compacted(unsigned(oldest)),
                });
            }
            let (sender, receiver) = mpsc::channel(16);
            let task = tokio::spawn(send_answers(stream, self.prefix.clone(), from, sender));
            Ok(WatchStream::new(receiver, task))
        })
    }

    fn grant_lease(&self, time_to_live: Duration) -> WorldFuture<'_, LeaseId> {
        Box::pin(async move {
            let seconds = signed(time_to_live.as_secs().max(1));
            let grant = move |mut client: Client| -> Called<_> {
                Box::pin(async move { client.lease_grant(seconds, None).await })
            };
            // A lost answer leaves a lease without keys, which ends by itself.
            Ok(LeaseId(self.call(true, grant).await?.id()))
        })
    }

    fn keep_alive(&self, lease: LeaseId) -> WorldFuture<'_, ()> {
        Box::pin(async move {
            let renew = move |mut client: Client| -> Called<_> {
                Box::pin(async move {
                    let (mut keeper, mut answers) = client.lease_keep_alive(lease.0).await?;
                    keeper.keep_alive().await?;
                    answers.message().await
                })
            };
            match self.call(true, renew).await {
                // An ended lease is no error of etcd: the lifetime is 0.
                Ok(Some(answer)) if answer.ttl() > 0 => Ok(()),
                Ok(_) => Err(WorldError::LeaseEnded),
                // The client reports an ended lease as an error of the first answer.
                Err(WorldError::Unavailable(why)) if why.contains("lease not found") => {
                    Err(WorldError::LeaseEnded)
                }
                Err(error) => Err(error),
            }
        })
    }

    fn lease_time_left(&self, lease: LeaseId) -> WorldFuture<'_, Duration> {
        Box::pin(async move {
            let ask = move |mut client: Client| -> Called<_> {
                Box::pin(async move { client.lease_time_to_live(lease.0, None).await })
            };
            // The time of an ended lease is -1.
            let seconds = self.call(true, ask).await?.ttl();
            u64::try_from(seconds)
                .map(Duration::from_secs)
                .map_err(|_negative| WorldError::LeaseEnded)
        })
    }

    fn revoke_lease(&self, lease: LeaseId) -> WorldFuture<'_, ()> {
        Box::pin(async move {
            let revoke = move |mut client: Client| -> Called<_> {
                Box::pin(async move { client.lease_revoke(lease.0).await })
            };
            match self.call(true, revoke).await {
                Ok(_) | Err(WorldError::LeaseEnded) => Ok(()),
                Err(error) => Err(error),
            }
        })
    }

    fn compact_history(&self, revision: u64) -> WorldFuture<'_, ()> {
        Box::pin(async move {
            let compact = move |mut client: Client| -> Called<_> {
                Box::pin(async move { client.compact(signed(revision), None).await })
            };
            self.call(true, compact).await.map(drop)
        })
    }
}
