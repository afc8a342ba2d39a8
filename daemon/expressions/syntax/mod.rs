//! The text of an expression: tokens, and the tree that the parser makes of them.
//!
//! Reading order: `tokens`, `node`, `parse`, `refusals` and `advice` (messages). The folder never reads the host.

pub(in crate::expressions) mod advice;
pub(in crate::expressions) mod node;
pub(in crate::expressions) mod parse;
mod refusals;
pub(in crate::expressions) mod tokens;
