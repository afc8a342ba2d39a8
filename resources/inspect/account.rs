//! Inspection of users and groups.

use super::{Field, Inspected, Inspector, secret_name, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::fields::field_values::Value;
use crate::host::Host;
use crate::host::tables::{AccountTables, PasswdRow, ShadowRow};

pub(super) const USERS: Inspector = Inspector { kind: "user", one: one_user, all: Some(all_users) };

pub(super) const GROUPS: Inspector =
    Inspector { kind: "group", one: one_group, all: Some(all_groups) };

fn one_user<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let tables = host.account_tables(host.files().is_root()).await?;
        Ok(tables.passwd.get(name).map(|row| inspected(row, &tables)))
    })
}

fn inspected(row: &PasswdRow, tables: &AccountTables) -> Inspected {
    let mut fields = vec![("uid", Field::Shown(Value::Int(row.uid.into())))];
    let is_shared = |name: &str| {
        let other = tables.passwd.get(name).filter(|_| name != row.name);
        other.is_some_and(|other| other.uid == row.uid)
    };
    if tables.passwd.names().any(is_shared) {
        fields.push(("allowduplicateuid", Field::Shown(Value::Bool(true))));
    }
    let group = tables.group.by_gid(row.gid).map(|group| group.name.clone());
    // A user without `group` gets a group of that name.
    if group.as_ref() != Some(&row.name) {
        fields.push(text("group", group.unwrap_or_else(|| row.gid.to_string())));
    }
    let mut groups: Vec<String> =
        tables.group.groups_of(&row.name).map(|group| group.name.clone()).collect();
    groups.sort();
    groups.dedup();
    fields.push(("groups", Field::Shown(Value::Texts(groups))));
    let columns = [("shell", &row.shell), ("homedir", &row.home), ("comment", &row.comment)];
    let known = columns.into_iter().filter(|(_, value)| !value.is_empty());
    fields.extend(known.map(|(name, value)| text(name, value.as_str())));
    let shadow = tables.shadow.as_ref().and_then(|shadow| shadow.get(&row.name));
    if let Some(shadow) = shadow {
        if shadow.has_password() {
            let secret = secret_name("user", &row.name, "password");
            fields.push(("password", Field::Secret(secret)));
            fields.push(("lock", Field::Shown(Value::Bool(shadow.is_locked()))));
        } else if shadow.hash() == "*" {
            // A new user has `!`.
            fields.push(text("password", "*"));
            if shadow.is_locked() {
                fields.push(("lock", Field::Shown(Value::Bool(true))));
            }
        }
        if let Some(day) = shadow.expires {
            fields.push(text("expiry", crate::kinds::user::date_of(day)));
        }
    }
    let object = Inspected::new(row.name.clone(), fields);
    let is_empty = |row: &ShadowRow| row.password.reveal().is_empty();
    if shadow.is_some_and(is_empty) {
        return object
            .noting("the password is empty, so everybody can log in; a new user has none");
    }
    object
}

fn all_users(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let tables = host.account_tables(false).await?;
        Ok(tables.passwd.names().map(ToOwned::to_owned).collect())
    })
}

fn one_group<'a>(host: &'a Host, name: &'a str) -> Answer<'a, Result<Option<Inspected>, Failure>> {
    Box::pin(async move {
        let tables = host.account_tables(false).await?;
        let Some(row) = tables.group.get(name) else { return Ok(None) };
        // The first group of a shared number has it; a fresh host gives the others free ones.
        let first = tables.group.by_gid(row.gid).filter(|first| first.name != row.name);
        let mut fields = Vec::new();
        if first.is_none() {
            fields.push(("gid", Field::Shown(Value::Int(row.gid.into()))));
        }
        if !row.members.is_empty() {
            let mut members = row.members.clone();
            members.sort();
            members.dedup();
            fields.push(("members", Field::Shown(Value::Texts(members))));
        }
        let object = Inspected::new(row.name.clone(), fields);
        Ok(Some(match first {
            None => object,
            Some(first) => object.noting(format!(
                "the gid {} is that of the group {}, too: a graph cannot declare a shared number",
                row.gid, first.name
            )),
        }))
    })
}

fn all_groups(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let tables = host.account_tables(false).await?;
        Ok(tables.group.names().map(ToOwned::to_owned).collect())
    })
}
