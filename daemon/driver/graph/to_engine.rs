//! The engine's numbers of semaphores and windows in metaparams.

use std::sync::Arc;
use steadfast_engine as engine;
use steadfast_engine::{SemaphoreId, WindowId};

/// Returns the metaparameters with the engine's numbers of semaphores and windows.
pub(in crate::driver) fn renumber(
    meta: &Arc<engine::Meta>,
    semaphores: &[SemaphoreId],
    windows: &[WindowId],
) -> Arc<engine::Meta> {
    let mut mine = engine::Meta::clone(meta);
    for id in &mut mine.semaphores {
        *id = semaphores.get(id.0 as usize).copied().unwrap_or(*id);
    }
    mine.window = meta.window.and_then(|id| windows.get(id.0 as usize).copied());
    mine.semaphores.sort_unstable();
    mine.semaphores.dedup();
    Arc::new(mine)
}
