//! The evaluation by minijinja, of expressions and of templates.
//!
//! Reading order: `program` (expressions), `template`, `quoting` (filters), `nested_values`, `bindings`, `products`,
//! `template_advice`. The folder never reads the host.

mod bindings;
mod nested_values;
mod products;
pub(in crate::expressions) mod program;
pub(in crate::expressions) mod quoting;
pub(in crate::expressions) mod template;
mod template_advice;
