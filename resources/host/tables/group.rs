//! `/etc/group`: the groups.

use super::{NamedRows, Table, fields, rows};
use std::collections::HashMap;

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRow {
    /// The name.
    pub name: String,
    /// The number.
    pub gid: u32,
    /// The users with this supplementary group, in the order of the file.
    pub members: Vec<String>,
}

/// The groups of the host.
#[derive(Debug, Default)]
pub struct GroupTable {
    rows: NamedRows<GroupRow>,
    by_member: HashMap<String, Vec<usize>>,
    broken: Vec<usize>,
}

impl Table for GroupTable {
    const PATH: &'static str = "/etc/group";

    fn parse(text: &str) -> Self {
        let mut table = Self::default();
        for (number, line) in rows(text) {
            let Some(row) = row(line) else {
                table.broken.push(number);
                continue;
            };
            let members = row.members.clone();
            let position = table.rows.push(row.name.clone(), row);
            for member in members {
                table.by_member.entry(member).or_default().push(position);
            }
        }
        table
    }

    fn has_root(&self) -> bool {
        self.rows.iter().any(|row| row.gid == 0)
    }

    fn broken(&self) -> &[usize] {
        &self.broken
    }
}

fn row(line: &str) -> Option<GroupRow> {
    let [name, _password, gid, members] = fields(line)?;
    let mut found: Vec<String> = Vec::new();
    for member in members.split(',').map(str::trim).filter(|member| !member.is_empty()) {
        if !found.iter().any(|known| known == member) {
            found.push(member.to_owned());
        }
    }
    let gid = gid.parse().ok()?;
    (!name.is_empty()).then(|| GroupRow { name: name.to_owned(), gid, members: found })
}

impl GroupTable {
    /// Returns the names, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| row.name.as_str())
    }

    /// Returns a group by name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&GroupRow> {
        self.rows.get(name)
    }

    /// Returns the first group with this number.
    #[must_use]
    pub fn by_gid(&self, gid: u32) -> Option<&GroupRow> {
        self.rows.iter().find(|row| row.gid == gid)
    }

    /// Returns the supplementary groups of a user, in the order of the file.
    pub fn groups_of(&self, user: &str) -> impl Iterator<Item = &GroupRow> {
        let numbers = self.by_member.get(user).into_iter().flatten();
        numbers.filter_map(|number| self.rows.at(*number))
    }
}

#[cfg(test)]
mod tests {
    use super::{GroupTable, Table as _};

    #[test]
    fn members_are_found_both_ways() {
        let text =
            "root:x:0:\nadm:x:4:eve,,bob,eve\nbroken:x\nsudo:x:27:eve\nadm:x:99:zoe\n+::::\n";
        let table = GroupTable::parse(text);
        assert_eq!(table.broken(), [3]);
        assert_eq!(table.get("adm").map(|row| row.members.join(" ")).as_deref(), Some("eve bob"));
        let names: Vec<&str> = table.groups_of("eve").map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["adm", "sudo"]);
        assert_eq!(table.by_gid(27).map(|row| row.name.as_str()), Some("sudo"));
        assert_eq!(table.groups_of("nobody").count(), 0);
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        #[test]
        fn any_text_can_be_parsed(text in "[a-z0-9:,#+\\n-]{0,80}") {
            let table = GroupTable::parse(&text);
            assert!(table.broken().len() + table.names().count() <= text.lines().count());
        }
    }
}
