//! The tests of the driver through its public interface, with a kind of their own: groups and saved secrets.
//!
//! Nothing here touches the real host. Reading order: `harness`, `group_split`, `saved_secrets`.

mod group_split;
mod harness;
mod saved_secrets;
