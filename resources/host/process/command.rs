//! A command as declared: what is run, where, as whom, with which surroundings.

use crate::secret::Secret;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Bound on the tasks of a user for whom a command runs, unless the command declares one.
pub const MAX_TASKS: u32 = 4096;

/// A command, as an argument vector; a shell is only its first element where the graph asks for one.
///
/// Its `Debug` shows neither the values of variables nor what it reads: they may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments; the program is looked up in the fixed PATH.
    pub argv: Vec<String>,
    /// Working directory; `/` where none is given.
    pub cwd: Option<PathBuf>,
    /// Variables besides the fixed ones.
    pub env: Vec<(String, Secret)>,
    /// User to run as, by name or number.
    pub user: Option<String>,
    /// Group to run as, by name or number.
    pub group: Option<String>,
    /// What it reads; nothing where none is given.
    pub stdin: Option<Secret>,
    /// Its umask; 022 where none is given.
    pub umask: Option<u32>,
    /// How long it may take; without one it takes as long as it likes. A watch has none.
    pub timeout: Option<Duration>,
    /// It and what it starts gain no privileges by set-user-ID programs or file capabilities.
    pub no_new_privs: bool,
    /// Bound on the tasks of its user, where it runs as another one; [`MAX_TASKS`] where none is given.
    pub max_tasks: Option<u32>,
    /// Whether root is refused it where somebody else could change the program (S-11).
    pub judged: bool,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { argv, cwd, env, user, group, stdin, umask, timeout, .. } = self;
        let Self { no_new_privs, max_tasks, judged, .. } = self;
        let names: Vec<&str> = env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Command")
            .field("argv", argv)
            .field("cwd", cwd)
            .field("env", &names)
            .field("user", user)
            .field("group", group)
            .field("stdin", &stdin.is_some())
            .field("umask", umask)
            .field("timeout", timeout)
            .field("no_new_privs", no_new_privs)
            .field("max_tasks", max_tasks)
            .field("judged", judged)
            .finish()
    }
}
