//! The account of a user in /etc/passwd, and the files for the keys in the home directory.

use crate::failure::Failure;
use crate::host::files::Files;
use crate::kind::{Fields, Invalid, Place, Value};
use crate::parts::text_edit::text_of;
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
    /// Reads the account of a user.
    ///
    /// # Errors
    ///
    /// Fails if /etc/passwd has no such user, or no usable home directory for the user.
    pub(super) fn read(files: &Files, user: &str) -> Result<Self, Failure> {
        let text = text_of(files, Path::new(PASSWD))?.unwrap_or_default();
        let Some(line) = text.lines().find(|line| line.split(':').next() == Some(user)) else {
            let what = format!("the user \"{user}\" does not exist in {PASSWD}");
            return Err(Failure::new(crate::parts::field_reader::bounded(what))
                .hint("declare the user too, or set `path` for a user of a directory service"));
        };
        Self::parse(line).ok_or_else(|| {
            let what = format!("the user \"{user}\" has no usable home directory in {PASSWD}");
            Failure::new(crate::parts::field_reader::bounded(what))
                .hint("set the home directory of the user, or `path` of this resource")
        })
    }

    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, uid, gid, _, home, ..] = fields.as_slice() else { return None };
        let home = crate::parts::field_reader::normal_path(home)?;
        let is_home = home.parent().is_some() && home != Path::new("/nonexistent");
        is_home.then_some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()?, home })
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

    #[test]
    fn accounts_are_lines_of_passwd() {
        let account = Account::parse("eve:x:1000:100:Eve:/home/eve/:/bin/sh").unwrap();
        assert_eq!((account.uid, account.gid), (1000, 100));
        assert_eq!(account.home, std::path::Path::new("/home/eve"));
        for wrong in [
            "eve:x:1000:100:Eve",
            "eve:x:a:100::/home/eve:/bin/sh",
            "eve:x:1:1::/:/bin/sh",
            "eve:x:1:1::/nonexistent:/bin/sh",
            "eve:x:1:1:::/bin/sh",
            "eve:x:1:1::/home/../root:/bin/sh",
        ] {
            assert_eq!(Account::parse(wrong), None, "{wrong}");
        }
    }
}
