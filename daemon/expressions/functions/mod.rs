//! The closed list of functions and filters: names, types and results.
//!
//! Reading order: `table`, `types`, `calls`, `pattern_cost`, `version`, `words`. The folder never reads the host.

pub(in crate::expressions) mod calls;
pub(in crate::expressions) mod pattern_cost;
pub(in crate::expressions) mod table;
pub(in crate::expressions) mod types;
pub(in crate::expressions) mod version;
pub(super) mod words;
