//! Inspection of working trees of git.

use super::contained::is_converged;
use super::{Inspected, Inspector, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::host::Host;
use crate::kinds::git::{live_tree, tree_owner};
use crate::parts::field_reader::normal_path;

pub(super) const INSPECTOR: Inspector = Inspector { kind: "git", one, all: None };

fn one<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let Some(path) = normal_path(name) else {
            let what = "expected an absolute path without ..";
            return Err(Failure::new(what).hint("for example /srv/app"));
        };
        let Some(owner) = tree_owner(host, &path).await? else { return Ok(None) };
        let Some(tree) = live_tree(host, &path, owner.clone()).await? else { return Ok(None) };
        let mut fields = vec![text("repo", tree.repo), text("version", tree.version)];
        fields.extend(owner.map(|owner| text("user", owner)));
        let object = Inspected::new(path.display().to_string(), fields);
        if is_converged(host, "git", &object).await {
            return Ok(Some(object));
        }
        let what = format!("the working tree {} cannot be declared as it is", object.name);
        Err(Failure::new(what)
            .hint("commit or undo local changes, and omit passwords in addresses"))
    })
}
