//! What a process that was killed in the middle of a change has left: names that exist only until a rename (S-5). Where a run goes on, the
//! first write into a directory sweeps it; where nothing is to be written any more, as after an undo, nobody would.

use super::{Driver, DriverEvent};
use crate::history::History;
use std::sync::Arc;
use std::time::Duration;
use steadfast_resources::host::files::printable;
use steadfast_resources::{Host, MintKey};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long an end waits for it: a directory that hangs holds up nobody.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sweeps where the last changes were made, if whoever made them was cut off. Blocks.
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
    /// Begins it where anything may be changed. On a thread that nobody waits for for long.
    pub(super) fn sweep_strays(&mut self) {
        let may = self.observing.is_none()
            && self.without_lease().is_none()
            && !self.ownership.looks_only();
        let history = self.history.as_ref().filter(|history| may && history.was_cut_off());
        let Some(history) = history.map(Arc::clone) else { return };
        let (key, host, inbox) = (Arc::clone(&self.key), self.host.clone(), self.inbox.clone());
        let thread = std::thread::Builder::new().name("strays".to_owned());
        let begun = thread.spawn(move || {
            sweep(&key, &host, &history);
            inbox.put(DriverEvent::Swept);
        });
        match begun {
            Ok(_) => self.swept_by = Some(Instant::now() + PATIENCE),
            Err(error) => {
                tracing::warn!(%error, "temporary files of an interrupted run were not removed")
            }
        }
    }

    /// Until when an end waits for it; none where it is over, or takes too long.
    pub(super) fn is_swept_by(&self) -> Option<Instant> {
        self.swept_by.filter(|until| *until > Instant::now())
    }
}
