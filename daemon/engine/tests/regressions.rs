//! Regression tests from a review of the engine (docs/development/engine-review.md): each schedule failed before its
//! fix.

mod contention;
mod convergence;
mod interrupts;
mod noop;
mod notices;
mod pauses;
mod polls;
mod slots;
mod swaps;
