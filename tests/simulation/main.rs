//! The simulation: the real driver, engine, hub and journal on a simulated host. One seed replays a run bit for bit
//! (docs/simulation.md).
//!
//! `STEADFAST_SEED=N cargo nextest run --test simulation one_seed --no-capture` plays one run and prints its trace.
//! With `STEADFAST_SEEDS=100000` the same command plays that many runs, from `STEADFAST_SEED` on.
//!
//! Nothing here reads the real clock, the real host or a random source other than [`input::chance`].
//!
//! Reading order: `run` (one run), `runs` (the tests), `environment`, `life`, `machinery` and `listener` (around the
//! daemon), `host/`, `input/`, `judgement/`, `plan`, `lease` with `schedule`, `planted_defects`.

mod environment;
mod host;
mod input;
mod judgement;
mod lease;
mod life;
mod listener;
mod machinery;
mod plan;
mod planted_defects;
mod run;
mod runs;
mod schedule;
mod trace;
