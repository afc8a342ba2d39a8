//! Faults put into workers on request, to see that they heal (F-19): only in a program that was built with debug assertions.

use super::Shared;
use crate::driver::{DriverEvent, PingReply};
use crate::fault_injection;
use crate::fault_injection::Fault;
use crate::lease::{Answer as Answered, Lease, Renewal, Token};
use crate::store::StoreError;
use crate::supervisor::{Failure, Inputs, WorkerContext};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a worker may do nothing, where a test says so, in milliseconds.
pub(super) fn silence() -> Option<Duration> {
    let silence = std::env::var("STEADFAST_TEST_SILENCE").ok()?;
    silence.parse().ok().map(Duration::from_millis)
}

/// How long the lease holds without being renewed, where a test says so, in milliseconds.
fn lifetime() -> Option<Duration> {
    let lifetime = std::env::var("STEADFAST_TEST_LEASE").ok()?;
    lifetime.parse().ok().map(Duration::from_millis)
}

/// A lease that must be renewed where a test says so, and that somebody else takes on request, as one that is shared by hosts can be.
pub(super) struct RevocableLease<L> {
    lease: L,
    lifetime: Option<Duration>,
    is_taken: Arc<AtomicBool>,
}

/// What is said of whoever has taken it.
const TAKEN: &str = "somebody else has the lease: a fault was put into it";

impl<L> RevocableLease<L> {
    fn token(&self, token: Token) -> Token {
        Token { lifetime: self.lifetime.or(token.lifetime), ..token }
    }

    fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::SeqCst)
    }
}

impl<L: Lease<Refusal = StoreError>> Lease for RevocableLease<L> {
    type Refusal = StoreError;

    fn acquire(&mut self) -> Answered<'_, Result<Token, StoreError>> {
        Box::pin(async move {
            if self.is_taken() {
                let (dir, why) = (String::new(), TAKEN.to_owned());
                return Err(StoreError::Directory { dir, why, denied: false });
            }
            let token = self.lease.acquire().await?;
            Ok(self.token(token))
        })
    }

    fn renew(&mut self, token: Token) -> Answered<'_, Renewal> {
        Box::pin(async move {
            if self.is_taken() {
                return Renewal::Lost(TAKEN.to_owned());
            }
            match self.lease.renew(token).await {
                Renewal::Renewed(new) => Renewal::Renewed(self.token(new)),
                other => other,
            }
        })
    }

    fn release(&mut self, token: Token) -> Answered<'_, Result<(), String>> {
        self.lease.release(token)
    }

    fn now(&self) -> Duration {
        self.lease.now()
    }
}

/// The way to the worker of each name that runs now, and whether somebody else has the lease.
#[derive(Clone, Default)]
pub(super) struct Faults {
    ways: Arc<Mutex<HashMap<String, mpsc::UnboundedSender<Fault>>>>,
    is_lease_taken: Arc<AtomicBool>,
}

impl Faults {
    /// The same lease, which can be lost on request.
    pub(super) fn losable<L>(&self, lease: L) -> RevocableLease<L> {
        RevocableLease { lease, lifetime: lifetime(), is_taken: Arc::clone(&self.is_lease_taken) }
    }

    /// Puts a fault into the worker that runs now; whether there is one.
    pub(super) fn inject(&self, worker: &str, fault: Fault) -> bool {
        let all = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(worker).is_some_and(|way| way.send(fault).is_ok())
    }

    /// The same worker, with a way for faults into it.
    pub(super) fn put_into<W>(
        &self,
        name: &str,
        start: impl Fn(Inputs, WorkerContext) -> W + Send + Sync + 'static,
    ) -> impl Fn(
        Inputs,
        WorkerContext,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>
    + Send
    + Sync
    + 'static
    where
        W: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let (all, name) = (self.clone(), name.to_owned());
        move |inputs, life| {
            let (way, mut faults) = mpsc::unbounded_channel();
            all.ways.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), way);
            let work = start(inputs, life);
            Box::pin(async move {
                // One that hangs keeps all that it has.
                let mut work = std::pin::pin!(work);
                let fault = tokio::select! {
                    ended = &mut work => return ended,
                    fault = faults.recv() => fault,
                };
                match fault {
                    Some(Fault::Panic) => std::panic::panic_any("a fault was put into it"),
                    Some(Fault::Error) => Err(Failure::again("a fault was put into it")),
                    Some(Fault::Hang) | None => std::future::pending().await,
                }
            })
        }
    }
}

impl Shared {
    /// Puts a fault into a worker, or with `in:` before its name into a thread or a place of one. Those of the driver are in its loop, on
    /// its thread.
    pub(super) fn inject(&self, worker: &str, how: &str) -> Result<(), String> {
        if let ("lease", "lost" | "found") = (worker, how) {
            // One that is never renewed is never found to be lost.
            lifetime().ok_or("the lease has no end: see STEADFAST_TEST_LEASE")?;
            self.faults.is_lease_taken.store(how == "lost", Ordering::SeqCst);
            return Ok(());
        }
        let fault = Fault::named(how).ok_or_else(|| format!("no fault is named `{how}`"))?;
        if let Some(place) = worker.strip_prefix("in:") {
            fault_injection::put(place, fault);
            return Ok(());
        }
        let in_loop = worker == "driver" && fault != Fault::Error;
        let there = if in_loop {
            let answer = PingReply(Box::new(move |_| suffer(fault)));
            self.requests.put_now(DriverEvent::Ping(answer)).is_ok()
        } else {
            self.faults.inject(worker, fault)
        };
        if there { Ok(()) } else { Err(format!("no worker named `{worker}` runs")) }
    }
}

fn suffer(fault: Fault) {
    match fault {
        Fault::Panic => std::panic::panic_any("a fault was put into it"),
        Fault::Hang => loop {
            std::thread::park();
        },
        Fault::Error => {}
    }
}
