//! The sources of a resource's events.

use std::path::PathBuf;
use std::time::Duration;

/// A source of events, as data. The driver's loops listen: one loop for each sort of source, shared by all
/// resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchSource {
    /// Changes of the object at this path: its content, its attributes, its appearance and removal, and changes
    /// of the directories above. With `below`, also changes of the entries of the directory at that path (one
    /// level).
    Path {
        /// The absolute path.
        path: PathBuf,
        /// Also the entries of the directory.
        below: bool,
    },
    /// Changes of the file at this absolute path, from which an input of the resource is made. Such a change is
    /// no drift of the resource.
    Supply(PathBuf),
    /// Changes of the directory at this absolute path and of everything below, at any depth, including later
    /// directories. Links are not followed, and mounts are left out.
    Tree(PathBuf),
    /// An event at this interval (the kind `timer`).
    Every(Duration),
    /// The object at this absolute path changes without events. The driver checks the resource every 30 s, besides
    /// the events of its other sources.
    Polled(PathBuf),
    /// An event for each line that this command prints (`watchcmd`); the command is started again with back-off
    /// after its end.
    Lines(crate::host::Command),
    /// Changes of this key of the world. The driver passes them on itself.
    World(crate::host::world::WorldKey),
    /// The notifications of systemd about this unit.
    Unit {
        /// The systemd that manages the unit.
        bus: crate::host::systemd::Bus,
        /// Any full name of the unit (`nginx.service`).
        unit: std::sync::Arc<str>,
    },
}
