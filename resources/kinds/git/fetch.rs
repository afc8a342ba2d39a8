//! Fetches a version and checks it out.

use super::{CHECKOUT, Tree, VERSION, is_commit};
use crate::failure::Failure;
use crate::host::files::{Fault, Files, Reach};
use crate::host::{Command, End, Host, wall};
use crate::parts::commands::{command, failed, run_change};
use crate::parts::field_reader::bounded;
use crate::parts::staging::guard_parent;
use crate::parts::{WriteFailure, on_thread};
use crate::permit::Permit;
use crate::secrets::escape::short;
use rustix::fs::FileType;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Returns the full reference and the commit of the declared version in the repository.
///
/// # Errors
///
/// Fails if the repository cannot be reached or has no such branch or tag.
pub(super) async fn remote_commit(
    tree: &Tree,
    repo: &str,
    (host, cancel): (&Host, &CancellationToken),
) -> Result<(String, String), Failure> {
    let ask = tree.git_outside(&["ls-remote", "--", repo]);
    let ask = Command { timeout: Some(tree.timeout), ..ask };
    let finished = host.query(&ask, cancel).await?;
    if finished.end != End::Exited(0) {
        let failure = failed(&ask, &finished);
        let what = bounded(format!("cannot read the repository {}", short(repo, 60)));
        let hint = "check `repo`, the network and the credentials of `user`";
        return Err(Failure::new(format!("{what}\n{}", failure.what)).hint(hint).passing());
    }
    let text = finished.stdout.text();
    let refs: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    let find =
        |name: &str| refs.iter().find(|(_, found)| *found == name).map(|(commit, _)| *commit);
    let version = &tree.version;
    if version == "HEAD"
        && let Some(commit) = find("HEAD")
    {
        return Ok(("HEAD".to_owned(), commit.to_owned()));
    }
    let (tag, branch) = (format!("refs/tags/{version}"), format!("refs/heads/{version}"));
    // The commit of an annotated tag has a line of its own.
    let of_tag = find(&format!("{tag}^{{}}")).or_else(|| find(&tag));
    if let Some(commit) = of_tag {
        return Ok((tag, commit.to_owned()));
    }
    if let Some(commit) = find(&branch) {
        return Ok((branch, commit.to_owned()));
    }
    if finished.stdout.truncated() {
        let what = "the repository has too many references; declare a full commit";
        return Err(Failure::new(what));
    }
    let what = format!("the repository has no branch or tag {}", short(version, 50));
    Err(Failure::new(what).hint("`git ls-remote REPO` lists them").passing())
}

/// Brings the tree to the declared version: initialises it, fetches what is missing, and checks out.
///
/// # Errors
///
/// Fails if the version cannot be fetched or checked out.
pub(super) async fn bring(tree: &Tree, host: &Host, permit: &Permit) -> Result<(), WriteFailure> {
    let never = CancellationToken::new();
    let found = tree.look(host, &never).await.map_err(WriteFailure::untouched)?;
    let is_new = found.is_none();
    let mut commit = found.as_ref().and_then(|found| found.wanted.clone());
    let knows = match &commit {
        Some(commit) => {
            let object = format!("{commit}^{{commit}}");
            let known = tree.line(host, &never, &["rev-parse", "--verify", "-q", &object]).await;
            known.map_err(WriteFailure::untouched)?.is_some()
        }
        None => false,
    };
    let moves = found.as_ref().is_some_and(|found| tree.repo.is_some() && found.repo != tree.repo);
    let mut is_fetched = false;
    if let Some(repo) = tree.repo.as_deref().filter(|_| !knows || moves) {
        let (reference, wanted) = if is_commit(&tree.version) {
            (tree.version.clone(), tree.version.clone())
        } else {
            let remote = remote_commit(tree, repo, (host, &never)).await;
            remote.map_err(WriteFailure::untouched)?
        };
        fetch_version(tree, repo, (host, permit), (&reference, is_new)).await?;
        commit = Some(wanted);
        is_fetched = true;
    }
    let Some(commit) = commit else {
        let what = "the former commit is not in the working tree any more";
        return Err(WriteFailure::untouched(Failure::new(what)));
    };
    if tree.verify {
        let judged = verify_signature(tree, (host, &never), &commit).await;
        judged.map_err(|failure| WriteFailure::untouched(failure).after(is_fetched))?;
    }
    let mut checkout = vec!["checkout", "-q", "--detach"];
    // The first checkout of an unborn HEAD may have been cut off.
    let is_unborn = found.as_ref().is_none_or(|found| found.head.is_none());
    let is_cut_off = found.as_ref().is_some_and(|found| found.is_cut_off);
    if tree.force || is_unborn || is_cut_off {
        checkout.push("--force");
    }
    checkout.push(&commit);
    let at = (tree, host, permit);
    let done = check_out(at, (&checkout, &commit), is_cut_off).await;
    done.map_err(|failure| failure.after(is_fetched))
}

/// Checks a commit out. A checkout that is cut off is recognised by its mark, and completed by the next one.
async fn check_out(
    (tree, host, permit): (&Tree, &Host, &Permit),
    (words, commit): (&[&str], &str),
    is_cut_off: bool,
) -> Result<(), WriteFailure> {
    if is_cut_off {
        let (path, own_permit) = (tree.path.join(".git/index.lock"), permit.for_thread());
        let removed = move |host: &Host| remove_old_lock(host.files(), &own_permit, &path);
        on_thread(host, removed).await.and_then(|it| it).map_err(WriteFailure::untouched)?;
    }
    run(tree, host, permit, &["config", CHECKOUT, commit]).await?;
    let done = run(tree, host, permit, words).await;
    if let Err(WriteFailure { failure, touched }) = done {
        let failure = if is_cut_off { failure.passing() } else { failure };
        return Err(WriteFailure { failure, touched });
    }
    run(tree, host, permit, &["config", "--unset", CHECKOUT]).await
}

/// Removes the lock of a git that was killed. A git that goes on without its daemon ends within a minute.
fn remove_old_lock(files: &Files, permit: &Permit, path: &Path) -> Result<(), Failure> {
    let remove = || -> Result<(), Fault> {
        let Some(spot) = files.open_entry(path)? else { return Ok(()) };
        let Some(seen) = spot.look()? else { return Ok(()) };
        let age = wall().as_secs().cast_signed() - seen.changed.0;
        if seen.kind != FileType::RegularFile || age <= 60 {
            return Ok(());
        }
        files.remove(permit, &spot, &seen, Reach::One)
    };
    remove().map_err(|fault| files.failure(fault, path))
}

/// Fetches a reference from the repository, into a new or an existing tree.
async fn fetch_version(
    tree: &Tree,
    repo: &str,
    (host, permit): (&Host, &Permit),
    (reference, is_new): (&str, bool),
) -> Result<(), WriteFailure> {
    if is_new {
        guard_empty(tree, host).await.map_err(WriteFailure::untouched)?;
        let path = tree.path.display().to_string();
        let init = tree.git_outside(&["init", "-q", "--template=", "--", &path]);
        if let Err(failure) = run_change(host, permit, &init).await {
            // A part of a repository would count as one for ever. The directory was empty before.
            let part = format!("{path}/.git");
            let remove = ["rm", "-rf", "--one-file-system", "--", &part];
            let remove = tree.as_user(command(&remove));
            drop(run_change(host, permit, &remove).await);
            return Err(failure);
        }
    }
    run(tree, host, permit, &["config", "remote.origin.url", repo]).await?;
    let refspec = "+refs/heads/*:refs/remotes/origin/*";
    run(tree, host, permit, &["config", "remote.origin.fetch", refspec]).await?;
    let depth = tree.depth.map(|depth| format!("--depth={depth}"));
    let to = format!("+{reference}:{VERSION}");
    let mut words = vec!["fetch", "-q", "--no-tags", "--no-recurse-submodules"];
    words.extend(depth.as_deref());
    words.extend(["origin", &to]);
    let fetch = Command { timeout: Some(tree.timeout), ..tree.git(&words) };
    if let Err(failure) = run_change(host, permit, &fetch).await {
        if !is_commit(reference) {
            return Err(failure);
        }
        // Some servers give no single commits: all branches and tags have it, or nothing has.
        let all = ["fetch", "-q", "--tags", "--no-recurse-submodules", "origin", refspec];
        let all = Command { timeout: Some(tree.timeout), ..tree.git(&all) };
        run_change(host, permit, &all).await?;
    }
    run(tree, host, permit, &["config", "steadfast.version", &tree.version]).await
}

/// Fails unless the commit, or the annotated tag that names it, has a good signature.
pub(super) async fn verify_signature(
    tree: &Tree,
    (host, cancel): (&Host, &CancellationToken),
    commit: &str,
) -> Result<(), Failure> {
    let line = async |words: &[&str]| tree.line(host, cancel, words).await;
    let tagged = format!("{VERSION}^{{commit}}");
    let is_fetched =
        line(&["rev-parse", "--verify", "-q", &tagged]).await?.as_deref() == Some(commit);
    let is_tag = is_fetched && line(&["cat-file", "-t", VERSION]).await?.as_deref() == Some("tag");
    let calls: &[&[&str]] = &[&["verify-tag", VERSION], &["verify-commit", commit]];
    let mut said = Vec::new();
    for words in calls.iter().skip(usize::from(!is_tag)) {
        let finished = tree.ask(host, cancel, words).await?;
        if finished.end == End::Exited(0) {
            // The repository could give an old signed tag another name.
            return if words.first() == Some(&"verify-tag") {
                is_own_tag(tree, (host, cancel)).await
            } else {
                Ok(())
            };
        }
        said.extend(finished.stderr.last_lines(3));
    }
    let number = commit.get(..12).unwrap_or(commit);
    let mut what = format!("the commit {number} has no good signature of a known key");
    for line in said {
        what.push_str(&format!("\n{line}"));
    }
    let hint = "import the key for `user`: gpg --import, or gpg.ssh.allowedSignersFile of git";
    Err(Failure::new(what).hint(hint).passing())
}

/// Fails unless the fetched annotated tag has the name of the declared version.
async fn is_own_tag(
    tree: &Tree,
    (host, cancel): (&Host, &CancellationToken),
) -> Result<(), Failure> {
    let finished = tree.ask(host, cancel, &["cat-file", "tag", VERSION]).await?;
    let text = finished.stdout.text();
    let name = text.lines().find_map(|line| line.strip_prefix("tag ")).unwrap_or_default();
    if name == tree.version {
        return Ok(());
    }
    let found = short(name, 40);
    let what = format!("the signed tag is {found}, expected {}", short(&tree.version, 40));
    Err(Failure::new(what).hint("the repository gave another tag this name").passing())
}

/// Fails if there are objects in the directory of a tree that does not exist yet, or if another user could exchange
/// the directory while the daemon's user works in it.
async fn guard_empty(tree: &Tree, host: &Host) -> Result<(), Failure> {
    if tree.user.is_none() {
        let path = tree.path.clone();
        on_thread(host, move |host| guard_parent(host.files(), &path)).await??;
    }
    if host.look(&tree.path).await.is_err() {
        return Ok(());
    }
    let path = tree.path.display().to_string();
    let find = tree.as_user(command(&["find", &path, "-mindepth", "1", "-print", "-quit"]));
    let finished = host.query(&find, &CancellationToken::new()).await?;
    if finished.end != End::Exited(0) {
        return Err(failed(&find, &finished));
    }
    if finished.stdout.total() > 0 {
        let what = bounded(format!("the directory is not empty and no git repository: {path}"));
        return Err(Failure::new(what).hint("empty it, or choose another directory"));
    }
    Ok(())
}

async fn run(
    tree: &Tree,
    host: &Host,
    permit: &Permit,
    words: &[&str],
) -> Result<(), WriteFailure> {
    let command = Command { timeout: Some(tree.timeout), ..tree.git(words) };
    run_change(host, permit, &command).await.map(|_| ())
}
