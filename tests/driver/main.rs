//! The driver through its public face, with a kind of its own: what stands between the engine and those who run as one.

mod apart;
mod ground;
mod sealed;
