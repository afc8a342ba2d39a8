//! Inspection of the public keys that may log in as a user.

use super::{ContainerInspector, Inspected, text};
use crate::check_request::Answer;
use crate::failure::Failure;
use crate::host::Host;
use crate::kinds::ssh_authorized_key::live_keys;
use std::collections::BTreeSet;

pub(super) const INSPECTOR: ContainerInspector = ContainerInspector {
    kind: "ssh:authorized_key",
    container: "user",
    read: keys,
    all: Some(all_users),
};

fn keys<'a>(host: &'a Host, user: &'a str) -> Answer<'a, Result<Option<Vec<Inspected>>, Failure>> {
    Box::pin(async move {
        let Some(keys) = live_keys(host, user)? else { return Ok(None) };
        let mut names = BTreeSet::new();
        let mut all = Vec::new();
        for key in keys {
            let mut name = format!("{user} {}", key.label);
            if !names.insert(name.clone()) {
                name = format!("{user} {}", key.fingerprint);
                names.insert(name.clone());
            }
            let fields = vec![text("user", user), text("key", key.line)];
            all.push(Inspected::new(name, fields));
        }
        Ok(Some(all))
    })
}

/// Returns the users with keys in their home directories.
fn all_users(host: &Host) -> Answer<'_, Result<Vec<String>, Failure>> {
    Box::pin(async move {
        let tables = host.account_tables(false).await?;
        let has_keys =
            |user: &&str| live_keys(host, user).ok().flatten().is_some_and(|keys| !keys.is_empty());
        Ok(tables.passwd.names().filter(has_keys).map(ToOwned::to_owned).collect())
    })
}
