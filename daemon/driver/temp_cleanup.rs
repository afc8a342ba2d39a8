//! Cleanup of temporary names that a killed process left in the middle of a change (S-5). Usually the first write into
//! a directory cleans it; this cleanup covers directories without further writes, as after an undo.

use crate::history::History;
use steadfast_resources::host::files::printable;
use steadfast_resources::{Host, MintKey, Recorders};
use tokio_util::sync::CancellationToken;

/// Cleans the directories of the last changes if their session was killed. Blocks.
pub(super) fn clean_up(key: &MintKey, host: &Host, history: &History) {
    for directory in history.where_cut_off() {
        let permit = key.mint(CancellationToken::new(), Recorders::None);
        let name = printable(&directory);
        match host.files().sweep(&permit, &directory) {
            Ok(0) => {}
            Ok(count) => tracing::info!("{name}: {count} of an interrupted run removed"),
            Err(fault) => tracing::debug!(?fault, "{name}: temporary files not removed"),
        }
    }
    history.is_seen_to();
}
