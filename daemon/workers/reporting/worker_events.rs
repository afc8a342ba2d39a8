//! Events for starts and ends of workers.

use crate::api::event_data::Worker;
use crate::api::{EventKind, Level};
use crate::events::{NewEvent, Publisher};
use crate::supervisor::{Failure, Inputs, WorkerContext};
use std::pin::Pin;
use std::sync::Arc;

/// The future of a worker.
type Work = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// Wraps the start of a worker so that its start and end are published as events.
pub(in crate::workers) fn told<W>(
    publisher: &Publisher,
    name: &str,
    start: impl Fn(Inputs, WorkerContext) -> W + Send + Sync + 'static,
) -> impl Fn(Inputs, WorkerContext) -> Work + Send + Sync + 'static
where
    W: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let (publisher, name): (_, Arc<str>) = (publisher.clone(), name.into());
    move |inputs, life| {
        let running =
            Running { publisher: publisher.clone(), name: Arc::clone(&name), is_told: false };
        let (publisher, name) = (publisher.clone(), Arc::clone(&name));
        let life = life.on_ready(move || {
            let worker = Worker { worker: name.to_string(), reason: None };
            publisher.publish(NewEvent::new(EventKind::WorkerStarted(worker), Level::Info));
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
    publisher: Publisher,
    name: Arc<str>,
    is_told: bool,
}

impl Running {
    fn ended(&mut self, result: &Result<(), Failure>) {
        self.is_told = true;
        let reason = result.as_ref().err().map(ToString::to_string);
        let level = if reason.is_some() { Level::Warn } else { Level::Info };
        let worker = Worker { worker: self.name.to_string(), reason };
        self.publisher.publish(NewEvent::new(EventKind::WorkerStopped(worker), level));
    }
}

/// Publishes the end of a worker that panicked or was dropped.
impl Drop for Running {
    fn drop(&mut self) {
        if self.is_told {
            return;
        }
        let name = &self.name;
        self.publisher.publish(if std::thread::panicking() {
            NewEvent::internal_error(format!("{name}: panicked; see the log for the location"))
        } else {
            let reason = Some("was aborted".to_owned());
            let worker = Worker { worker: name.to_string(), reason };
            NewEvent::new(EventKind::WorkerStopped(worker), Level::Error)
        });
    }
}
