//! A connection to a systemd bus: methods are called, and one task processes all signals.

use super::fault::Fault;
use super::jobs::Board;
use super::own_change_filter::{OwnChanges, Seen};
use super::signals;
use super::signals::{Happening, Signal, Sink};
use futures_util::StreamExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use zbus::connection::{Builder, Connection};
use zbus::export::serde::Serialize;
use zbus::{DynamicType, Message, MessageStream};

/// The bus name of systemd, and the object path of its manager.
pub(super) const NAME: &str = "org.freedesktop.systemd1";
pub(super) const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
pub(super) const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const BUS: (&str, &str, &str) =
    ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus");

/// The time limit of a call, equal to the default of D-Bus.
pub(super) const CALL: Duration = Duration::from_secs(25);

/// A connection to a bus.
#[derive(Debug)]
pub(super) struct BusConnection {
    connection: Connection,
    shared: Arc<Shared>,
    /// Ends the listening task.
    _listening: DropGuard,
}

/// The state that the listening task and the callers share.
#[derive(Default)]
pub(super) struct Shared {
    inner: Mutex<Inner>,
    /// The position up to which all messages, including replies, were processed.
    position: watch::Sender<Option<Seen>>,
    /// Cancelled when the connection is lost.
    gone: CancellationToken,
}

#[derive(Default)]
struct Inner {
    why: Option<String>,
    board: Board,
    own_changes: OwnChanges,
    sinks: Vec<(u64, Sink)>,
    last: u64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("lost", &self.gone.is_cancelled()).finish_non_exhaustive()
    }
}

/// A subscription to systemd's events, valid until dropped.
#[derive(Debug)]
pub struct Subscription {
    shared: Arc<Shared>,
    number: u64,
    /// Holds the connection open.
    _link: Arc<BusConnection>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.shared.lock().sinks.retain(|(number, _)| *number != self.number);
    }
}

impl Subscription {
    /// Waits until the connection is lost.
    pub async fn lost(&self) {
        self.shared.gone.cancelled().await;
    }
}

impl BusConnection {
    /// Connects and subscribes. The caller must be on the runtime on which the connection lives.
    pub(super) async fn open(address: Option<String>) -> Result<Arc<Self>, Fault> {
        let builder =
            address.map_or_else(Builder::system, |address| Builder::address(address.as_str()));
        let connection = builder.build().await?;
        let stream = MessageStream::from(&connection);
        // This order misses nothing: changes of the name's owner are watched before the owner is queried.
        add_match(
            &connection,
            &format!("sender='{}',member='NameOwnerChanged',arg0='{NAME}'", BUS.0),
        )
        .await?;
        let owner = bus_call(&connection, "GetNameOwner", NAME).await?;
        let owner: String = owner.body().deserialize()?;
        let shared = Arc::new(Shared::default());
        let listening = CancellationToken::new();
        tokio::spawn(listen(stream, owner, Arc::clone(&shared), listening.clone()));
        let link = Self { connection, shared, _listening: listening.drop_guard() };
        let rules = [
            format!("sender='{NAME}',path='{MANAGER_PATH}',interface='{MANAGER}'"),
            format!(
                "sender='{NAME}',path_namespace='{MANAGER_PATH}/unit',\
                 member='PropertiesChanged',arg0='{}'",
                signals::UNIT
            ),
        ];
        for rule in rules {
            add_match(&link.connection, &format!("type='signal',{rule}")).await?;
        }
        link.call(MANAGER_PATH, MANAGER, "Subscribe", &()).await?;
        Ok(Arc::new(link))
    }

    pub(super) fn is_lost(&self) -> bool {
        self.shared.gone.is_cancelled() || self.connection.is_closed()
    }

    /// Calls a method of systemd.
    pub(super) async fn call<B>(
        &self,
        path: &str,
        interface: &str,
        member: &str,
        body: &B,
    ) -> Result<Message, Fault>
    where
        B: Serialize + DynamicType + Sync,
    {
        self.call_within(CALL, (path, interface, member), body).await
    }

    /// Calls a method with a longer time limit.
    pub(super) async fn call_within<B>(
        &self,
        limit: Duration,
        (path, interface, member): (&str, &str, &str),
        body: &B,
    ) -> Result<Message, Fault>
    where
        B: Serialize + DynamicType + Sync,
    {
        let call = self.connection.call_method(Some(NAME), path, Some(interface), member, body);
        tokio::select! {
            answer = tokio::time::timeout(limit, call) => match answer {
                Ok(answer) => Ok(answer?),
                Err(_) => Err(Fault::Silent(limit)),
            },
            () = self.shared.gone.cancelled() => Err(self.shared.lost()),
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Subscribes a sink to all later events.
    pub(super) fn subscribe(self: Arc<Self>, sink: Sink) -> Subscription {
        let mut inner = self.shared.lock();
        inner.last += 1;
        let number = inner.last;
        let lost = inner.why.clone();
        if let Some(why) = &lost {
            sink(Happening::Lost(why));
        }
        inner.sinks.push((number, sink));
        drop(inner);
        Subscription { shared: Arc::clone(&self.shared), number, _link: self }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls a function with the awaited jobs.
    pub(super) fn board<T>(&self, work: impl FnOnce(&mut Board) -> T) -> T {
        work(&mut self.lock().board)
    }

    /// Calls a function with the units that runs are changing; its events are reported at once.
    pub(super) fn own_changes<T>(
        &self,
        work: impl FnOnce(&mut OwnChanges, &mut dyn FnMut(Happening<'_>)) -> T,
    ) -> T {
        let mut inner = self.lock();
        let Inner { own_changes, sinks, .. } = &mut *inner;
        work(own_changes, &mut |happening| {
            for (_, sink) in &*sinks {
                sink(happening);
            }
        })
    }

    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    pub(super) fn lost(&self) -> Fault {
        Fault::Lost(
            self.lock().why.clone().unwrap_or_else(|| "the connection was closed".to_owned()),
        )
    }

    /// Waits until all messages before a position were processed.
    pub(super) async fn taken_in(&self, upto: Seen) {
        let mut position = self.position.subscribe();
        tokio::select! {
            // The sender lives as long as the shared state.
            _reached = position.wait_for(|position| *position >= Some(upto)) => {}
            () = self.gone() => {}
        }
    }

    /// Processes a signal; returns false if the signal says that systemd has left the bus.
    fn take_in(&self, message: &Message) -> bool {
        let Some(news) = signals::read(message) else { return true };
        let at = Seen::at(message);
        self.own_changes(|own_changes, send| match &news {
            Signal::Left => {}
            Signal::Job { unit, .. } => own_changes.job_ended(unit),
            Signal::Unit { path, activity } => {
                let known = own_changes.is_known(path, None, at);
                send(Happening::Unit { path, activity: *activity, known });
            }
            Signal::New { name, path } => {
                let known = own_changes.is_known(path, Some(name), at);
                send(Happening::New { name, path, known });
            }
            Signal::Removed { name, path } => {
                send(Happening::Removed { name, path });
            }
            Signal::Reloading(begins) => send(Happening::Reloading(*begins)),
            Signal::Files => send(Happening::Files),
        });
        if let Signal::Job { path, result, .. } = &news {
            self.board(|board| board.ended(path, result));
        }
        news != Signal::Left
    }

    fn lose(&self, why: &str) {
        let mut inner = self.lock();
        inner.why = Some(why.to_owned());
        inner.board.forget();
        for (_, sink) in &inner.sinks {
            sink(Happening::Lost(why));
        }
        drop(inner);
        self.gone.cancel();
    }
}

/// Processes all signals until the connection ends; an unread stream would block the whole connection.
async fn listen(
    mut stream: MessageStream,
    owner: String,
    shared: Arc<Shared>,
    closing: CancellationToken,
) {
    let mut ends =
        Ends { shared: Arc::clone(&shared), why: "the connection task panicked".to_owned() };
    ends.why = loop {
        let message = tokio::select! {
            message = stream.next() => message,
            () = closing.cancelled() => break "the connection was closed".to_owned(),
        };
        match message {
            Some(Ok(message)) => {
                if is_from(&message, &[&owner, BUS.0]) && !shared.take_in(&message) {
                    break "systemd disconnected from the bus".to_owned();
                }
                shared.position.send_replace(Some(Seen::at(&message)));
            }
            Some(Err(why)) => break why.to_string(),
            None => break "the bus closed the connection".to_owned(),
        }
    };
}

/// A guard for the end of the listening task, which informs all subscribers and waiting callers.
struct Ends {
    shared: Arc<Shared>,
    why: String,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.shared.lose(&self.why);
    }
}

/// Returns true if the message comes from one of the senders: every user may send signals to anybody.
fn is_from(message: &Message, senders: &[&str]) -> bool {
    let header = message.header();
    header.sender().is_some_and(|sender| senders.contains(&sender.as_str()))
}

async fn add_match(connection: &Connection, rule: &str) -> Result<(), Fault> {
    bus_call(connection, "AddMatch", rule).await.map(drop)
}

async fn bus_call(connection: &Connection, member: &str, body: &str) -> Result<Message, Fault> {
    let (name, path, interface) = BUS;
    Ok(connection.call_method(Some(name), path, Some(interface), member, &body).await?)
}
