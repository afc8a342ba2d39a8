//! What the house promises of itself and a compiler does not hold: layers, shape, purity, and that promises have their
//! tests.

mod engine;
mod layers;
mod permits;
mod promises;
mod shape;
mod sources;
mod words;
