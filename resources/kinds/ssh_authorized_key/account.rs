//! The account of a user in /etc/passwd, and the files for the keys in the home directory.

use crate::failure::Failure;
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::host::Host;
use crate::host::tables::PasswdRow;
use crate::parts::field_reader::{bounded, normal_path};
use crate::resource::Resource;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PASSWD: &str = "/etc/passwd";

/// An account of a user.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
    pub(super) home: PathBuf,
}

impl Account {
    /// Reads the account of a user; none if /etc/passwd has no such user.
    ///
    /// # Errors
    ///
    /// Fails if /etc/passwd cannot be read, or has no usable home directory for the user.
    pub(super) fn find_account(host: &Host, user: &str) -> Result<Option<Self>, Failure> {
        let users = host.read_users()?;
        let Some(row) = users.get(user) else { return Ok(None) };
        let account = Self::of_row(row).ok_or_else(|| {
            let what = format!("the user \"{user}\" has no usable home directory in {PASSWD}");
            Failure::new(bounded(what))
                .hint("set the home directory of the user, or `path` of this resource")
        });
        account.map(Some)
    }

    /// Returns the owner and group of the user's files.
    pub(super) fn owner(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Describes a user without an account.
    pub(super) fn missing(user: &str) -> Failure {
        let what = format!("the user \"{user}\" does not exist in {PASSWD}");
        Failure::new(bounded(what))
            .hint("declare the user too, or set `path` for a user of a directory service")
    }

    /// Returns the account of a row; none if its home directory cannot hold keys.
    fn of_row(row: &PasswdRow) -> Option<Self> {
        let home = normal_path(&row.home)?;
        let is_home = home.parent().is_some() && home != Path::new("/nonexistent");
        is_home.then_some(Self { uid: row.uid, gid: row.gid, home })
    }

    /// Makes the resources of the directory and of the file with these keys, owned by the user.
    ///
    /// # Errors
    ///
    /// Fails if the path cannot be managed.
    pub(super) fn files(&self, path: &Path) -> Result<Vec<Arc<dyn Resource>>, Failure> {
        let directory = path.parent().unwrap_or(path);
        let of = |path: String, mode: &str| {
            let text = |text: &str| Value::Text(text.to_owned());
            let mut fields = Fields::default();
            fields.insert("path", text(&path));
            fields.insert("owner", text(&self.uid.to_string()));
            fields.insert("group", text(&self.gid.to_string()));
            fields.insert("mode", text(mode));
            let place = Place { base: PathBuf::from("/") };
            crate::kinds::file::SPEC.build_resource(&path, fields, &place).map_err(refused)
        };
        Ok(vec![
            of(format!("{}/", directory.display()), "0700")?,
            of(path.display().to_string(), "0600")?,
        ])
    }
}

fn refused(problems: Vec<Invalid>) -> Failure {
    let first = problems.into_iter().next();
    let what = first.map_or_else(|| "the path cannot be managed".to_owned(), |it| it.what);
    Failure::new(what).hint("set `path`")
}

#[cfg(test)]
mod tests {
    use super::Account;
    use crate::host::tables::PasswdRow;

    #[test]
    fn a_home_directory_holds_the_keys() {
        let account = |home: &str| {
            Account::of_row(&PasswdRow {
                name: "eve".to_owned(),
                uid: 1000,
                gid: 100,
                comment: String::new(),
                home: home.to_owned(),
                shell: String::new(),
            })
        };
        let eve = account("/home/eve/").unwrap();
        assert_eq!((eve.uid, eve.gid), (1000, 100));
        assert_eq!(eve.home, std::path::Path::new("/home/eve"));
        for wrong in ["", "/", "/nonexistent", "/home/../root", "home"] {
            assert_eq!(account(wrong), None, "{wrong}");
        }
    }
}
