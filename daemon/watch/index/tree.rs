//! The directory tree of a recursive watch, and the limit of its size.

use super::route::RouteId;
use std::collections::{BTreeMap, BTreeSet};

/// The directories of a recursive watch, each with its direct subdirectories.
#[derive(Debug, Default)]
pub(in crate::watch) struct Tree {
    pub(super) below: BTreeMap<RouteId, BTreeSet<RouteId>>,
    /// True if the tree has more directories than the limit.
    pub(super) is_over: bool,
}

/// Returns the limit of directories per tree: a part of all watches of this user, since anyone who can write in a tree
/// decides its size.
pub(in crate::watch) fn share_of_watches() -> usize {
    let read = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse().ok();
    // The second limit is that of the user namespace.
    let limits = ["/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"];
    let limit: usize = limits.into_iter().filter_map(read).min().unwrap_or(USUAL_LIMIT);
    (limit / PARTS).max(SHARE_AT_LEAST)
}

/// The number of watches to assume if the kernel's limit cannot be read.
const USUAL_LIMIT: usize = 65_536;

const PARTS: usize = 4;

const SHARE_AT_LEAST: usize = 1024;
