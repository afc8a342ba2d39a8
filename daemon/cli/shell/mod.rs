//! Shell integration: completions, manual pages, and examples in every `--help`.
//!
//! The files must not run any command. Reading order: `examples`, `complete`, `man_pages`.

mod complete;
mod examples;
mod man_pages;

pub(super) use complete::{complete, completions};
pub(super) use man_pages::man;

use super::args::Cli;
use clap::{Command, CommandFactory as _};

/// Returns the command line definition for parsing, completion and documentation.
pub(super) fn command() -> Command {
    complete::with_names(examples::with_examples(Cli::command()))
}
