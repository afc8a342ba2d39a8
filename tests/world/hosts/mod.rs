//! Several hosts on this machine: real daemons with one world.
//!
//! Reading order: `site` (the harness), `values`, `exports`, `permits`, `deploys`.

mod deploys;
mod exports;
mod permits;
pub(crate) mod site;
mod values;
