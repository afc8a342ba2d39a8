//! Files on the host: examined through descriptors, written whole, and changed only with a permit.
//!
//! An [`Entry`] is a name in a directory that was resolved once and safely. Every step goes through the
//! descriptor of that directory and must never resolve the path again.
//!
//! Reading order: `paths/` (a path becomes an entry), `fault.rs`, `content/` (read and write), `objects/` (attributes,
//! links, directories, removal), `takeover/` (protection against other users), `prior_state/` (before a change).

mod content;
mod fault;
mod objects;
mod paths;
mod prior_state;
mod takeover;

pub(crate) use content::former_file::{FormerFile, LateContent};
pub use content::new_content::{Content, LARGEST_OF_OTHERS, Origin};
pub use content::read::Comparison;
pub use content::temp_names::is_temporary;
pub use content::write::{Acceptance, Draft, Put};
pub(crate) use fault::said;
pub use fault::{Fault, Why, printable};
pub use objects::accounts::{AccountKind, Accounts, account_name};
pub use objects::attributes::Attributes;
pub use objects::create::NewLists;
pub use objects::extended::{ExtendedAttributes, ExtendedChange};
pub use objects::remove::Reach;
pub use paths::directory_identity::{Directory, DirectoryIds};
pub use paths::entry::{Entry, EntryStat, SET_ID, SET_UID};
pub use paths::path_forecast::{Coming, End, Ground, Name, Resolution, Resolver, Thing};
pub use paths::protected_paths::{is_protected_path, is_purgeable};
pub use paths::tree_walk::{DirWalk, Entered};
pub use prior_state::enclosure::RestoredDirectories;
pub use prior_state::record::{Noted, PendingNote, denies_others, grants_group_more};
pub(in crate::host) use takeover::marks::{has_open_mark_at, is_from_before};
pub use takeover::other_users::own_gid;

use crate::failure::Failure;
pub(crate) use crate::host::kernel::Mounts;
use content::sync::DirectorySyncs;
use content::temp_names::Names;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;

/// The shared state of all work on files.
#[derive(Debug)]
pub struct Files {
    uid: u32,
    accounts: Accounts,
    syncs: DirectorySyncs,
    names: Names,
    swept: Mutex<HashSet<(u64, u64)>>,
    /// The directories that other users could change until this process took them over.
    taken_over: Mutex<HashMap<(u64, u64), takeover::marks::Closed>>,
    /// The files that others may have open, on file systems without extended attributes.
    marked_open: Mutex<HashSet<(u64, u64)>>,
    /// The directories that changed their owner in this process.
    handed_over: Mutex<HashMap<(u64, u64), takeover::marks::Handover>>,
    /// The entries of the directories that this process gave away or opened.
    placed: Mutex<takeover::moved_objects::Placed>,
    /// The files that several resources read.
    shared: content::shared_content::SharedContents,
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
            marked_open: Mutex::default(),
            handed_over: Mutex::default(),
            placed: Mutex::default(),
            shared: content::shared_content::SharedContents::default(),
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
    pub fn open_entry<'a>(&self, path: &'a Path) -> Result<Option<Entry<'a>>, Fault> {
        Entry::open(path, self.uid)
    }

    /// Describes a fault for the operator.
    #[must_use]
    pub fn failure(&self, fault: Fault, path: &Path) -> Failure {
        let name = account_name(AccountKind::User, self.uid);
        let user =
            if name.parse::<u32>().is_ok() { name } else { format!("{name} ({})", self.uid) };
        fault.into_failure(path, &user)
    }

    /// Makes the failure of a missing parent directory.
    #[must_use]
    pub fn no_directory(path: &Path) -> Failure {
        paths::safe_path::no_parent(path)
    }
}
