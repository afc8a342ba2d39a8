//! A command as declared: program, working directory, user and environment.

use crate::secrets::secret_text::Secret;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The limit of tasks of another user's command, unless the command declares one.
pub const MAX_TASKS: u32 = 4096;

/// A command as an argument vector; the first element is a shell only if the graph asks for one.
///
/// `Debug` shows neither the values of variables nor the input, because they may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments; the program is searched in the fixed PATH.
    pub argv: Vec<String>,
    /// The working directory; `/` by default.
    pub cwd: Option<PathBuf>,
    /// The variables besides the fixed ones.
    pub env: Vec<(String, Secret)>,
    /// The user to run as, by name or number.
    pub user: Option<String>,
    /// The group to run as, by name or number.
    pub group: Option<String>,
    /// The input; empty by default.
    pub stdin: Option<Secret>,
    /// The umask; 022 by default.
    pub umask: Option<u32>,
    /// The deadline; none means no limit, as for a watch.
    pub timeout: Option<Duration>,
    /// The command and its children gain no privileges from set-user-ID programs or file capabilities.
    pub no_new_privs: bool,
    /// The limit of the other user's tasks; [`MAX_TASKS`] by default.
    pub max_tasks: Option<u32>,
    /// Root must not run the command if another user could change its program (S-11).
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
