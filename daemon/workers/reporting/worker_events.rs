//! Events for starts and ends of workers.

use crate::events::{Level, NewEvent, Publisher, what};
use crate::supervisor::{Failure, Inputs, WorkerContext};
use std::pin::Pin;
use std::sync::Arc;

/// The future of a worker.
type Work = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// Wraps the start of a worker so that its start and end are published as events.
pub(in crate::workers) fn told<W>(
    teller: &Publisher,
    name: &str,
    start: impl Fn(Inputs, WorkerContext) -> W + Send + Sync + 'static,
) -> impl Fn(Inputs, WorkerContext) -> Work + Send + Sync + 'static
where
    W: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let (teller, name): (_, Arc<str>) = (teller.clone(), name.into());
    move |inputs, life| {
        let running = Running { teller: teller.clone(), name: Arc::clone(&name), is_told: false };
        let (teller, name) = (teller.clone(), Arc::clone(&name));
        let life = life.on_ready(move || {
            teller.publish(NewEvent::new(what::WORKER_STARTED, &*name, Level::Info));
        });
        let work = start(inputs, life);
        Box::pin(async move {
            let mut running = running;
            let result = work.await;
            running.ended(&result);
            result
        })
    }
}

/// A worker until its end.
struct Running {
    teller: Publisher,
    name: Arc<str>,
    is_told: bool,
}

impl Running {
    fn ended(&mut self, result: &Result<(), Failure>) {
        self.is_told = true;
        let happening = match result {
            Ok(()) => NewEvent::new(what::WORKER_STOPPED, &*self.name, Level::Info),
            Err(why) => {
                let says = format!("{}: {why}", self.name);
                NewEvent::new(what::WORKER_STOPPED, says, Level::Warn)
            }
        };
        self.teller.publish(happening);
    }
}

/// Publishes the end of a worker that panicked or was dropped.
impl Drop for Running {
    fn drop(&mut self) {
        if self.is_told {
            return;
        }
        let (what, how) = if std::thread::panicking() {
            (what::INTERNAL_ERROR, "panicked; see the log for the location")
        } else {
            (what::WORKER_STOPPED, "was aborted")
        };
        self.teller.publish(NewEvent::new(what, format!("{}: {how}", self.name), Level::Error));
    }
}
