//! The real driver, engine, hub and journal on a simulated machine: one seed replays a run bit for bit
//! (docs/simulation.md).
//!
//! `STEADFAST_SEED=N cargo nextest run --test simulation one_seed --no-capture` plays one run and prints all of it;
//! `STEADFAST_SEEDS=100000` with the same plays that many from `STEADFAST_SEED` on.

mod adversary;
mod chance;
mod commands;
mod comparison;
mod coverage;
mod environment;
mod harness;
mod lease;
mod life;
mod linked_paths;
mod listener;
mod machinery;
mod oracle;
mod plan;
mod planted_defects;
mod profile;
mod removal;
mod run;
mod runs;
mod schedule;
mod shape;
mod storage;
mod trace;
mod world;
