//! Everything that proves the engine, through its public face: rules, races, shapes, random schedules, and a model.
//!
//! Reading order: a [`shape`] is a graph as a test writes it, a [`step`] is one thing that may happen, the [`world`] performs
//! what the engine asks for, the [`oracle`] keeps its own books of what must hold, and [`invariants`] names each rule.

mod asking;
mod shape;
mod step;

mod store;
mod twin;
mod world;

mod books;
mod invariants;
mod oracle;
mod order;

mod schedule;

mod generate;
mod properties;
mod replay;

mod bounds;
mod classic;
mod durable;
mod fights;
mod groups;
mod parties;
mod planned;
mod races;
mod regressions;
mod rules;
mod shapes;

mod lies;

mod model;
