//! Fault injection into workers on request, to test their recovery (F-19); it exists only in programs built with the
//! feature `fault-injection`.

use crate::driver::{DriverEvent, PingReply};
use crate::fault_injection;
use crate::fault_injection::Fault;
use crate::lease::{Answer as Answered, Lease, LeaseError, Renewal, Token};
use crate::supervisor::{Failure, Inputs, WorkerContext};
use crate::workers::errors::FaultError;
use crate::workers::requests::queue::Requests;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// Returns the time for which a worker may be silent, if a test sets one (in milliseconds).
pub(super) fn heartbeat_limit() -> Option<Duration> {
    let heartbeat_limit = std::env::var("STEADFAST_TEST_SILENCE").ok()?;
    heartbeat_limit.parse().ok().map(Duration::from_millis)
}

/// Returns the lifetime of the lease without renewal, if a test sets one (in milliseconds).
fn lifetime() -> Option<Duration> {
    let lifetime = std::env::var("STEADFAST_TEST_LEASE").ok()?;
    lifetime.parse().ok().map(Duration::from_millis)
}

/// A lease with the lifetime of a test, which another daemon can take on request, as happens to a lease shared by
/// hosts.
pub(super) struct RevocableLease {
    lease: Box<dyn Lease>,
    lifetime: Option<Duration>,
    is_taken: Arc<AtomicBool>,
}

/// The error after another daemon took the lease.
const TAKEN: &str = "somebody else has the lease: a fault was put into it";

impl RevocableLease {
    fn token(&self, token: Token) -> Token {
        Token { lifetime: self.lifetime.or(token.lifetime), ..token }
    }

    fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::SeqCst)
    }
}

impl Lease for RevocableLease {
    fn acquire(&mut self) -> Answered<'_, Result<Token, LeaseError>> {
        Box::pin(async move {
            if self.is_taken() {
                return Err(LeaseError(TAKEN.to_owned()));
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

    fn release(&mut self, token: Token) -> Answered<'_, Result<(), LeaseError>> {
        self.lease.release(token)
    }

    fn now(&self) -> Duration {
        self.lease.now()
    }
}

/// The channels to the running workers by name, and the state of the lease.
#[derive(Clone, Default)]
pub(super) struct Faults {
    ways: Arc<Mutex<HashMap<String, mpsc::UnboundedSender<Fault>>>>,
    is_lease_taken: Arc<AtomicBool>,
}

impl Faults {
    /// Wraps a lease so that it can be lost on request.
    pub(super) fn losable(&self, lease: Box<dyn Lease>) -> RevocableLease {
        RevocableLease { lease, lifetime: lifetime(), is_taken: Arc::clone(&self.is_lease_taken) }
    }

    /// Injects a fault into a running worker; returns false if no worker has the name.
    fn inject(&self, worker: &str, fault: Fault) -> bool {
        let all = self.ways.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(worker).is_some_and(|way| way.send(fault).is_ok())
    }

    /// Wraps the start of a worker so that faults can be injected into it.
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
                // A worker that hangs keeps all its resources.
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

impl Faults {
    /// Injects a fault into a worker, or with `in:` before the name into a thread or a place. A fault of the driver
    /// takes effect in its loop.
    pub(super) fn carry_out(
        &self,
        requests: &Requests,
        worker: &str,
        how: &str,
    ) -> Result<(), FaultError> {
        if let ("lease", "lost" | "found") = (worker, how) {
            // A lease that is never renewed is never found to be lost.
            lifetime().ok_or(FaultError::EndlessLease)?;
            self.is_lease_taken.store(how == "lost", Ordering::SeqCst);
            return Ok(());
        }
        let fault = Fault::named(how).ok_or_else(|| FaultError::UnknownFault(how.to_owned()))?;
        if let Some(place) = worker.strip_prefix("in:") {
            fault_injection::put(place, fault);
            return Ok(());
        }
        let in_loop = worker == "driver" && fault != Fault::Error;
        let there = if in_loop {
            let answer = PingReply(Box::new(move |_| inject_fault(fault)));
            requests.put_now(DriverEvent::Ping(answer)).is_ok()
        } else {
            self.inject(worker, fault)
        };
        if there { Ok(()) } else { Err(FaultError::UnknownWorker(worker.to_owned())) }
    }
}

fn inject_fault(fault: Fault) {
    match fault {
        Fault::Panic => std::panic::panic_any("a fault was put into it"),
        Fault::Hang => loop {
            std::thread::park();
        },
        Fault::Error => {}
    }
}
