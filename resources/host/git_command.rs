//! Calls of git in which nothing of a repository runs: no hook, no file system monitor, no transport by a command.

use super::Command;
use std::path::Path;

/// The options of every call.
const SAFE: [&str; 8] = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "advice.detachedHead=false",
];

/// Makes a call of git with these words. It asks for no password and looks for no repository in `above` or higher up.
///
/// ```
/// use steadfast_resources::host::git_command;
/// let command = git_command(None, &["status"], "/srv".as_ref());
/// assert_eq!((command.argv[0].as_str(), command.argv.last().unwrap().as_str()), ("git", "status"));
/// ```
#[must_use]
pub fn git_command(tree: Option<&str>, words: &[&str], above: &Path) -> Command {
    let mut argv = vec!["git"];
    argv.extend(tree.into_iter().flat_map(|tree| ["-C", tree]));
    argv.extend(SAFE);
    argv.extend(words);
    let argv = argv.into_iter().map(str::to_owned).collect();
    let above = above.to_str().unwrap_or("/");
    let env = [
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "/bin/false"),
        ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
        // A check writes nothing, not even the index.
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("LC_ALL", "C.UTF-8"),
        // A broken tree is not replaced by a repository above it.
        ("GIT_CEILING_DIRECTORIES", above),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.into())).to_vec();
    Command { argv, env, no_new_privs: true, ..Command::default() }
}
