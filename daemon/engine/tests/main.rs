//! All tests of the engine through its public interface: rules, races, shapes, random schedules, and a model.
//!
//! Reading order: a `shape` is a graph as a test writes it, a `step` is one possible event, the `environment` performs
//! the engine's actions, the `oracle` records independently all that must hold (`oracle_log`), and `invariants` names
//! each rule. The tests must never read the engine's private state.

mod attribution;
mod contention;
mod dry_run;
mod environment;
mod failing;
mod hold_and_wait_model;
mod late;
mod oracle_log;
mod oracle_self_test;
mod parents_first;
mod reference_graphs;
mod remade_equivalence;
mod shape;
mod step;

mod store;

mod invariants;
mod oracle;
mod order;

mod schedule;

mod generate;
mod properties;
mod replay;

mod bounds;
mod durable;
mod groups;
mod races;
mod regressions;
mod rules;

mod model;
