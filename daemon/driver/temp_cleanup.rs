//! Cleanup of temporary names that a killed process left in the middle of a change (S-5). Usually the first write into
//! a directory cleans it; this cleanup covers directories without further writes, as after an undo.

use super::{Driver, DriverEvent};
use crate::history::History;
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::host::files::printable;
use steadfast_resources::{Host, MintKey};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time that the end of the driver waits for a cleanup; a directory may hang.
const PATIENCE: Duration = Duration::from_secs(2);

/// Cleans the directories of the last changes if their session was killed. Blocks.
pub(super) fn sweep(key: &MintKey, host: &Host, history: &History) {
    for directory in history.where_cut_off() {
        let permit = key.mint(CancellationToken::new());
        let name = printable(&directory);
        match host.files().sweep(&permit, &directory) {
            Ok(0) => {}
            Ok(count) => tracing::info!("{name}: {count} of an interrupted run removed"),
            Err(fault) => tracing::debug!(?fault, "{name}: temporary files not removed"),
        }
    }
    history.is_seen_to();
}

impl Driver {
    /// Starts the cleanup on a thread of its own, if changes are allowed.
    pub(super) fn sweep_strays(&mut self) {
        let may = self.observing.is_none()
            && self.without_lease().is_none()
            && !self.ownership.looks_only();
        let history = self.history.as_ref().filter(|history| may && history.was_cut_off());
        let Some(history) = history.map(Arc::clone) else { return };
        let (key, host, inbox) =
            (Arc::clone(&self.key), self.runtime.host.clone(), self.runtime.inbox());
        let thread = std::thread::Builder::new().name("strays".to_owned());
        let begun = thread.spawn(move || {
            sweep(&key, &host, &history);
            inbox.put(DriverEvent::Swept);
        });
        match begun {
            Ok(_) => self.swept_by = Some(Instant::now() + PATIENCE),
            Err(error) => {
                tracing::warn!(%error, "temporary files of an interrupted run were not removed");
            }
        }
    }

    /// Returns the time until which the end of the driver waits for the cleanup; `None` if the cleanup is done or late.
    pub(super) fn is_swept_by(&self) -> Option<Instant> {
        self.swept_by.filter(|until| *until > Instant::now())
    }
}
