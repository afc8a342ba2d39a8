//! Users and groups by name or number, cached while the account files are unchanged.

use crate::failure::Failure;
use nix::unistd::{Gid, Group, Uid, User};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The lifetime of a cached name that may come from another source than the account files (a directory
/// service).
const REMEMBERED: Duration = Duration::from_secs(5);

/// The type of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccountKind {
    /// A user.
    User,
    /// A group.
    Group,
}

impl AccountKind {
    fn file(self) -> &'static str {
        match self {
            Self::User => "/etc/passwd",
            Self::Group => "/etc/group",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
        }
    }
}

/// The stamp of an account file, which differs between two states of the file.
type Stamp = Option<(u64, i64, u64, i64)>;

#[derive(Debug)]
struct Remembered {
    number: u32,
    stamp: Stamp,
    until: Instant,
}

/// The accounts of this host.
#[derive(Debug, Default)]
pub struct Accounts {
    known: Mutex<HashMap<(AccountKind, String), Remembered>>,
}

impl Accounts {
    /// Returns the number of an account, given as a number or as a name that the host knows now.
    ///
    /// # Errors
    ///
    /// Fails if the host has no account of this name.
    pub fn number(&self, kind: AccountKind, text: &str) -> Result<u32, Failure> {
        if let Ok(number) = text.parse::<u32>() {
            return Ok(number);
        }
        let stamp = stamp(kind);
        let key = (kind, text.to_owned());
        let now = Instant::now();
        if let Some(known) = self.locked().get(&key)
            && known.stamp == stamp
            && now < known.until
        {
            return Ok(known.number);
        }
        let number = look_up(kind, text)?;
        self.locked().insert(key, Remembered { number, stamp, until: now + REMEMBERED });
        Ok(number)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<(AccountKind, String), Remembered>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the name of an account for display, or the number if there is no name.
#[must_use]
pub fn account_name(kind: AccountKind, number: u32) -> String {
    let name = match kind {
        AccountKind::User => {
            User::from_uid(Uid::from_raw(number)).ok().flatten().map(|user| user.name)
        }
        AccountKind::Group => {
            Group::from_gid(Gid::from_raw(number)).ok().flatten().map(|group| group.name)
        }
    };
    name.unwrap_or_else(|| number.to_string())
}

fn stamp(kind: AccountKind) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::metadata(kind.file()).ok()?;
    Some((meta.ino(), meta.mtime(), meta.size(), meta.mtime_nsec()))
}

fn look_up(kind: AccountKind, text: &str) -> Result<u32, Failure> {
    let found = match kind {
        AccountKind::User => User::from_name(text).map(|user| user.map(|user| user.uid.as_raw())),
        AccountKind::Group => {
            Group::from_name(text).map(|group| group.map(|group| group.gid.as_raw()))
        }
    };
    let word = kind.word();
    match found {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err(Failure::new(format!("the {word} \"{text}\" does not exist on this host"))
            .hint(format!("create the {word} first, or use a number"))
            .passing()),
        Err(errno) => {
            Err(Failure::new(format!("the {word} \"{text}\" could not be looked up: {errno}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AccountKind, Accounts, account_name};

    #[test]
    fn names_and_numbers() {
        let accounts = Accounts::default();
        assert_eq!(accounts.number(AccountKind::User, "root"), Ok(0));
        assert_eq!(accounts.number(AccountKind::User, "4321"), Ok(4321));
        assert_eq!(accounts.number(AccountKind::Group, "root"), Ok(0));
        assert_eq!(accounts.number(AccountKind::Group, "root"), Ok(0), "remembered");
        let missing = accounts.number(AccountKind::Group, "no-such-group").unwrap_err();
        assert_eq!(missing.what, "the group \"no-such-group\" does not exist on this host");
        assert_eq!(account_name(AccountKind::User, 0), "root");
        assert_eq!(account_name(AccountKind::User, 987_654), "987654");
    }
}
