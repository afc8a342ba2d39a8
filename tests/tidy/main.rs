//! Rules of the repository that no compiler checks: layers, purity, file shape, permits, words, and tests for all
//! promises.
//!
//! Nothing here runs the program. Reading order: `sources` (the repository's files), then `layers`, `engine`,
//! `permits`, `shape`, `promises`, `pages` and `words`.

mod engine;
mod layers;
mod pages;
mod permits;
mod promises;
mod shape;
mod sources;
mod words;
