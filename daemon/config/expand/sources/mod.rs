//! The sources of an expansion: files and includes, variables, facts of the host, and types of probes.
//!
//! Reading order: `inputs` (files), `patterns`, `include`, `variables` (their definitions), `variable_values`,
//! `host_facts`, `probe_types`. Nothing outside of this folder reads a file.

pub(in crate::config::expand) mod host_facts;
pub(in crate::config::expand) mod include;
pub(in crate::config) mod inputs;
mod patterns;
pub(in crate::config::expand) mod probe_types;
pub(in crate::config::expand) mod variable_values;
pub(in crate::config::expand) mod variables;
