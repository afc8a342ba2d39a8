//! The aspects of a user: as declared, and as the tables have them.

use super::{User, expiry};
use crate::failure::Failure;
use crate::host::Host;
use crate::host::tables::{AccountTables, PasswdRow, ShadowRow};
use crate::prior_state::FieldValues;
use std::path::Path;

/// The value of a password that is the declared one. Hashes are no values, because values are shown and recorded.
const AS_DECLARED: &str = "as declared";

/// All supplementary groups, for sending.
pub(super) const ALL_GROUPS: &str = "all groups";

impl User {
    pub(super) fn wanted_values(&self) -> FieldValues {
        if !self.is_present {
            return vec![("state", None)];
        }
        let mut values = vec![("state", Some("exists".to_owned()))];
        let mut add = |aspect, value: Option<String>| {
            values.extend(value.map(|value| (aspect, Some(value))));
        };
        add("uid", self.uid.map(|uid| uid.to_string()));
        add("group", self.group.clone());
        let groups = self.groups.as_ref().map(|groups| groups.join(","));
        add(if self.append { "memberships" } else { "groups" }, groups);
        add("shell", self.shell.clone());
        add("homedir", self.home.clone());
        add("comment", self.comment.clone());
        add("password", self.password.as_ref().map(|_| AS_DECLARED.to_owned()));
        let lock = |is_locked| if is_locked { "locked" } else { "unlocked" };
        add("lock", self.is_locked.map(|is_locked| lock(is_locked).to_owned()));
        add("expiry", self.expiry.clone());
        add("home", self.manages_home.then(|| "exists".to_owned()));
        values
    }

    pub(super) async fn read_values(&self, host: &Host) -> Result<FieldValues, Failure> {
        let tables = host.account_tables(self.needs_shadow()).await?;
        let Some(row) = tables.passwd.get(&self.name) else {
            return Ok(vec![("state", None)]);
        };
        let mut values = vec![
            ("state", Some("exists".to_owned())),
            ("uid", Some(row.uid.to_string())),
            ("gid", Some(row.gid.to_string())),
            ("group", Some(self.group_of(row, &tables))),
            ("shell", Some(row.shell.clone())),
            ("homedir", Some(row.home.clone())),
            ("comment", Some(row.comment.clone())),
        ];
        values.push(self.groups_of(&tables));
        let all = tables.group.groups_of(&self.name).map(|group| group.name.as_str());
        values.push((ALL_GROUPS, Some(joined(all.collect()))));
        if let Some(shadow) = &tables.shadow {
            let row = shadow.get(&self.name);
            values.push(("password", self.password_of(row)));
            values.push(("lock", Some(self.lock_of(row).to_owned())));
            let day = row.and_then(|row| row.expires);
            let date = day.map_or_else(|| expiry::NEVER.to_owned(), expiry::date_of);
            values.push(("expiry", Some(date)));
        }
        if self.manages_home && self.is_present {
            let home = self.home.as_deref().unwrap_or(&row.home);
            let exists = host.has_directory(Path::new(home)).await?;
            values.push(("home", exists.then(|| "exists".to_owned())));
        }
        Ok(values)
    }

    /// Returns the primary group of a row, written as declared: by name or by number.
    fn group_of(&self, row: &PasswdRow, tables: &AccountTables) -> String {
        let declared = self.group.as_deref();
        if declared.is_some_and(|group| group.parse::<u32>().is_ok()) {
            return row.gid.to_string();
        }
        // Several groups may have one number.
        let same = declared.and_then(|name| tables.group.get(name)).filter(|it| it.gid == row.gid);
        let found = same.or_else(|| tables.group.by_gid(row.gid));
        found.map_or_else(|| row.gid.to_string(), |group| group.name.clone())
    }

    /// Returns the supplementary groups; with `append` only the declared ones.
    fn groups_of(&self, tables: &AccountTables) -> (&'static str, Option<String>) {
        let all = tables.group.groups_of(&self.name).map(|group| group.name.as_str());
        let declared = self.groups.as_deref().unwrap_or_default();
        let matters = |name: &&str| {
            !self.append || declared.iter().chain(&self.left_groups).any(|group| group == name)
        };
        let names = joined(all.filter(matters).collect());
        (if self.append { "memberships" } else { "groups" }, Some(names))
    }

    /// Compares the password with the declared one. A locked password counts without its lock, unless the declared
    /// text has a lock itself.
    fn password_of(&self, row: Option<&ShadowRow>) -> Option<String> {
        let (declared, row) = (self.password.as_ref()?.reveal(), row?);
        let found = if declared.starts_with('!') { row.password.reveal() } else { row.hash() };
        Some(if found == declared { AS_DECLARED } else { "another one" }.to_owned())
    }

    /// Tells if the password is locked. Without any password, both declarations are satisfied by a `!`.
    fn lock_of(&self, row: Option<&ShadowRow>) -> &'static str {
        let is_locked = row.is_some_and(|row| {
            row.is_locked() && (self.is_locked == Some(true) || row.has_password())
        });
        if is_locked { "locked" } else { "unlocked" }
    }
}

/// Returns names as one text, sorted, each once.
fn joined(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.dedup();
    names.join(",")
}
