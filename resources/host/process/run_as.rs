//! The account of a command, looked up at each start, because the graph may just have made the account.

use crate::failure::Failure;
use crate::host::Command;
use nix::unistd::{Group, User};
use rustix::process::{getegid, geteuid};
use std::sync::{Mutex, PoisonError};

/// The account that a command runs as.
#[derive(Debug)]
pub(in crate::host) struct Account {
    pub(in crate::host) name: String,
    pub(in crate::host) home: String,
    pub(in crate::host) shell: String,
    /// The change of identity; none if the command runs as the daemon's user.
    pub(in crate::host) switch: Option<Switch>,
}

/// Another identity, which `setpriv` takes on in a session of its own.
#[derive(Debug)]
pub(in crate::host) struct Switch {
    uid: u32,
    gid: u32,
    /// The user whose supplementary groups the command gets; a bare number has none.
    groups_of: Option<String>,
}

impl Switch {
    /// Returns the user of the new identity.
    pub(in crate::host) fn uid(&self) -> u32 {
        self.uid
    }

    /// Returns the options of `setpriv`.
    pub(in crate::host) fn options(&self) -> Vec<String> {
        let number = self.uid.to_string();
        let named = self.groups_of.as_ref().filter(|name| name.parse::<u32>().is_err());
        let groups = if self.groups_of.is_some() { "--init-groups" } else { "--clear-groups" };
        vec![
            format!("--reuid={}", named.unwrap_or(&number)),
            format!("--regid={}", self.gid),
            groups.to_owned(),
        ]
    }
}

/// Returns the account of a command.
pub(in crate::host) fn account(command: &Command) -> Result<Account, Failure> {
    let own = geteuid().as_raw();
    let (uid, user) = match &command.user {
        Some(wanted) => user(wanted)?,
        None => (own, own_user(own)?),
    };
    let gid = match (&command.group, &user) {
        (Some(wanted), _) => Some(group(wanted)?),
        (None, Some(user)) => Some(user.gid.as_raw()),
        (None, None) => None,
    };
    let switch = switch(command, uid, gid, user.as_ref())?;
    Ok(match user {
        Some(user) => Account {
            name: user.name,
            home: user.dir.to_string_lossy().into_owned(),
            shell: user.shell.to_string_lossy().into_owned(),
            switch,
        },
        None => {
            Account { name: uid.to_string(), home: "/".into(), shell: "/bin/sh".into(), switch }
        }
    })
}

fn switch(
    command: &Command,
    uid: u32,
    gid: Option<u32>,
    user: Option<&User>,
) -> Result<Option<Switch>, Failure> {
    if command.user.is_none() && command.group.is_none() {
        return Ok(None);
    }
    let Some(gid) = gid else {
        return Err(Failure::new(format!(
            "user {uid} is not in /etc/passwd: its group is unknown"
        ))
        .hint("declare `group` too for a numeric user"));
    };
    let own = geteuid().as_raw();
    if own == 0 {
        let groups_of = user.map(|user| user.name.clone());
        return Ok(Some(Switch { uid, gid, groups_of }));
    }
    if uid == own && gid == getegid().as_raw() {
        return Ok(None);
    }
    Err(Failure::new(format!("uid {uid}, gid {gid} is required, but steadfast runs as uid {own}"))
        .hint("run steadfast as root, or omit `user` and `group`"))
}

fn user(wanted: &str) -> Result<(u32, Option<User>), Failure> {
    let named = User::from_name(wanted).map_err(|why| unreadable("user", wanted, why))?;
    if let Some(user) = named {
        return Ok((user.uid.as_raw(), Some(user)));
    }
    let Ok(number) = wanted.parse() else {
        return Err(Failure::new(format!("user {wanted:?} does not exist"))
            .hint("declare a resource that creates the account, ordered before this one")
            .passing());
    };
    Ok((number, by_number(number)?))
}

/// The account of the daemon's user, with the state of /etc/passwd in which it was read.
type OwnUser = ((u64, u64, i64, u64), Option<User>);

/// The last reading of the account of the daemon's user.
static OWN_USER: Mutex<Option<OwnUser>> = Mutex::new(None);

/// Returns the account of the daemon's user, which most commands have, read once for each change of /etc/passwd.
fn own_user(own: u32) -> Result<Option<User>, Failure> {
    let Ok(stat) = rustix::fs::stat("/etc/passwd") else { return by_number(own) };
    let state = (stat.st_dev, stat.st_ino, stat.st_ctime, stat.st_ctime_nsec);
    let mut known = OWN_USER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, user)) = known.as_ref().filter(|(at, _)| *at == state) {
        return Ok(user.clone());
    }
    let user = by_number(own)?;
    *known = Some((state, user.clone()));
    Ok(user)
}

fn by_number(number: u32) -> Result<Option<User>, Failure> {
    User::from_uid(number.into()).map_err(|why| unreadable("user", &number.to_string(), why))
}

fn group(wanted: &str) -> Result<u32, Failure> {
    let named = Group::from_name(wanted).map_err(|why| unreadable("group", wanted, why))?;
    if let Some(group) = named {
        return Ok(group.gid.as_raw());
    }
    wanted.parse().map_err(|_not_a_number| {
        Failure::new(format!("group {wanted:?} does not exist"))
            .hint("declare a resource that creates the account, ordered before this one")
            .passing()
    })
}

fn unreadable(what: &str, wanted: &str, why: nix::Error) -> Failure {
    Failure::new(format!("{what} {wanted:?} cannot be looked up: {}", why.desc()))
}
