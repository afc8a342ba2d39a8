//! Arguments of the commands that write completions and manual pages.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `steadfast completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// Shell to complete for
    #[arg(value_enum)]
    pub shell: Shell,
}

/// The shells that can complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// GNU bash, 4.4 or later.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
}

/// `steadfast man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Output directory; one page per command
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}
