//! The driver through its public face, with a kind of its own: what stands between the engine and those who run as one.

mod group_split;
mod harness;
mod saved_secrets;
