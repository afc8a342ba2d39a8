//! Translation of metaparameters and traits of kinds into the types of the engine.

use std::sync::Arc;
use steadfast_engine as engine;
use steadfast_engine::{SemaphoreId, WindowId};
use steadfast_resources::{ExecutorKind, OnInterrupt, RunPolicy, Traits};

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

/// Translates the traits of a kind into the engine's type.
pub(in crate::driver) fn nature_for_engine(nature: Traits) -> engine::Nature {
    engine::Nature {
        slot: match nature.seat {
            ExecutorKind::Thread => engine::SlotClass::Thread,
            ExecutorKind::Command => engine::SlotClass::Command,
        },
        check: match nature.repeat {
            RunPolicy::State => engine::Check::State,
            RunPolicy::Once => engine::Check::Once,
            RunPolicy::EachStart => engine::Check::EachStart,
            RunPolicy::Events => engine::Check::Events,
        },
        interrupted: match nature.on_interrupt {
            OnInterrupt::Again => engine::Interrupted::Again,
            OnInterrupt::Skip => engine::Interrupted::Skip,
            OnInterrupt::Wait => engine::Interrupted::Wait,
        },
        cancellable: nature.cancellable,
        timeout: nature.timeout,
        confined: nature.confined,
    }
}
