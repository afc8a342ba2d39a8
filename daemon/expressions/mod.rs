//! Expressions of the graph language: their values, their types, the checker and the evaluation.
//!
//! This folder must never read a file, a clock or the environment: an expression depends on its inputs only. Reading
//! order: `value`, `value_type`, `error`, `environment` and `scope` (the names of a place), `expression` (parse, check,
//! evaluate), `text` (`${ }` in values), `template` and `quoting`; then `tokens`, `node` and `parse` (the text),
//! `function_table`, `function_types`, `functions` and `version` (the closed list of functions), `check` (the types),
//! `program` (the evaluation by minijinja).

mod check;
mod environment;
mod error;
mod expression;
mod function_table;
mod function_types;
mod functions;
mod node;
mod parse;
mod program;
mod quoting;
mod scope;
mod template;
mod text;
mod tokens;
mod value;
mod value_type;
mod version;

pub use environment::Environment;
pub use error::{Cause, ExpressionError};
pub use expression::Expression;
pub use function_table::{Function, all_functions};
pub use scope::Scope;
pub use template::{Printed, Template, TemplateError, TemplateLoader};
pub use text::{TextPart, check_text, evaluate_text, split_text};
pub use value::{NotAValue, Value};
pub use value_type::{MapKey, ValueType};
pub use version::compare_versions;
