//! The owners of the directories on the present path of a walk: they can have moved what lies below.
//!
//! The kernel lets a user move a directory to another parent only with the right to write the directory
//! itself. A directory in a tree of root's was therefore put there by its owner, but a directory of a user
//! takes along everything in it.

use crate::host::files::EntryStat;
use rustix::fs::FileType;

/// The users, besides root, who own a directory on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::kinds::file) enum Owners {
    /// Root alone.
    Root,
    /// One user.
    One(u32),
    /// Several users.
    Several,
    /// Any user, because others can have moved the whole tree.
    Doubtful,
}

impl Owners {
    pub(in crate::kinds::file) fn of_top(uid: u32, is_doubtful: bool) -> Self {
        match uid {
            _ if is_doubtful => Self::Doubtful,
            0 => Self::Root,
            uid => Self::One(uid),
        }
    }

    /// Goes on into a directory of this owner, and returns the state before.
    pub(in crate::kinds::file) fn enter(&mut self, uid: u32) -> Self {
        let above = *self;
        *self = match above {
            Self::Root if uid != 0 => Self::One(uid),
            Self::One(one) if uid != 0 && uid != one => Self::Several,
            other => other,
        };
        above
    }

    /// Returns true for a directory that nobody but its owner can have brought into the tree.
    pub(in crate::kinds::file) fn can_move_only_own(self, seen: &EntryStat) -> bool {
        let is_own = match self {
            Self::Root => true,
            Self::One(uid) => uid == seen.uid,
            Self::Several | Self::Doubtful => false,
        };
        is_own && seen.kind == FileType::Directory
    }
}
