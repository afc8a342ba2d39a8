//! The simulation: the real driver, engine, hub and journal on a simulated host. One seed replays a run bit for bit
//! (docs/simulation.md).
//!
//! `STEADFAST_SEED=N cargo nextest run --test simulation one_seed --no-capture` plays one run and prints its trace.
//! With `STEADFAST_SEEDS=100000` the same command plays that many runs, from `STEADFAST_SEED` on.
//!
//! Nothing here reads the real clock, the real host or a random source other than [`chance`].
//!
//! Reading order: `run` (one run), `runs` (the tests), `environment`, `life`, `machinery`, `storage`, `world`,
//! `harness` and `listener` (around the daemon), `shape`, `removal`, `linked_paths` and `profile` (random input),
//! `commands` and `adversary` (actors), `oracle` and `coverage` (judgement), `plan` with `comparison`, `lease` with
//! `schedule`, `planted_defects`.

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
