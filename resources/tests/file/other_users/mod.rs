//! Protection against other users: links, races, prepared and moved objects, private content, and runs without root.
//!
//! Reading order: `safety`, `races`, `windows`, `trust`, `strangers` (the harness), `takeover`, `taken_over`,
//! `later_runs`, `access_lists`, `privileges`, `private_objects`, `moved_trees`, `moved_parents`, `restored`,
//! `relatives`, `unprivileged`.

mod access_lists;
pub(crate) mod later_runs;
mod moved_parents;
pub(crate) mod moved_trees;
pub(crate) mod private_objects;
mod privileges;
pub(crate) mod races;
pub(crate) mod relatives;
pub(crate) mod restored;
pub(crate) mod safety;
pub(crate) mod strangers;
mod taken_over;
pub(crate) mod takeover;
pub(crate) mod trust;
pub(crate) mod unprivileged;
pub(crate) mod windows;
