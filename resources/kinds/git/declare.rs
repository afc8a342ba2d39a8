//! Reads the fields of a working tree, and builds the resource that undoes a change.

use super::{Tree, undo};
use crate::failure::Failure;
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::host::files::is_protected_path;
use crate::kind::{LONGEST_SPAN, Restoring};
use crate::parts::shell_words::shell_word;
use crate::parts::whole_file::absent_tree;
use crate::parts::{FieldReader, Managed};
use crate::prior_state::FormerValue;
use crate::resource::Resource;
use crate::secrets::escape::short;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_mins(10);

pub(super) fn build(
    name: &str,
    fields: Fields,
    _place: &Place,
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let path = reader.path("path", name);
    let problem =
        ("expected a directory of its own, found a protected one", "for example /srv/app");
    reader.require(!is_protected_path(&path), "path", problem);
    if !reader.is_present() {
        let force = reader.fields.bool("force").unwrap_or_default();
        reader.finish(())?;
        if force {
            return absent_tree(&path);
        }
        let removal = undo::remove_finished(&path);
        return removal.map_err(|failure| vec![Invalid::whole(failure.what)]);
    }
    let repo = reader.required_text("repo");
    check_repo(&repo, &mut reader);
    let tree = read_tree(path, Some(repo), &mut reader);
    let tree = reader.finish(tree)?;
    Ok(Arc::new(Managed::new(tree)))
}

fn read_tree(path: PathBuf, repo: Option<String>, reader: &mut FieldReader) -> Tree {
    let version = reader.text("version").unwrap_or_else(|| "HEAD".to_owned());
    let is_name = !version.is_empty()
        && !version.starts_with(['-', '/', '.'])
        && !version.ends_with(['/', '.'])
        && !version.contains("..")
        && !version.contains("@{")
        && !version.contains([' ', '~', '^', ':', '?', '*', '[', '\\']);
    if !is_name {
        let what =
            format!("expected a branch, a tag or a full commit, found {}", short(&version, 40));
        reader.reject(Invalid::field("version", what));
    }
    let seconds = reader.fields.float("timeout").unwrap_or_else(|| DEADLINE.as_secs_f64());
    let timeout = Duration::try_from_secs_f64(seconds).ok();
    let timeout = timeout.filter(|it| *it >= Duration::from_secs(1) && *it <= LONGEST_SPAN);
    let problem = ("expected a span of time from 1s on", "for example 10m");
    reader.require(timeout.is_some(), "timeout", problem);
    Tree {
        path,
        repo,
        version,
        update: reader.fields.bool("update").unwrap_or_default(),
        depth: reader.fields.int("depth"),
        force: reader.fields.bool("force").unwrap_or_default(),
        verify: reader.fields.bool("verify").unwrap_or_default(),
        user: reader.text("user"),
        timeout: timeout.unwrap_or(DEADLINE),
    }
}

fn check_repo(repo: &str, reader: &mut FieldReader) {
    let is_safe = !repo.starts_with('-') && !repo.contains("::") && !repo.contains(' ');
    let problem =
        ("expected the address of a repository", "for example https://git.example.org/app.git");
    reader.require(is_safe, "repo", problem);
    let host =
        repo.split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
    let has_password = host.rsplit_once('@').is_some_and(|(account, _)| account.contains(':'));
    let hint = "use a key of ssh, or a credential helper in the configuration of `user`";
    reader.require(!has_password, "repo", ("the address contains a password", hint));
}

/// Builds the resource that checks out the former commit, from the commits that were fetched.
pub(super) fn restore(name: &str, values: &[FormerValue]) -> Result<Restoring, Failure> {
    let refused = |what: &str| {
        Failure::new(what.to_owned()).hint("`steadfast history` shows the values: set them by hand")
    };
    let version = values.iter().find(|value| value.field == "version");
    let version = version.ok_or_else(|| refused("the commit was not changed"))?;
    let Some(commit) = version.before.clone() else { return undo::remove_tree(name) };
    let mut fields = Fields::default();
    fields.insert("version", Value::Text(commit.clone()));
    let mut reader = FieldReader::new(fields);
    let path = reader.path("path", name);
    let tree = read_tree(path, None, &mut reader);
    let tree =
        reader.finish(tree).map_err(|_problems| refused("the former version is no commit"))?;
    let place = shell_word(&tree.path.display().to_string());
    let by_hand = format!("git -C {place} checkout --detach {}", shell_word(&commit));
    Ok(Restoring { resource: Arc::new(Managed::new(tree)), by_hand })
}
