//! Changes a user by the account tools.

use super::{User, expiry};
use crate::failure::Failure;
use crate::host::Host;
use crate::host::files::is_protected_path;
use crate::host::tables::{AccountTables, PasswdRow};
use crate::parts::WriteFailure;
use crate::parts::account_tools::{run_tool, words};
use crate::parts::commands::read_on_thread;
use crate::parts::field_reader::bounded;
use crate::parts::staging::guard_way;
use crate::permit::Permit;
use crate::secrets::secret_text::Secret;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

/// The run of one change: each step is a tool, and a failure after the first one has touched the host.
struct Steps<'a> {
    host: &'a Host,
    permit: &'a Permit,
    touched: bool,
}

impl Steps<'_> {
    async fn run(&mut self, argv: Vec<String>, input: Option<Secret>) -> Result<(), WriteFailure> {
        let done = run_tool(self.host, self.permit, argv, input).await;
        done.map_err(|failure| failure.after(self.touched))?;
        self.touched = true;
        Ok(())
    }
}

impl User {
    pub(super) async fn change(
        &self,
        host: &Host,
        permit: &Permit,
        differing: &[&'static str],
    ) -> Result<(), WriteFailure> {
        let tables = host.account_tables(self.needs_shadow()).await;
        let tables = tables.map_err(WriteFailure::untouched)?;
        let mut steps = Steps { host, permit, touched: false };
        let Some(row) = tables.passwd.get(&self.name) else {
            if !self.is_present {
                return Ok(());
            }
            self.guard_values(&tables, differing).map_err(WriteFailure::untouched)?;
            let mut number = self.uid;
            if self.manages_home {
                guard_home(host, self.likely_home()).await?;
                let former = owner_of_home(host, self.likely_home()).await?;
                let is_free = |uid: &u32| tables.passwd.by_uid(*uid).is_none();
                number = number.or_else(|| former.filter(is_free));
            }
            steps.run(self.creation(&tables, number), None).await?;
            if self.password.is_some() {
                self.set_password(&mut steps, self.is_locked == Some(true)).await?;
            }
            return Ok(());
        };
        if !self.is_present {
            Self::guard_removal(row, host).map_err(WriteFailure::untouched)?;
            if self.manages_home && self.removes_home {
                guard_home(host, PathBuf::from(&row.home)).await?;
            }
            return steps.run(self.deletion(row)?, None).await;
        }
        self.guard_values(&tables, differing).map_err(WriteFailure::untouched)?;
        // An existing directory at a new place would be another user's as well.
        if differing.contains(&"home") || (self.manages_home && differing.contains(&"homedir")) {
            guard_home(host, PathBuf::from(self.home.as_deref().unwrap_or(&row.home))).await?;
        }
        // usermod gives the files of the home directory to the new number, or moves them.
        if differing.contains(&"uid") || (self.manages_home && differing.contains(&"homedir")) {
            guard_home(host, PathBuf::from(&row.home)).await?;
        }
        if let Some(argv) = self.modification(differing, row) {
            steps.run(argv, None).await?;
        }
        self.change_memberships(&mut steps, &tables, differing).await?;
        self.change_password(&mut steps, &tables, differing).await?;
        self.make_home(&mut steps, row, differing).await
    }

    /// Returns the call that makes the user with this number; useradd chooses one if none is given.
    fn creation(&self, tables: &AccountTables, number: Option<u32>) -> Vec<String> {
        let mut argv = words(&["useradd"]);
        let mut option = |name: &str, value: Option<&str>| {
            argv.extend(value.into_iter().flat_map(|value| words(&[name, value])));
        };
        let uid = number.map(|uid| uid.to_string());
        option("--uid", uid.as_deref());
        // useradd refuses a user whose own group is there already, unless that group is named.
        let own = tables.group.get(&self.name).map(|group| group.name.as_str());
        option("--gid", self.group.as_deref().or(own));
        let groups = self.groups.as_ref().map(|groups| groups.join(","));
        option("--groups", groups.as_deref().filter(|groups| !groups.is_empty()));
        option("--shell", self.shell.as_deref());
        option("--home-dir", self.home.as_deref());
        option("--comment", self.comment.as_deref());
        option("--expiredate", self.expiry.as_deref().filter(|date| *date != expiry::NEVER));
        argv.extend(self.system.then(|| "--system".to_owned()));
        argv.extend(self.shares_uid.then(|| "--non-unique".to_owned()));
        let home = if self.manages_home { "--create-home" } else { "--no-create-home" };
        argv.extend(words(&[home, &self.name]));
        argv
    }

    fn deletion(&self, row: &PasswdRow) -> Result<Vec<String>, WriteFailure> {
        if !(self.manages_home && self.removes_home) {
            return Ok(words(&["userdel", &self.name]));
        }
        if is_protected_path(Path::new(&row.home)) {
            let what = bounded(format!("the home directory {} is never removed", row.home));
            let failure = Failure::new(what).hint("omit `remove_home`: the path is protected");
            return Err(WriteFailure::untouched(failure));
        }
        Ok(words(&["userdel", "--remove", &self.name]))
    }

    /// Returns the call that changes the differing columns; none if none differs.
    fn modification(&self, differing: &[&'static str], row: &PasswdRow) -> Option<Vec<String>> {
        let mut argv = words(&["usermod"]);
        let mut option = |aspect: &str, name: &str, value: Option<&str>| {
            let value = value.filter(|_| differing.contains(&aspect));
            argv.extend(value.into_iter().flat_map(|value| words(&[name, value])));
        };
        let uid = self.uid.map(|uid| uid.to_string());
        option("uid", "--uid", uid.as_deref());
        option("group", "--gid", self.group.as_deref());
        let groups = self.groups.as_ref().map(|groups| groups.join(","));
        option("groups", "--groups", groups.as_deref());
        option("shell", "--shell", self.shell.as_deref());
        option("homedir", "--home", self.home.as_deref());
        option("comment", "--comment", self.comment.as_deref());
        let expiry =
            self.expiry.as_deref().map(|date| if date == expiry::NEVER { "" } else { date });
        option("expiry", "--expiredate", expiry);
        // usermod moves a directory only to a place where nothing is.
        if self.manages_home && differing.contains(&"homedir") && differing.contains(&"home") {
            argv.extend((row.home != "/").then(|| "--move-home".to_owned()));
        }
        if self.shares_uid && differing.contains(&"uid") {
            argv.push("--non-unique".to_owned());
        }
        (argv.len() > 1).then(|| {
            argv.push(self.name.clone());
            argv
        })
    }

    async fn change_memberships(
        &self,
        steps: &mut Steps<'_>,
        tables: &AccountTables,
        differing: &[&'static str],
    ) -> Result<(), WriteFailure> {
        if !differing.contains(&"memberships") {
            return Ok(());
        }
        let is_in = |group: &str| tables.group.groups_of(&self.name).any(|row| row.name == group);
        let missing = self.groups.iter().flatten().map(String::as_str).filter(|it| !is_in(it));
        let missing: Vec<&str> = missing.collect();
        if !missing.is_empty() {
            let list = missing.join(",");
            let argv = words(&["usermod", "--append", "--groups", &list, &self.name]);
            steps.run(argv, None).await?;
        }
        for group in self.left_groups.iter().filter(|group| is_in(group)) {
            steps.run(words(&["gpasswd", "--delete", &self.name, group]), None).await?;
        }
        Ok(())
    }

    async fn change_password(
        &self,
        steps: &mut Steps<'_>,
        tables: &AccountTables,
        differing: &[&'static str],
    ) -> Result<(), WriteFailure> {
        let row = tables.shadow.as_ref().and_then(|shadow| shadow.get(&self.name));
        if differing.contains(&"password") {
            // A lock that nobody declared stays.
            let is_locked = row.is_some_and(|row| row.is_locked() && row.has_password());
            return self.set_password(steps, self.is_locked.unwrap_or(is_locked)).await;
        }
        if differing.contains(&"lock") {
            let how = if self.is_locked == Some(true) { "--lock" } else { "--unlock" };
            return steps.run(words(&["usermod", how, &self.name]), None).await;
        }
        Ok(())
    }

    /// Sets the password, with a lock in the same step: an unlocked password is never there meanwhile.
    async fn set_password(&self, steps: &mut Steps<'_>, locked: bool) -> Result<(), WriteFailure> {
        let hash = self.password.as_ref().map_or("", Secret::reveal);
        let mark = if locked && !hash.starts_with('!') { "!" } else { "" };
        let line = Secret::from(format!("{}:{mark}{hash}\n", self.name));
        steps.run(words(&["chpasswd", "--encrypted"]), Some(line)).await
    }

    /// Makes the home directory of an existing user, unless usermod has moved the former one there.
    async fn make_home(
        &self,
        steps: &mut Steps<'_>,
        row: &PasswdRow,
        differing: &[&'static str],
    ) -> Result<(), WriteFailure> {
        if !differing.contains(&"home") {
            return Ok(());
        }
        let home = Path::new(self.home.as_deref().unwrap_or(&row.home));
        let exists = steps.host.has_directory(home).await;
        if exists.map_err(|it| WriteFailure::untouched(it).after(steps.touched))? {
            return Ok(());
        }
        // The umask of a new home directory: nobody else may look into it.
        steps.run(words(&["mkhomedir_helper", &self.name, "0077"]), None).await
    }

    /// Refuses values that belong to other accounts or that do not exist, before anything is changed.
    fn guard_values(&self, tables: &AccountTables, differing: &[&str]) -> Result<(), Failure> {
        let owner = self.uid.filter(|_| differing.contains(&"uid") && !self.shares_uid);
        let owner = owner.and_then(|uid| tables.passwd.by_uid(uid));
        if let Some(owner) = owner.filter(|owner| owner.name != self.name) {
            let what = bounded(format!("the uid {} belongs to the user {}", owner.uid, owner.name));
            let hint = "choose another `uid`, or set `allowduplicateuid: true`";
            return Err(Failure::new(what).hint(hint));
        }
        let primary = self.group.iter().filter(|group| group.parse::<u32>().is_err());
        for group in primary.chain(self.groups.iter().flatten()) {
            if tables.group.get(group).is_none() {
                let what = bounded(format!("the group {group} does not exist"));
                let hint = || "declare the group, or create it with its package".to_owned();
                let hint = tables.broken_lines().unwrap_or_else(hint);
                return Err(Failure::new(what).hint(hint));
            }
        }
        Ok(())
    }

    /// Refuses the removal of root and of the user that this process runs as.
    fn guard_removal(row: &PasswdRow, host: &Host) -> Result<(), Failure> {
        if row.uid == 0 || row.uid == host.files().own_uid() {
            let what =
                bounded(format!("the user {} (uid {}) must not be removed", row.name, row.uid));
            let hint = "root and the user of this process are never removed";
            return Err(Failure::new(what).hint(hint));
        }
        Ok(())
    }
}

/// Fails if a user can change a directory above a home directory: the account tools work by its path, and would give
/// another directory to the user.
/// Returns the number of the user who owns an existing home: after a removal of its account by hand, the user gets the
/// former number again, and with it the files. A home of root has no such owner.
async fn owner_of_home(host: &Host, home: PathBuf) -> Result<Option<u32>, WriteFailure> {
    let found = read_on_thread(host, move |host| {
        let files = host.files();
        let look = || files.open_entry(&home)?.map_or(Ok(None), |spot| spot.look());
        look().map_err(|fault| files.failure(fault, &home))
    });
    let found = found.await.map_err(WriteFailure::untouched)?;
    let directory = found.filter(|seen| seen.kind == FileType::Directory);
    Ok(directory.map(|seen| seen.uid).filter(|uid| *uid != 0))
}

async fn guard_home(host: &Host, home: PathBuf) -> Result<(), WriteFailure> {
    let judged = read_on_thread(host, move |_| guard_way("manage the home directory", &home));
    judged.await.map_err(WriteFailure::untouched)
}
