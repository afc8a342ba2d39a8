//! The tests of the driver through its public interface, with a kind of their own: groups, checks without an answer,
//! saved secrets, and permits of the world whose lease has expired.
//!
//! Nothing here touches the real host. Reading order: `harness`, `group_split`, `late_checks`, `saved_secrets`,
//! `expired_permits`.

mod expired_permits;
mod group_split;
mod harness;
mod late_checks;
mod saved_secrets;
