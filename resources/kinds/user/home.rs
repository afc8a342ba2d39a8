//! Undo of the creation of a home directory: a home that has only unchanged files of `/etc/skel` is removed.

use crate::check_request::Answer;
use crate::failure::Failure;
use crate::host::Host;
use crate::host::files::{Fault, Files};
use crate::parts::field_reader::normal_path;
use crate::parts::guarded_removal::{RemovalGuard, guarded_removal};
use crate::parts::on_thread;
use crate::parts::tree_listing::{Listed, list_tree};
use crate::resource::Resource;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The directory of the files that a new home gets.
const SKELETON: &str = "/etc/skel";

/// The size limit in bytes of a compared file.
const LARGEST: usize = 1 << 20;

/// Builds the resource that removes the home of a user, and fails if the home has files of others.
///
/// # Errors
///
/// Fails if the path cannot be removed, for example because it is protected.
pub(super) fn remove_unused_home(user: &str, home: &Path) -> Result<Arc<dyn Resource>, Failure> {
    guarded_removal(Unused { user: user.to_owned(), home: home.to_owned() }, home)
}

/// The condition that a home is that of the user, and is as it was created.
#[derive(Debug)]
struct Unused {
    user: String,
    home: PathBuf,
}

impl RemovalGuard for Unused {
    fn guard<'a>(
        &'a self,
        host: &'a Host,
        _cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<(), Failure>> {
        Box::pin(async move {
            let tables = host.account_tables(false).await?;
            let row = tables.passwd.get(&self.user);
            let row = row.filter(|row| normal_path(&row.home).as_deref() == Some(&*self.home));
            let Some(uid) = row.map(|row| row.uid) else {
                return Err(self.refused("it is not the home of the user any more"));
            };
            let home = self.home.clone();
            let found = on_thread(host, move |host| find_foreign(host.files(), &home, uid));
            match found.await?? {
                Some(what) => Err(self.refused(&what)),
                None => Ok(()),
            }
        })
    }
}

impl Unused {
    fn refused(&self, why: &str) -> Failure {
        let what = format!("the home directory {} is not as it was created", self.home.display());
        let hint = "store the files elsewhere, and remove the directory by hand";
        Failure::new(format!("{what}\n{why}")).hint(hint)
    }
}

/// Returns the first reason that a home is not as it was created; none if it is.
fn find_foreign(files: &Files, home: &Path, uid: u32) -> Result<Option<String>, Failure> {
    let find = || -> Result<Option<String>, Fault> {
        let owner = files.open_entry(home)?.map(|entry| entry.look()).transpose()?.flatten();
        if owner.is_some_and(|seen| seen.uid != uid) {
            return Ok(Some("another user is the owner".to_owned()));
        }
        Ok(None)
    };
    if let Some(why) = find().map_err(|fault| files.failure(fault, home))? {
        return Ok(Some(why));
    }
    for listed in list_tree(files, home)? {
        let is_given = is_from_skeleton(files, home, &listed);
        if !is_given.map_err(|fault| files.failure(fault, home))? {
            return Ok(Some(format!("changed or added: {}", listed.path.display())));
        }
    }
    Ok(None)
}

/// Returns true if the skeleton has the same object.
fn is_from_skeleton(files: &Files, home: &Path, listed: &Listed) -> Result<bool, Fault> {
    let (given_path, own_path) = (Path::new(SKELETON).join(&listed.path), home.join(&listed.path));
    let Some(spot) = files.open_entry(&given_path)? else { return Ok(false) };
    let Some(seen) = spot.look()?.filter(|seen| seen.kind == listed.seen.kind) else {
        return Ok(false);
    };
    match seen.kind {
        FileType::Directory => Ok(true),
        FileType::Symlink => Ok(spot.target()? == listed.target),
        FileType::RegularFile if seen.size == listed.seen.size => {
            let Some(own) = files.open_entry(&own_path)? else { return Ok(false) };
            let given = spot.content(&seen, LARGEST)?;
            Ok(given.is_some() && own.content(&listed.seen, LARGEST)? == given)
        }
        _ => Ok(false),
    }
}
