//! Where the socket is: a path in a directory of ours, never an abstract name.

use super::rights::Peer;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};

/// Where a daemon listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    path: PathBuf,
    /// Anybody could have made the directory before us.
    is_public: bool,
}

/// Why nobody can listen there.
#[derive(Debug, thiserror::Error)]
pub enum Beside {
    /// Another daemon does.
    #[error("another daemon listens at {}", .0.display())]
    Alive(PathBuf),
    /// Its directory is not ours alone.
    #[error("{} belongs to somebody else, or others may write there", .0.display())]
    Unsafe(PathBuf),
    /// Something is there that is no socket.
    #[error("{} is no socket: move it away, or give another path with --socket", .0.display())]
    Other(PathBuf),
    /// The system refuses.
    #[error("cannot listen at {}: {why}", path.display())]
    System {
        /// Where.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

/// A socket that is listened at, held by this process as long as the file is open.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) listener: UnixListener,
    inode: Option<u64>,
    _lock: File,
}

/// How often, and how long, to wait for what a daemon that was killed leaves behind: a child that it was starting has the lock open
/// until its exec.
const ORPHANS: (u32, Duration) = (20, Duration::from_millis(25));

impl Address {
    /// A given one.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path, is_public: false }
    }

    /// The usual one: in the unit's runtime directory, or /run/steadfast, or without root in the user's runtime directory. A state
    /// directory other than the usual one has a socket of its own, in it.
    #[must_use]
    pub fn usual(state_directory: Option<&Path>) -> Self {
        if let Some(directory) = state_directory {
            return Self::at(directory.join("control.socket"));
        }
        let given = |name| std::env::var_os(name).filter(|given| !given.is_empty());
        let directory = if let Some(given) = given("RUNTIME_DIRECTORY") {
            PathBuf::from(given)
        } else if geteuid().is_root() {
            PathBuf::from("/run/steadfast")
        } else if let Some(given) = given("XDG_RUNTIME_DIR") {
            PathBuf::from(given).join("steadfast")
        } else {
            let path = format!("/tmp/steadfast-{}/control.socket", geteuid().as_raw());
            return Self { path: PathBuf::from(path), is_public: true };
        };
        Self::at(directory.join("control.socket"))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether who listens there may be believed. Where anybody could have been first, only root and ourselves.
    pub(super) fn believes(&self, listener: Peer) -> bool {
        !self.is_public || listener.is_trusted()
    }

    /// Listens there. A socket that a dead daemon has left is replaced, that of a living one never, nor anything that is no socket.
    pub(super) async fn listen(&self, group: Option<u32>) -> Result<Place, Beside> {
        let system = |why| Beside::System { path: self.path.clone(), why };
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        prepare(directory, group).map_err(system)?;
        let found = std::fs::symlink_metadata(directory).map_err(system)?;
        let ours = found.uid() == geteuid().as_raw() || found.uid() == 0;
        if !found.is_dir() || !ours || found.mode() & 0o022 != 0 {
            return Err(Beside::Unsafe(directory.to_owned()));
        }
        let lock = self.lock(directory).await?;
        self.clear().await?;
        // Under a hidden name until its rights are right; then it is there at once. The name is the lock's to give: who was
        // killed before the rename has left it to the next who has the lock.
        let hidden = directory.join(format!(".{}~", self.name()));
        let _leftover = std::fs::remove_file(&hidden);
        let listener = UnixListener::bind(&hidden).map_err(system)?;
        let placed = set_rights(&hidden, group).and_then(|()| std::fs::rename(&hidden, &self.path));
        if let Err(why) = placed {
            let _leftover = std::fs::remove_file(&hidden);
            return Err(system(why));
        }
        Ok(Place { listener, inode: self.inode(), _lock: lock })
    }

    /// Of two that start at the same moment only one goes on: a lock tells, which the system gives back when a process ends.
    async fn lock(&self, directory: &Path) -> Result<File, Beside> {
        let system = |why| Beside::System { path: self.path.clone(), why };
        // For us alone: a lock on what others can open, they could hold.
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(directory.join(format!(".{}.lock", self.name())))
            .map_err(system)?;
        for _ in 0..ORPHANS.0 {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(ORPHANS.1).await,
                Err(TryLockError::Error(why)) => return Err(system(why)),
            }
        }
        Err(Beside::Alive(self.path.clone()))
    }

    /// Sees that nobody listens there, and takes away what a dead daemon has left.
    async fn clear(&self) -> Result<(), Beside> {
        let system = |why| Beside::System { path: self.path.clone(), why };
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(Beside::Other(self.path.clone()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(system(why)),
        }
        match UnixStream::connect(&self.path).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(&self.path).map_err(system)
            }
            // One that does not keep up with those who connect lives all the same.
            Ok(_) => Err(Beside::Alive(self.path.clone())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(Beside::Alive(self.path.clone()))
            }
            Err(why) => Err(system(why)),
        }
    }

    /// Takes the socket away, where it is still ours.
    pub(super) fn leave(&self, place: &Place) {
        let found = self.inode();
        if found.is_some() && found == place.inode {
            let _gone = std::fs::remove_file(&self.path);
        }
    }

    fn name(&self) -> std::borrow::Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    fn inode(&self) -> Option<u64> {
        std::fs::symlink_metadata(&self.path).ok().map(|found| found.ino())
    }
}

/// Makes the directory where it is missing: for us alone, or where a group shall come through, to pass for all.
fn prepare(directory: &Path, group: Option<u32>) -> io::Result<()> {
    if let Ok(found) = std::fs::symlink_metadata(directory) {
        let passes =
            found.mode() & 0o001 != 0 || (group == Some(found.gid()) && found.mode() & 0o010 != 0);
        if group.is_some() && !passes {
            let directory = directory.display();
            tracing::warn!(event = "control", "the socket's group cannot pass {directory}");
        }
        return Ok(());
    }
    let mode = if group.is_some() { 0o755 } else { 0o700 };
    DirBuilder::new().recursive(true).mode(mode).create(directory)?;
    // Said again, since the process may hide from others whatever it makes.
    std::fs::set_permissions(directory, Permissions::from_mode(mode))
}

fn set_rights(path: &Path, group: Option<u32>) -> io::Result<()> {
    if group.is_some() {
        std::os::unix::fs::lchown(path, None, group)?;
    }
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}
