//! What a shell and its user are given besides answers: completions, manual pages, examples in every `--help`.

mod complete;
mod examples;
mod man_pages;

pub(super) use complete::{complete, completions};
pub(super) use man_pages::man;

use super::args::Cli;
use clap::{Command, CommandFactory as _};

/// The command line as it is parsed, completed and described.
pub(super) fn command() -> Command {
    complete::with_names(examples::with_examples(Cli::command()))
}
