//! Several hosts on this machine: real daemons with one world.
//!
//! Reading order: `site` (the harness), `values`, `exports`, `permits`, `deploys`, `bundle_switch`, `mgmt_examples`,
//! `ten_hosts`.

mod bundle_switch;
mod deploys;
mod exports;
pub(crate) mod mgmt_examples;
mod permits;
pub(crate) mod site;
pub(crate) mod ten_hosts;
mod values;
