//! `/etc/passwd`: the users.

use super::{NamedRows, Table, fields, rows};

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswdRow {
    /// The name.
    pub name: String,
    /// The number.
    pub uid: u32,
    /// The number of the primary group.
    pub gid: u32,
    /// The comment: full name and contact data (GECOS).
    pub comment: String,
    /// The home directory.
    pub home: String,
    /// The login shell; empty means `/bin/sh`.
    pub shell: String,
}

/// The users of the host.
#[derive(Debug, Default)]
pub struct Passwd {
    rows: NamedRows<PasswdRow>,
    broken: Vec<usize>,
}

impl Table for Passwd {
    const PATH: &'static str = "/etc/passwd";

    fn parse(text: &str) -> Self {
        let mut table = Self::default();
        for (number, line) in rows(text) {
            let Some(row) = row(line) else {
                table.broken.push(number);
                continue;
            };
            table.rows.push(row.name.clone(), row);
        }
        table
    }

    fn has_root(&self) -> bool {
        self.by_uid(0).is_some()
    }

    fn broken(&self) -> &[usize] {
        &self.broken
    }
}

fn row(line: &str) -> Option<PasswdRow> {
    let [name, _password, uid, gid, comment, home, shell] = fields(line)?;
    let [name, comment, home, shell] = [name, comment, home, shell].map(ToOwned::to_owned);
    let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
    (!name.is_empty()).then_some(PasswdRow { name, uid, gid, comment, home, shell })
}

impl Passwd {
    /// Returns the names, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| row.name.as_str())
    }

    /// Returns a user by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&PasswdRow> {
        self.rows.get(name)
    }

    /// Returns the first user with this number.
    #[must_use]
    pub fn by_uid(&self, uid: u32) -> Option<&PasswdRow> {
        self.rows.iter().find(|row| row.uid == uid)
    }

    /// Returns the first user whose primary group has this number.
    #[must_use]
    pub fn with_group(&self, gid: u32) -> Option<&PasswdRow> {
        self.rows.iter().find(|row| row.gid == gid)
    }
}

#[cfg(test)]
mod tests {
    use super::{Passwd, Table as _};

    #[test]
    fn broken_and_foreign_lines_are_skipped() {
        let text = "root:x:0:0:root:/root:/bin/bash\n# a comment\n\nhalf:x:12\n+@staff::::::\n\
            eve:x:1000:1000:Eve,,,:/home/eve:/bin/sh\neve:x:7:7::/:\nbad:x:-4:0::/:\n:x:5:5::/:\n";
        let table = Passwd::parse(text);
        assert_eq!(table.broken(), [4, 8, 9]);
        assert_eq!(
            table.get("eve").map(|row| (row.uid, row.comment.as_str())),
            Some((1000, "Eve,,,"))
        );
        assert_eq!(table.by_uid(7).map(|row| row.name.as_str()), Some("eve"));
        assert_eq!(table.with_group(0).map(|row| row.name.as_str()), Some("root"));
        assert!(table.get("half").is_none() && table.get("").is_none());
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn any_text_can_be_parsed(text in "[a-z0-9:#+\\n-]{0,80}") {
            let table = Passwd::parse(&text);
            let rows = text.lines().count();
            assert!(table.broken().len() + table.names().count() <= rows);
        }
    }
}
