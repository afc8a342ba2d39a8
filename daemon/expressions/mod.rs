//! Expressions of the graph language: their values, their types, the checker and the evaluation.
//!
//! This folder must never read a file, a clock or the environment: an expression depends on its inputs only. Reading
//! order: `value`, `shared` (the content of lists and maps), `value_type`, `error`, `environment` and `scope` (the
//! names of a place), `expression` (parse, check, evaluate), `text` (`${ }` in values), `syntax` (the text of an
//! expression), `functions` (the closed list), `check` (the types), `comparisons` (names with literal texts),
//! `evaluation` (by minijinja: expressions and templates).

mod check;
mod comparisons;
mod environment;
mod error;
mod evaluation;
mod expression;
mod functions;
mod scope;
mod shared;
mod syntax;
mod text;
mod value;
mod value_type;

pub use comparisons::Comparison;
pub use environment::Environment;
pub use error::{Cause, ExpressionError};
pub use evaluation::program::EngineValues;
pub(crate) use evaluation::template::LONGEST_TEMPLATE;
pub use evaluation::template::{Printed, Template, TemplateError, TemplateLoader};
pub use expression::{Expression, Truth};
pub use functions::table::{Function, all_functions};
pub use functions::version::compare_versions;
pub use functions::words::{TEMPLATE_FILTERS, TEMPLATE_TESTS, WORDS, words};
pub use scope::Scope;
pub use shared::Shared;
pub use text::{TextPart, check_text, evaluate_text, split_text};
pub use value::{NotAValue, Value};
pub use value_type::{MapKey, ValueType};
