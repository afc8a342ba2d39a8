//! The tests of the driver through its public interface, with a kind of their own: groups, checks without an answer,
//! and saved secrets.
//!
//! Nothing here touches the real host. Reading order: `harness`, `group_split`, `late_checks`, `saved_secrets`.

mod group_split;
mod harness;
mod late_checks;
mod saved_secrets;
