//! What a daemon has beside its driver, on a thread of its own: the stream of events and the control socket, under a supervisor.
//! However many ask and listen, the driver does not wait for them.

use super::desk::Clerk;
use crate::control::{Address, Desk, Limits, Server};
use crate::events::Pump;
use crate::supervisor::{Delays, Failure, Life, Manifold, Outputs, Supervisor};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// How long the end of all that may take.
const END: Duration = Duration::from_secs(1);

/// The thread, and its supervisor.
#[derive(Debug)]
pub(super) struct Inside {
    pub(super) supervisor: Supervisor,
    pub(super) handle: Handle,
    end: CancellationToken,
    thread: JoinHandle<()>,
}

impl Inside {
    /// Starts the thread with nothing on it.
    pub(super) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let supervisor = {
            let _context = handle.enter();
            Supervisor::start(Delays::default()).map_err(io::Error::other)?
        };
        let (end, watched) = (CancellationToken::new(), supervisor.clone());
        let token = end.clone();
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            runtime.block_on(async {
                token.cancelled().await;
                watched.stop(Some(END));
                watched.ended().await;
            });
            runtime.shutdown_timeout(Duration::from_millis(10));
        })?;
        Ok(Self { supervisor, handle, end, thread })
    }

    /// Puts the workers on it; the socket at its address, for this group too.
    pub(super) fn install(&self, pump: Pump, clerk: Clerk, place: (Address, Option<u32>)) {
        let workers = vec![events(pump), control(Arc::new(clerk), place)];
        let supervisor = self.supervisor.clone();
        self.handle.spawn(async move {
            if let Err(refused) = supervisor.install(workers).await {
                tracing::error!(error = %refused, "the daemon's own workers are not installed");
            }
        });
    }

    /// Ends all of it.
    pub(super) fn stop(self) {
        self.end.cancel();
        if self.thread.join().is_err() {
            tracing::error!("the control thread panicked");
        }
    }
}

/// Passes events on, until nobody is left to tell any.
fn events(pump: Pump) -> Manifold {
    let pump = Arc::new(Mutex::new(Some(pump)));
    Manifold::new("events", move |_, life: Life| {
        let pump = pump.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            // There is one queue for the life of the daemon.
            let Some(pump) = pump else { return Err(Failure::fatal(1, "the events were lost")) };
            life.ready(Outputs::none());
            tokio::select! {
                () = pump.run() => {}
                () = life.stopping().cancelled() => {}
            }
            Ok(())
        }
    })
}

/// Listens at the control socket, whatever becomes of all others.
fn control(clerk: Arc<Clerk>, (address, group): (Address, Option<u32>)) -> Manifold {
    let worker = Manifold::new("control", move |_, life: Life| {
        let (clerk, address) = (Arc::clone(&clerk), address.clone());
        async move {
            let desk: Arc<dyn Desk> = clerk;
            let server = Server::bind(address.clone(), group, Limits::default()).await;
            let server = server.map_err(|why| {
                tracing::warn!(event = "control", "{why}: commands cannot reach this daemon");
                Failure::again(why)
            })?;
            life.say(format!("listens at {}", address.path().display()));
            life.ready(Outputs::none());
            server.serve(desk, life.stopping().clone()).await;
            Ok(())
        }
    });
    worker.handles("events").last()
}
