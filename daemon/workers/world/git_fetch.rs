//! One file of a git repository, with limits of time and size. No history is fetched, and of the newest commit only
//! this file, if the server supports partial clones.

use crate::world::bundle::MAX_BUNDLE_BYTES;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steadfast_resources::host::{Command, End, git_command};
use steadfast_resources::{Failure, Host};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// The time limit of each call of git.
const PATIENCE: Duration = Duration::from_mins(2);

/// The time after which `timeout` ends a call of git whose daemon was killed, and would have ended it before.
const LEFT_BEHIND: Duration = Duration::from_secs(130);

/// The folder of the fetched repository.
const FOLDER: &str = "git";

/// The largest file that a call of git may write: a server without partial clones sends all bundles of the branch.
const MAX_WRITTEN_BYTES: u64 = 8 * MAX_BUNDLE_BYTES;

/// Lines of git that say nothing about the cause.
const GENERAL_ADVICE: [&str; 3] = [
    "Please make sure you have the correct access rights",
    "and the repository exists.",
    "fatal: Could not read from remote repository.",
];

/// The reason for which a file was not fetched.
#[derive(Debug, Error)]
#[error("{repository}: {why}")]
pub(super) struct GitFetchError {
    repository: String,
    why: String,
}

/// A fetched file. Its folder is removed with this value, and so is that of a fetch that fails or is cut off.
pub(super) struct FetchedFile {
    pub(super) path: PathBuf,
    _folder: ScratchFolder,
}

/// A folder that exists as long as this value.
struct ScratchFolder(PathBuf);

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::debug!(%error, "a fetched repository was not removed");
        }
    }
}

/// Fetches a file at the top of a branch or tag into a folder below `scratch`.
///
/// # Errors
/// [`GitFetchError`] if git is missing, if the repository cannot be read in time, or if it has no such reference or
/// file.
pub(super) async fn fetch_from_git(
    (repository, reference): (&str, &str),
    file: &str,
    scratch: &Path,
) -> Result<FetchedFile, GitFetchError> {
    let failed = |why: String| GitFetchError { repository: repository.to_owned(), why };
    let folder = scratch.join(FOLDER);
    let tree = folder.join("repository.git").display().to_string();
    let fetched = folder.join("bundle");
    let made = folder.clone();
    let made = tokio::task::spawn_blocking(move || make_empty(&made)).await;
    made.map_err(io::Error::from)
        .flatten()
        .map_err(|error| failed(format!("{}: {error}", folder.display())))?;
    let removed = ScratchFolder(folder.clone());
    let fetch =
        ["fetch", "-q", "--depth=1", "--no-tags", "--filter=blob:none", "origin", reference];
    let calls: [&[&str]; 3] = [
        &["init", "-q", "--bare", "--template="],
        &["config", "remote.origin.url", repository],
        &fetch,
    ];
    for words in calls {
        run(bounded(git_command(Some(&tree), words, scratch), LEFT_BEHIND))
            .await
            .map_err(failed)?;
    }
    let blob = format!("FETCH_HEAD:{file}");
    let read = git_command(Some(&tree), &["cat-file", "blob", &blob], scratch);
    run(bounded(written_to(read, &fetched), LEFT_BEHIND)).await.map_err(failed)?;
    Ok(FetchedFile { path: fetched, _folder: removed })
}

/// Makes an empty folder: nothing of an earlier fetch is used.
fn make_empty(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut folders = std::fs::DirBuilder::new();
    folders.recursive(true).mode(0o700).create(folder.join("repository.git"))
}

/// Removes the repository of a daemon that was killed during a fetch.
pub(super) fn remove_leftover(scratch: &Path) {
    match std::fs::remove_dir_all(scratch.join(FOLDER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::debug!(%error, "a fetched repository was not removed");
        }
        _ => {}
    }
}

/// Limits the size of each file that a command writes, and its time: the command ends also if this program is killed.
fn bounded(command: Command, limit: Duration) -> Command {
    let size = format!("--fsize={MAX_WRITTEN_BYTES}");
    let time = format!("{}s", limit.as_secs());
    let words = ["timeout", "-k", "5s", &time, "prlimit", &size, "--"].map(str::to_owned);
    Command { argv: words.into_iter().chain(command.argv).collect(), ..command }
}

/// Writes the standard output of a command to a new file.
fn written_to(command: Command, path: &Path) -> Command {
    let script = "exec \"$@\" > \"$0\"";
    let path = path.display().to_string();
    let shell = ["sh".to_owned(), "-c".to_owned(), script.to_owned(), path];
    Command { argv: shell.into_iter().chain(command.argv).collect(), ..command }
}

/// Runs a call of git. The call ends with the future.
async fn run(command: Command) -> Result<(), String> {
    let mut command = Command { timeout: Some(PATIENCE), ..command };
    // A silent server ends git by itself, also after a crash of this program.
    let options = [
        ("GIT_HTTP_LOW_SPEED_LIMIT", "1000"),
        ("GIT_HTTP_LOW_SPEED_TIME", "30"),
        ("GIT_SSH_COMMAND", "ssh -oBatchMode=yes -oConnectTimeout=15 -oServerAliveInterval=10"),
    ];
    command.env.extend(options.map(|(name, value)| (name.to_owned(), value.into())));
    let finished = Host::default().query(&command, &CancellationToken::new()).await;
    let finished = finished.map_err(|failure: Failure| failure.to_string())?;
    if finished.is_success() {
        return Ok(());
    }
    let said: Vec<String> = finished.stderr.last_lines(12);
    let said: Vec<&str> = said
        .iter()
        .map(|line| line.trim())
        .filter(|line| !line.is_empty() && !GENERAL_ADVICE.contains(line))
        .collect();
    match said.as_slice() {
        _ if finished.end == End::TimedOut => Err("no complete answer within 2 min".to_owned()),
        [] => Err(format!("git ended with {:?}", finished.end)),
        said => Err(said.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call ends without this program, and what a killed program left is removed.
    #[test]
    fn a_call_of_a_killed_program_ends() {
        let argv = ["sleep", "60"].map(str::to_owned).to_vec();
        let command = bounded(Command { argv, ..Command::default() }, Duration::from_secs(1));
        let (program, words) = command.argv.split_first().unwrap();
        let ended = std::process::Command::new(program).args(words).status().unwrap();
        assert_eq!(ended.code(), Some(124), "{:?}", command.argv);
        let scratch = tempfile::tempdir().unwrap();
        make_empty(&scratch.path().join(FOLDER)).unwrap();
        remove_leftover(scratch.path());
        remove_leftover(scratch.path());
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}
