//! The judgement of a run: deviations at its end, situations that must occur, and plan against apply.
//!
//! Nothing here uses the kinds or the engine. Reading order: `oracle`, `coverage`, `comparison`.

pub(crate) mod comparison;
pub(crate) mod coverage;
pub(crate) mod oracle;
