//! Facts: typed, read-only values about this host, which expressions of a graph use as `facts.NAME`.
//!
//! This folder must never start a process, change the host or know a graph. Reading order: `schema` and `table` (all
//! facts), `host_root` (the files below a root directory), `collect`, the parts `os`, `hardware`, `network`, `netlink`,
//! `storage`, `platform`, `cloud`, `local`, then `check` (values against the schema), `possible_values`, `facts_file`,
//! `value_count` (its limit) and `changes`.

mod changes;
mod check;
mod cloud;
mod collect;
mod facts_file;
mod hardware;
mod host_root;
mod local;
mod netlink;
mod network;
mod os;
mod platform;
mod possible_values;
mod schema;
mod storage;
mod table;
mod value_count;

pub use changes::{
    ChangedFact, changed_facts, facts_changed_by_kind, kinds_that_change, names_overlap,
};
pub use check::{FactProblem, display_facts, refuse_display_fact};
pub use collect::{Facts, collect};
pub use facts_file::{FactsFileError, check_facts, read_facts_file};
pub use host_root::{HostRoot, SystemAnswers};
pub use local::LOCAL_FACTS;
pub use netlink::{AddressChanges, InterfaceAddress};
pub use possible_values::{ImpossibleValue, find_impossible_value};
pub use schema::{
    FactClass, FactSource, FactSpec, FactType, facts_type, find_fact, is_fact_or_group,
    is_known_name, sources_of_facts,
};
pub use table::SCHEMA;
