//! Files on the host: examined through descriptors, written whole, and changed only with a permit.
//!
//! An [`Entry`] is a name in a directory that was resolved once and safely. Every step goes through the
//! descriptor of that directory and must never resolve the path again.
//!
//! Reading order: `entry.rs`, `safe_path.rs` (safe resolution), `fault.rs`, `read.rs`, `write.rs` with
//! `staged_file.rs` and `temp_names.rs`, `attributes.rs`, `create.rs`, `remove.rs`, `dir_walk.rs`. Protection
//! against other users: `takeover.rs`, `takeover_mark.rs`, `handover_mark.rs`, `made_mark.rs`,
//! `moved_objects.rs`, `fs_identity.rs`, `protected_paths.rs`. History: `prior_state.rs`, `restore.rs`,
//! `enclosure.rs`, `backup.rs`. The rest: `accounts.rs`, `content.rs`, `directory_identity.rs`, `path_forecast.rs`,
//! `sync.rs`, `temp_cleanup.rs`, `xattr.rs`.

mod accounts;
mod attributes;
mod backup;
mod content;
mod create;
mod dir_walk;
mod directory_identity;
mod enclosure;
mod entry;
mod fault;
mod fs_identity;
mod handover_mark;
mod made_mark;
mod moved_objects;
mod path_forecast;
mod prior_state;
mod protected_paths;
mod read;
mod remove;
mod restore;
mod safe_path;
mod staged_file;
mod sync;
mod takeover;
mod takeover_mark;
mod temp_cleanup;
mod temp_names;
mod write;
mod xattr;

pub use accounts::{AccountKind, Accounts, account_name};
pub use attributes::Attributes;
pub use content::{Content, Origin};
pub use dir_walk::{DirWalk, Entered};
pub use directory_identity::{Directory, DirectoryIds};
pub use enclosure::RestoredDirectories;
pub use entry::{Entry, EntryStat, SET_ID};
pub(crate) use fault::said;
pub use fault::{Fault, Why, printable};
pub use path_forecast::{Coming, End, Ground, Name, Resolution, Resolver, Thing};
pub use prior_state::{Noted, denies_others};
pub use protected_paths::{is_purgeable, is_sacred};
pub use read::Comparison;
pub use remove::Reach;
pub use takeover::own_gid;
pub use temp_names::is_temporary;
pub use write::{Acceptance, Draft, Put};

use crate::failure::Failure;
pub(crate) use crate::host::kernel::Mounts;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;
use sync::DirectorySyncs;
use temp_names::Names;

/// The shared state of all work on files.
#[derive(Debug)]
pub struct Files {
    uid: u32,
    accounts: Accounts,
    syncs: DirectorySyncs,
    names: Names,
    swept: Mutex<HashSet<(u64, u64)>>,
    /// The directories that other users could change until this process took them over.
    taken_over: Mutex<HashMap<(u64, u64), takeover_mark::Closed>>,
    /// The directories that changed their owner in this process.
    handed_over: Mutex<HashMap<(u64, u64), handover_mark::Handover>>,
    /// The entries of the directories that this process gave away or opened.
    placed: Mutex<moved_objects::Placed>,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            accounts: Accounts::default(),
            syncs: DirectorySyncs::default(),
            names: Names::default(),
            swept: Mutex::default(),
            taken_over: Mutex::default(),
            handed_over: Mutex::default(),
            placed: Mutex::default(),
        }
    }
}

impl super::Host {
    /// Returns the files of this host.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }
}

impl Files {
    /// Returns the users and groups of this host.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Returns true if this process runs as root.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Returns true if the object belongs to the user of this process.
    #[must_use]
    pub fn owns(&self, seen: &EntryStat) -> bool {
        seen.uid == self.uid
    }

    /// Resolves the directory of an absolute path; `None` if the directory does not exist.
    ///
    /// # Errors
    ///
    /// Fails if a link on the path could have been changed by another user (S-1), or if a directory cannot be
    /// entered.
    pub fn spot<'a>(&self, path: &'a Path) -> Result<Option<Entry<'a>>, Fault> {
        Entry::open(path, self.uid)
    }

    /// Describes a fault for the operator.
    #[must_use]
    pub fn trouble(&self, fault: Fault, path: &Path) -> Failure {
        let name = account_name(AccountKind::User, self.uid);
        let user =
            if name.parse::<u32>().is_ok() { name } else { format!("{name} ({})", self.uid) };
        fault.into_trouble(path, &user)
    }

    /// Makes the failure of a missing parent directory.
    #[must_use]
    pub fn no_directory(path: &Path) -> Failure {
        safe_path::no_parent(path)
    }
}
