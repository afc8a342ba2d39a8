//! A run from its check to its durable end, and the consequences of its outcome.
//!
//! The folder never starts a run, and an apply never begins before its begin was written.
//!
//! Reading order: `steps` (checked, ended, durable), `durable_begin` (before the apply), `owed_refreshes`, `retries`,
//! `asking_ancestors` (before a failure counts), `dry_run`.

pub(crate) mod asking_ancestors;
pub(crate) mod dry_run;
pub(crate) mod durable_begin;
pub(crate) mod owed_refreshes;
pub(crate) mod retries;
pub(crate) mod steps;
