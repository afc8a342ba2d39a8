//! The worker of the event log: it runs the log writer from the moment when this process has the state directory until
//! all recorders have ended.

use crate::events::{LogWriter, Stream};
use crate::store::StateLock;
use crate::supervisor::{Failure, Manifold, Outputs, WorkerContext};
use crate::workers::STOP_RANK_EVENTS;
use crate::workers::shutdown::Shutdown;
use crate::workers::state::lock::SharedStateLock;
use crate::workers::worker_factory::WorkerFactory;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// The time limit for recording the last events.
const LAST: Duration = Duration::from_secs(3);

/// The time limit for the recorders to send the last events.
pub(in crate::workers) const TAIL: Duration = Duration::from_secs(5);

/// The log writer, and the state of its thread.
pub(in crate::workers) struct LogThread {
    log_writer: Arc<LogWriter>,
    runs: watch::Sender<bool>,
    /// The number of recorders that run.
    pub(in crate::workers) recorders: watch::Sender<usize>,
}

impl LogThread {
    pub(in crate::workers) fn new(log_writer: LogWriter) -> Self {
        let (runs, recorders) = (watch::Sender::default(), watch::Sender::default());
        Self { log_writer: Arc::new(log_writer), runs, recorders }
    }

    /// Starts the thread of the log writer, unless it runs.
    fn start(self: &Arc<Self>, state_lock: Arc<StateLock>) -> Result<(), Failure> {
        if self.runs.send_replace(true) {
            return Ok(());
        }
        let own = Running(Arc::clone(self), state_lock);
        let thread = std::thread::Builder::new().name("events".to_owned());
        thread.spawn(move || own.0.log_writer.run()).map(drop).map_err(Failure::again)
    }
}

/// A guard that records the end of the thread, and has the lock of the state directory until then.
struct Running(Arc<LogThread>, #[expect(dead_code, reason = "held")] Arc<StateLock>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.runs.send_replace(false);
    }
}

/// The parts of the worker.
pub(in crate::workers) struct EventLogParts {
    pub(in crate::workers) lock: Arc<SharedStateLock>,
    pub(in crate::workers) log_thread: Arc<LogThread>,
    pub(in crate::workers) shutdown: Arc<Shutdown>,
    pub(in crate::workers) stream: Stream,
}

/// Creates the worker that records events. After a failure it is started again, and waiting events are recorded then.
pub(in crate::workers) fn events(factory: &WorkerFactory, parts: EventLogParts) -> Manifold {
    let own = Arc::new(parts);
    let worker = factory.worker("events", move |_, life: WorkerContext| {
        let parts = Arc::clone(&own);
        async move {
            life.set_status("waiting for the state directory");
            let mut lock = parts.lock.subscribe();
            let state_lock = tokio::select! {
                state_lock = lock.wait_for(Option::is_some) => state_lock.map_err(Failure::again)?.clone(),
                () = life.stopping().cancelled() => return Ok(()),
            };
            let Some(state_lock) = state_lock else { return Err(Failure::again("the state directory is not locked")) };
            let log_thread = &parts.log_thread;
            log_thread.start(state_lock)?;
            life.ready(Outputs::none());
            let mut runs = log_thread.runs.subscribe();
            tokio::select! {
                _ = runs.wait_for(|runs| !runs) => {
                    return Err(Failure::again("the event log thread panicked; see the log for the location"));
                }
                () = show_status(&parts.stream, &life) => {}
                never = life.watch_thread(|| log_thread.log_writer.ping()) => match never {},
                () = life.stopping().cancelled() => {}
            }
            let how = if parts.shutdown.is_now() { "interrupted" } else { "stopped" };
            log_thread.log_writer.finish(how, "the daemon ends".to_owned());
            let mut standing = parts.stream.progress();
            drop(timeout(LAST, standing.wait_for(|standing| standing.is_over)).await);
            let mut recorders = log_thread.recorders.subscribe();
            drop(timeout(TAIL, recorders.wait_for(|count| *count == 0)).await);
            log_thread.log_writer.leave();
            drop(timeout(LAST, runs.wait_for(|runs| !runs)).await);
            Ok(())
        }
    });
    worker.handles("store").stop_rank(STOP_RANK_EVENTS).grace(LAST * 2 + TAIL + LAST)
}

/// Reports the progress of the log as the status of the worker.
async fn show_status(stream: &Stream, life: &WorkerContext) {
    let mut standing = stream.progress();
    loop {
        life.set_status(match &*standing.borrow_and_update() {
            standing if standing.problem.is_some() => {
                let why = standing.problem.as_deref().unwrap_or_default();
                format!("events are not recorded: {why}")
            }
            standing => format!("{} recorded", standing.last_number),
        });
        if standing.changed().await.is_err() {
            return std::future::pending().await;
        }
        // The pause limits the number of status changes.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
