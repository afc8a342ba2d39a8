//! The evaluation by minijinja, of expressions and of templates.
//!
//! Reading order: `program` (expressions), `template`, `quoting` (filters), `nested_values`, `bounded_text` and
//! `text_filters`, `bindings`, `operands`, `absent_facts`, `shared_view`, `products`, `template_advice`. The folder
//! never reads the host.

mod absent_facts;
mod bindings;
pub(in crate::expressions) mod bounded_text;
mod nested_values;
mod operands;
mod products;
pub(in crate::expressions) mod program;
pub(in crate::expressions) mod quoting;
mod shared_view;
pub(in crate::expressions) mod template;
mod template_advice;
mod text_filters;
