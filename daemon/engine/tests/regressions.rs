//! Schedules of a review of the engine (docs/development/engine-review.md): each failed before the engine was mended.

mod contention;
mod convergence;
mod interrupts;
mod noop;
mod notices;
mod pauses;
mod polls;
mod slots;
mod swaps;
