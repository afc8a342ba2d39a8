//! The real driver, engine, hub and journal on a simulated machine: one seed replays a run bit for bit (docs/simulation.md).
//!
//! `STEADFAST_SEED=N cargo nextest run --test simulation one_seed --no-capture` plays one run and prints all of it;
//! `STEADFAST_SEEDS=100000` with the same plays that many from `STEADFAST_SEED` on.

mod agenda;
mod chance;
mod commands;
mod compared;
mod ground;
mod leased;
mod leaving;
mod led;
mod life;
mod listener;
mod machinery;
mod meddler;
mod oracle;
mod planned;
mod planted;
mod play;
mod profile;
mod runs;
mod shape;
mod sights;
mod stage;
mod storage;
mod trace;
mod world;
