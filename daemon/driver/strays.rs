//! What a process that was killed in the middle of a change has left: names that exist only until a rename (S-5). Where a run goes on, the
//! first write into a directory sweeps it; where nothing is to be written any more, as after an undo, nobody would.

use super::Driver;
use crate::history::History;
use std::sync::Arc;
use steadfast_resources::host::files::printable;
use steadfast_resources::{Host, MintKey};
use tokio_util::sync::CancellationToken;

/// Sweeps where the last changes were made, if whoever made them was cut off. Blocks.
pub(super) fn sweep(key: &MintKey, host: &Host, history: &History, cancel: &CancellationToken) {
    for directory in history.where_cut_off() {
        let permit = key.mint(cancel.clone());
        let name = printable(&directory);
        match host.files().sweep(&permit, &directory) {
            Ok(0) => {}
            Ok(count) => tracing::info!("{name}: {count} left by a run that was cut off, removed"),
            Err(fault) => tracing::debug!(?fault, "{name}: not swept"),
        }
    }
}

impl Driver {
    /// The same beside what runs: a directory that hangs holds up nobody but a stop.
    pub(super) fn sweep_strays(&mut self) {
        let may = self.observing.is_none()
            && self.without_lease().is_none()
            && !self.ownership.looks_only();
        let history = self.history.as_ref().filter(|history| may && history.was_cut_off());
        if let Some(history) = history.map(Arc::clone) {
            self.beside(move |key, host, cancel| {
                sweep(key, host, &history, &cancel);
                (None, || ())
            });
        }
    }
}
