//! The recorders of a one-shot command: they run beside the command, and have a deadline for the rest when it ends.

use crate::config::Recorder as Declared;
use crate::events::Stream;
use crate::events::export::Recorder;
use crate::workers::sink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The interval at which a recorder checks for new events without a notification.
const TURN: Duration = Duration::from_secs(1);

/// The running recorders that the settings declare.
pub(in crate::cli) struct Deliveries {
    runtime: Handle,
    declared: Vec<Declared>,
    state_directory: PathBuf,
    shutdown: CancellationToken,
    running: JoinSet<()>,
    /// True if a recorder asks for debug events.
    wants_debug: bool,
}

impl Deliveries {
    pub(in crate::cli) fn new(
        runtime: &Handle,
        declared: &[Declared],
        state_directory: &Path,
    ) -> Self {
        Self {
            runtime: runtime.clone(),
            declared: declared.to_vec(),
            state_directory: state_directory.to_owned(),
            shutdown: CancellationToken::new(),
            running: JoinSet::new(),
            wants_debug: declared.iter().any(|one| one.debug),
        }
    }

    /// Returns true if a recorder asks for debug events.
    pub(in crate::cli) fn wants_debug(&self) -> bool {
        self.wants_debug
    }

    /// Starts each recorder. A recorder that cannot start is reported in the log, and receives the events later.
    pub(in crate::cli) fn start(&mut self, stream: &Stream) {
        for declared in std::mem::take(&mut self.declared) {
            let (name, debug) = (declared.name(), declared.debug);
            // Some destinations need the runtime when they are opened.
            let _entered = self.runtime.enter();
            match sink(&declared) {
                Ok(sink) => {
                    let recorder = Recorder {
                        name: name.into(),
                        sink,
                        stream: stream.clone(),
                        state_directory: self.state_directory.clone(),
                        turn: TURN,
                        debug,
                        leaves: Box::new(|| false),
                    };
                    let shutdown = self.shutdown.clone();
                    self.running.spawn_on(run(recorder, shutdown), &self.runtime);
                }
                Err(why) => tracing::warn!(
                    event = "recorder",
                    "{name}: cannot start: {why}; the next apply or daemon sends its events"
                ),
            }
        }
    }

    /// Waits until all events are sent, at most for the deadline of a recorder.
    pub(in crate::cli) async fn finish(mut self) {
        self.shutdown.cancel();
        while self.running.join_next().await.is_some() {}
    }
}

async fn run(recorder: Recorder, shutdown: CancellationToken) {
    if let Err(why) = recorder.run(&shutdown, drop).await {
        let name = &recorder.name;
        tracing::warn!(
            event = "recorder",
            "{name}: stopped: {why}; the next apply or daemon sends the rest"
        );
    }
}
