//! One file of a git repository, with limits of time and size. No history is fetched, and of the newest commit only
//! this file, if the server supports partial clones.

use crate::world::bundle::MAX_BUNDLE_BYTES;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steadfast_resources::host::{Command, git_command};
use steadfast_resources::{Failure, Host};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

/// The time limit of each call of git.
const PATIENCE: Duration = Duration::from_mins(2);

/// The largest file that a call of git may write: a server without partial clones sends all bundles of the branch.
const MAX_WRITTEN_BYTES: u64 = 8 * MAX_BUNDLE_BYTES;

/// The reason for which a file was not fetched.
#[derive(Debug, Error)]
#[error("{repository}: {why}")]
pub(super) struct GitFetchError {
    repository: String,
    why: String,
}

/// Fetches a file at the top of a branch or tag. Returns its path below `scratch`, to be removed with
/// [`remove_fetched`].
///
/// # Errors
/// [`GitFetchError`] if git is missing, if the repository cannot be read in time, or if it has no such reference or
/// file.
pub(super) async fn fetch_from_git(
    (repository, reference): (&str, &str),
    file: &str,
    scratch: &Path,
) -> Result<PathBuf, GitFetchError> {
    let failed = |why: String| GitFetchError { repository: repository.to_owned(), why };
    let folder = scratch.join("git");
    let tree = folder.join("repository.git").display().to_string();
    let fetched = folder.join("bundle");
    let made = folder.clone();
    let made = tokio::task::spawn_blocking(move || make_empty(&made)).await;
    made.map_err(io::Error::from)
        .flatten()
        .map_err(|error| failed(format!("{}: {error}", folder.display())))?;
    let fetch =
        ["fetch", "-q", "--depth=1", "--no-tags", "--filter=blob:none", "origin", reference];
    let calls: [&[&str]; 3] = [
        &["init", "-q", "--bare", "--template="],
        &["config", "remote.origin.url", repository],
        &fetch,
    ];
    for words in calls {
        run(bounded(git_command(Some(&tree), words, scratch))).await.map_err(failed)?;
    }
    let blob = format!("FETCH_HEAD:{file}");
    let read = git_command(Some(&tree), &["cat-file", "blob", &blob], scratch);
    run(bounded(written_to(read, &fetched))).await.map_err(failed)?;
    Ok(fetched)
}

/// Removes what was fetched.
pub(super) fn remove_fetched(scratch: &Path) {
    if let Err(error) = std::fs::remove_dir_all(scratch.join("git")) {
        tracing::debug!(%error, "a fetched repository was not removed");
    }
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

/// Limits the size of each file that a command writes.
fn bounded(command: Command) -> Command {
    let limit = format!("--fsize={MAX_WRITTEN_BYTES}");
    let argv = ["prlimit".to_owned(), limit, "--".to_owned()];
    Command { argv: argv.into_iter().chain(command.argv).collect(), ..command }
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
    let command = Command { timeout: Some(PATIENCE), ..command };
    let finished = Host::default().query(&command, &CancellationToken::new()).await;
    let finished = finished.map_err(|failure: Failure| failure.to_string())?;
    if finished.is_success() {
        return Ok(());
    }
    let said = finished.stderr.last_lines(3).join("; ");
    if said.is_empty() { Err(format!("git ended with {:?}", finished.end)) } else { Err(said) }
}
