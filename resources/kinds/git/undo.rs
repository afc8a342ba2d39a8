//! Removal, and undo of the first clone: a working tree without work of others is removed.

use super::{Tree, VERSION, tree_owner};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Fields;
use crate::host::files::{Files, said};
use crate::host::{End, Host};
use crate::kind::Restoring;
use crate::parts::commands::failed;
use crate::parts::guarded_removal::{RemovalGuard, guarded_removal};
use crate::parts::shell_words::shell_word;
use crate::parts::staging::guard_way_for;
use crate::parts::tree_listing::list_tree;
use crate::parts::{FieldReader, on_thread};
use crate::resource::Resource;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Builds the resource that removes a working tree.
///
/// # Errors
///
/// Fails if the name is no path.
pub(super) fn remove_tree(name: &str) -> Result<Restoring, Failure> {
    let mut reader = FieldReader::new(Fields::default());
    let path = reader.path("path", name);
    let path = reader.finish(path).map_err(|_problems| {
        Failure::new("an undo needs the path as the name").hint("remove the tree by hand")
    })?;
    let by_hand = format!("rm -r {}", shell_word(&path.display().to_string()));
    let guard = Unchanged { path: path.clone(), is_undo: true };
    let resource = guarded_removal(guard, &path)?;
    Ok(Restoring { resource, by_hand })
}

/// Builds the resource that removes a working tree, and fails if the tree has changed or added files, or commits that
/// no fetch brought.
///
/// # Errors
///
/// Fails if the path cannot be removed, for example because it is protected.
pub(super) fn remove_finished(path: &Path) -> Result<Arc<dyn Resource>, Failure> {
    guarded_removal(Unchanged { path: path.to_owned(), is_undo: false }, path)
}

/// The condition that a working tree has only what the repository gave.
#[derive(Debug)]
struct Unchanged {
    path: PathBuf,
    /// The tree was cloned by steadfast, so every other branch and tag is work of others.
    is_undo: bool,
}

impl RemovalGuard for Unchanged {
    fn guard<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<(), Failure>> {
        Box::pin(async move {
            let (path, is_undo) = (self.path.clone(), self.is_undo);
            on_thread(host, move |host| guard_owners(host.files(), &path, is_undo)).await??;
            let user = tree_owner(host, &self.path).await?.flatten();
            let tree = Tree::present(self.path.clone(), user);
            guard_unchanged((&tree, self.is_undo), host, cancel).await
        })
    }
}

/// Fails if the tree has an object of another user than its own. The answers of git do not count for those: its
/// configuration belongs to the owner of the tree, and git does not see what that user cannot read. The removal also
/// fails if a user besides its owner can put another directory in the place of the tree; an undo, if its owner can.
///
/// # Errors
///
/// The failure names the object.
fn guard_owners(files: &Files, path: &Path, is_undo: bool) -> Result<(), Failure> {
    let look = || files.open_entry(path)?.map(|entry| entry.look()).transpose();
    let seen = look().map_err(|fault| files.failure(fault, path))?.flatten();
    let Some(top) = seen else { return Ok(()) };
    // The owner of the tree could remove it as well; an undo removes what the history names.
    guard_way_for("remove", path, (!is_undo).then_some(top.uid))?;
    let all = list_tree(files, path)?;
    let is_foreign = |uid: u32| uid != top.uid;
    match all.iter().find(|listed| is_foreign(listed.seen.uid)) {
        Some(listed) => {
            let what = "it belongs to another user than the working tree";
            let failure = said("remove", &path.join(&listed.path), what);
            Err(failure.hint("move the object elsewhere, or remove the working tree by hand"))
        }
        None => Ok(()),
    }
}

async fn guard_unchanged(
    (tree, is_undo): (&Tree, bool),
    host: &Host,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let ask = async |words: &[&str]| -> Result<String, Failure> {
        let finished = tree.ask(host, cancel, words).await?;
        match finished.end {
            End::Exited(0) => Ok(finished.stdout.text().into_owned()),
            _ => Err(failed(&tree.git(words), &finished)),
        }
    };
    let refused = |why: &str| {
        let hint = if is_undo {
            "store the work elsewhere, and remove the working tree by hand"
        } else {
            "store the work elsewhere; `force: true` removes everything"
        };
        Err(Failure::new(format!("the working tree has work of others\n{why}")).hint(hint))
    };
    let status = ["status", "--porcelain", "--ignored", "--untracked-files=all"];
    if let Some(line) = ask(&status).await?.lines().next() {
        return refused(&format!("a file is changed or added: {}", line.get(3..).unwrap_or(line)));
    }
    let names = ask(&["for-each-ref", "--format=%(refname)"]).await?;
    let is_fetched = |name: &&str| *name == VERSION || name.starts_with("refs/remotes/origin/");
    if let Some(name) = names.lines().find(|name| is_undo && !is_fetched(name)) {
        return refused(&format!("it has a reference that was not fetched: {name}"));
    }
    // The commits that HEAD has named, without those of the fetched references.
    let commits = [
        "rev-list",
        "--max-count=1",
        "--branches",
        "--reflog",
        "HEAD",
        "--not",
        "--remotes=origin",
        "--glob=refs/steadfast/*",
    ];
    if let Some(commit) = ask(&commits).await?.lines().next() {
        return refused(&format!("it has a commit that was not fetched: {commit}"));
    }
    Ok(())
}
