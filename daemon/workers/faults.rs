//! Faults put into workers on request, to see that they heal (F-19): only in a program that was built with debug assertions.

use super::Shared;
use crate::driver::{Answer, Input};
use crate::faults::{self, Fault};
use crate::supervisor::{Failure, Inputs, Life};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a worker may do nothing, where a test says so, in milliseconds.
pub(super) fn silence() -> Option<Duration> {
    let silence = std::env::var("STEADFAST_TEST_SILENCE").ok()?;
    silence.parse().ok().map(Duration::from_millis)
}

/// The way to the worker of each name that runs now.
#[derive(Clone, Default)]
pub(super) struct Faults(Arc<Mutex<HashMap<String, mpsc::UnboundedSender<Fault>>>>);

impl Faults {
    /// Puts a fault into the worker that runs now; whether there is one.
    pub(super) fn inject(&self, worker: &str, fault: Fault) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(worker).is_some_and(|way| way.send(fault).is_ok())
    }

    /// The same worker, with a way for faults into it.
    pub(super) fn put_into<W>(
        &self,
        name: &str,
        start: impl Fn(Inputs, Life) -> W + Send + Sync + 'static,
    ) -> impl Fn(Inputs, Life) -> std::pin::Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>
    + Send
    + Sync
    + 'static
    where
        W: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let (all, name) = (self.clone(), name.to_owned());
        move |inputs, life| {
            let (way, mut faults) = mpsc::unbounded_channel();
            all.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), way);
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
            let lost = || Err("a fault was put into it".to_owned());
            self.requests.put(Input::Lease(if how == "lost" { lost() } else { Ok(()) }));
            return Ok(());
        }
        let fault = Fault::named(how).ok_or_else(|| format!("no fault is named `{how}`"))?;
        if let Some(place) = worker.strip_prefix("in:") {
            faults::put(place, fault);
            return Ok(());
        }
        let in_loop = worker == "driver" && fault != Fault::Error;
        let there = if in_loop {
            let answer = Answer(Box::new(move |_| suffer(fault)));
            self.requests.put_now(Input::Ping(answer)).is_ok()
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
