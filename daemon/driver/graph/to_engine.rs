//! What the configuration and the kinds say of a resource, as the engine is to have it.

use std::sync::Arc;
use steadfast_engine as engine;
use steadfast_engine::{SemaphoreId, WindowId};
use steadfast_resources::{Nature, OnInterrupt, Repeat, Seat};

/// The same metaparams with the numbers that semaphores have in the engine.
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

/// What a kind says of itself, in the engine's words.
pub(in crate::driver) fn nature_for_engine(nature: Nature) -> engine::Nature {
    engine::Nature {
        slot: match nature.seat {
            Seat::Thread => engine::SlotClass::Thread,
            Seat::Command => engine::SlotClass::Command,
        },
        check: match nature.repeat {
            Repeat::State => engine::Check::State,
            Repeat::Once => engine::Check::Once,
            Repeat::EachStart => engine::Check::EachStart,
            Repeat::Events => engine::Check::Events,
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
