//! Edits of one value in a data file (JSON, YAML, TOML): the text is changed at the bytes of the value alone.
//!
//! Each edit is proven before it counts: the new text is read again, and its data must equal the old data with the
//! one value changed. An edit that cannot be proven is refused.
//!
//! Reading order: `tree.rs` (values), `nodes.rs` (values with their positions), `read_json.rs`, `read_yaml.rs`,
//! `scalars.rs` (texts of values), `splice.rs`, `flow.rs` and `block.rs` (edits), `editor.rs`, `declare.rs`.

mod block;
pub(crate) mod declare;
mod editor;
pub(crate) mod flow;
pub(crate) mod nodes;
mod read_json;
mod read_yaml;
pub(crate) mod scalars;
pub(crate) mod splice;
pub(crate) mod tree;

pub(crate) use editor::{DataEditor, Format};
