//! A command as declared: what is run, where, as whom, with which surroundings.

use std::path::PathBuf;

/// A command, as an argument vector; a shell is only its first element where the graph asks for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments; the program is looked up in the fixed PATH.
    pub argv: Vec<String>,
    /// Working directory; `/` where none is given.
    pub cwd: Option<PathBuf>,
    /// Variables besides the fixed ones.
    pub env: Vec<(String, String)>,
    /// User to run as, by name or number.
    pub user: Option<String>,
    /// Group to run as, by name or number.
    pub group: Option<String>,
    /// What it reads; nothing where none is given.
    pub stdin: Option<String>,
    /// Its umask; 022 where none is given.
    pub umask: Option<u32>,
}
