//! The address of the control socket: a path in a directory of the daemon's user, never an abstract name.

use crate::api::Principal;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};

/// The address of a control socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    path: PathBuf,
    /// True if any user could have created the directory first.
    is_public: bool,
    /// True if the socket is in the state directory, which has mode 0700 and is never created for the socket.
    is_in_state: bool,
}

/// An error of binding the control socket.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another daemon listens at the path.
    #[error("another daemon listens at {}", .0.display())]
    Alive(PathBuf),
    /// The directory belongs to another user, or others may write there.
    #[error("{} belongs to another user, or is writable by others", .0.display())]
    Unsafe(PathBuf),
    /// The path exists and is not a socket.
    #[error("{} is not a socket: move the file away, or select another path with --socket", .0.display())]
    Other(PathBuf),
    /// A system call failed.
    #[error("cannot listen at {}: {why}", path.display())]
    System {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the system call.
        why: io::Error,
    },
}

/// A bound socket. The process owns the socket as long as the lock file is open.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) listener: UnixListener,
    inode: Option<u64>,
    lock: File,
}

/// The name of the socket in its directory.
const SOCKET: &str = "control.socket";
/// The name of the metrics socket beside it.
const METRICS: &str = "metrics.sock";

/// The number of attempts to get the lock, and the pause between two. A child process of a killed daemon has the lock
/// file open until its exec.
const ORPHANS: (u32, Duration) = (20, Duration::from_millis(25));

impl Address {
    /// Creates the address of a given path.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path, is_public: false, is_in_state: false }
    }

    fn in_state(directory: &Path) -> Self {
        // The rights of the directory are checked, not those of a link to it.
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        Self { path: directory.join(SOCKET), is_public: false, is_in_state: true }
    }

    /// Returns the default address: in the unit's runtime directory, or in /run/steadfast, or for other users than root
    /// in the user's runtime directory. A state directory other than the default one has its own socket. `usual_state`
    /// is the default state directory; its socket serves users without a runtime directory if another user owns the
    /// path in /tmp.
    #[must_use]
    pub fn usual(state_directory: Option<&Path>, usual_state: &Path) -> Self {
        if let Some(directory) = state_directory {
            return Self::in_state(directory);
        }
        let given = |name| std::env::var_os(name).filter(|given| !given.is_empty());
        let directory = if let Some(given) = given("RUNTIME_DIRECTORY") {
            PathBuf::from(given)
        } else if geteuid().is_root() {
            PathBuf::from("/run/steadfast")
        } else if let Some(given) = given("XDG_RUNTIME_DIR") {
            PathBuf::from(given).join("steadfast")
        } else {
            let shared = format!("/tmp/steadfast-{}", geteuid().as_raw());
            return Self::public(Path::new(&shared), usual_state);
        };
        Self::at(directory.join(SOCKET))
    }

    /// Returns the address in a directory that any user could have created first. If another user owns the directory,
    /// the address is in the state directory, and stays there for clients as long as that socket exists.
    fn public(shared: &Path, usual_state: &Path) -> Self {
        let is_ours = std::fs::symlink_metadata(shared).ok().map(|found| is_safe(&found));
        let is_in_state = match is_ours {
            Some(is_ours) => !is_ours,
            None => usual_state.join(SOCKET).exists(),
        };
        if is_in_state {
            return Self::in_state(usual_state);
        }
        Self { path: shared.join(SOCKET), is_public: true, is_in_state: false }
    }

    /// Returns the address of the metrics socket in the same directory: `metrics.sock`, or `NAME.metrics.sock` for a
    /// control socket of another name, since several daemons may share a directory.
    #[must_use]
    pub fn of_metrics(&self) -> Self {
        let name = self.name();
        let own = if name == SOCKET { METRICS.to_owned() } else { format!("{name}.{METRICS}") };
        Self { path: self.path.with_file_name(own), ..self.clone() }
    }

    /// Returns the path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the listening process is trusted. In a public directory, only root and the own user are.
    pub(super) fn believes(&self, listener: Principal) -> bool {
        !self.is_public || listener.is_trusted()
    }

    /// Binds the socket. The socket of a dead daemon is replaced.
    ///
    /// # Errors
    /// [`BindError`] if another daemon listens, the path is not a socket, the directory is unsafe, or a system call
    /// fails.
    pub(super) async fn listen(&self, group: Option<u32>) -> Result<Place, BindError> {
        let system = |why| BindError::System { path: self.path.clone(), why };
        let directory = self.directory();
        self.prepare(directory, group).map_err(system)?;
        self.judge(directory)?;
        let lock = self.lock(directory).await?;
        let listener = self.bind(directory, group).await?;
        Ok(Place { listener, inode: self.inode(), lock })
    }

    /// Returns true if the path no longer leads to this socket: the socket was removed or replaced.
    pub(super) fn has_lost(&self, place: &Place) -> bool {
        self.inode() != place.inode
    }

    /// Creates a removed socket again. Accepted connections continue.
    ///
    /// # Errors
    /// [`BindError`], as for [`Address::listen`].
    pub(super) async fn listen_again(
        &self,
        place: &mut Place,
        group: Option<u32>,
    ) -> Result<(), BindError> {
        let system = |why| BindError::System { path: self.path.clone(), why };
        let directory = self.directory();
        if self.is_in_state && !directory.exists() {
            return Err(system(io::ErrorKind::NotFound.into()));
        }
        self.prepare(directory, group).map_err(system)?;
        self.judge(directory)?;
        let held = place.lock.metadata().map_err(system)?;
        let found = std::fs::symlink_metadata(self.lock_path(directory));
        if !found.is_ok_and(|found| (found.dev(), found.ino()) == (held.dev(), held.ino())) {
            place.lock = self.lock(directory).await?;
        }
        place.listener = self.bind(directory, group).await?;
        place.inode = self.inode();
        Ok(())
    }

    fn directory(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        }
    }

    /// Rejects a directory that belongs to another user or that others may write.
    fn judge(&self, directory: &Path) -> Result<(), BindError> {
        let system = |why| BindError::System { path: self.path.clone(), why };
        let found = std::fs::symlink_metadata(directory).map_err(system)?;
        if !is_safe(&found) {
            return Err(BindError::Unsafe(directory.to_owned()));
        }
        Ok(())
    }

    /// Binds the socket while the lock is held.
    async fn bind(&self, directory: &Path, group: Option<u32>) -> Result<UnixListener, BindError> {
        let system = |why| BindError::System { path: self.path.clone(), why };
        self.clear().await?;
        // The socket has a hidden name until its mode and group are set; the rename then publishes it at once. Only the
        // owner of the lock uses the hidden name, and removes a leftover of a killed daemon.
        let hidden = directory.join(format!(".{}~", self.name()));
        let _leftover = std::fs::remove_file(&hidden);
        let listener = UnixListener::bind(&hidden).map_err(system)?;
        let placed = set_rights(&hidden, group).and_then(|()| std::fs::rename(&hidden, &self.path));
        if let Err(why) = placed {
            let _leftover = std::fs::remove_file(&hidden);
            return Err(system(why));
        }
        Ok(listener)
    }

    fn lock_path(&self, directory: &Path) -> PathBuf {
        directory.join(format!(".{}.lock", self.name()))
    }

    /// Takes the lock of the directory, so that only one of two starting daemons continues. The kernel releases the
    /// lock when the process ends.
    async fn lock(&self, directory: &Path) -> Result<File, BindError> {
        let system = |why| BindError::System { path: self.path.clone(), why };
        // Mode 0600: others could hold a lock on a file that they can open.
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(self.lock_path(directory))
            .map_err(system)?;
        for _ in 0..ORPHANS.0 {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(ORPHANS.1).await,
                Err(TryLockError::Error(why)) => return Err(system(why)),
            }
        }
        Err(BindError::Alive(self.path.clone()))
    }

    /// Checks that no process listens at the path, and removes the socket of a dead daemon.
    async fn clear(&self) -> Result<(), BindError> {
        let system = |why| BindError::System { path: self.path.clone(), why };
        match std::fs::symlink_metadata(&self.path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(BindError::Other(self.path.clone()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(system(why)),
        }
        match UnixStream::connect(&self.path).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(&self.path).map_err(system)
            }
            // A daemon whose queue of connections is full is alive too.
            Ok(_) => Err(BindError::Alive(self.path.clone())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(BindError::Alive(self.path.clone()))
            }
            Err(why) => Err(system(why)),
        }
    }

    /// Removes the socket if the path still leads to the own socket.
    pub(super) fn leave(&self, place: &Place) {
        let found = self.inode();
        if found.is_some() && found == place.inode {
            let _gone = std::fs::remove_file(&self.path);
        }
    }

    /// Creates the directory if it is missing: with mode 0700, or 0755 if a group may connect. A state directory always
    /// has mode 0700.
    fn prepare(&self, directory: &Path, group: Option<u32>) -> io::Result<()> {
        let mode = if group.is_some() && !self.is_in_state { 0o755 } else { 0o700 };
        if std::fs::symlink_metadata(directory).is_err() {
            DirBuilder::new().recursive(true).mode(mode).create(directory)?;
            // The mode is set again because the umask may have removed bits.
            std::fs::set_permissions(directory, Permissions::from_mode(mode))?;
        }
        let found = std::fs::symlink_metadata(directory)?;
        let passes =
            found.mode() & 0o001 != 0 || (group == Some(found.gid()) && found.mode() & 0o010 != 0);
        if group.is_some() && !passes {
            let directory = directory.display();
            tracing::warn!(
                event = "control",
                "the group of the socket cannot enter {directory}: select another path with --socket"
            );
        }
        Ok(())
    }

    fn name(&self) -> std::borrow::Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    fn inode(&self) -> Option<u64> {
        std::fs::symlink_metadata(&self.path).ok().map(|found| found.ino())
    }
}

/// Returns true if a directory belongs to the own user or root, and nobody else can write there.
fn is_safe(found: &Metadata) -> bool {
    let is_ours = found.uid() == geteuid().as_raw() || found.uid() == 0;
    found.is_dir() && is_ours && found.mode() & 0o022 == 0
}

fn set_rights(path: &Path, group: Option<u32>) -> io::Result<()> {
    if group.is_some() {
        std::os::unix::fs::lchown(path, None, group)?;
    }
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::{Address, SOCKET};
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    /// L8: neither the daemon nor its clients use a directory in /tmp that another user created.
    #[test]
    fn a_taken_place_gives_way_to_the_state_directory() {
        assert!(rustix::process::geteuid().is_root(), "this test must run as root");
        let place = tempfile::tempdir().expect("a directory");
        let (shared, state) = (place.path().join("shared"), place.path().join("state"));
        let address = || Address::public(&shared, &state);
        let (first, other) = (shared.join(SOCKET), state.join(SOCKET));
        assert_eq!(address().path(), first, "nothing is there yet");
        assert_eq!(address().of_metrics().path(), shared.join("metrics.sock"));
        let named = Address::at(shared.join("web")).of_metrics();
        assert_eq!(named.path(), shared.join("web.metrics.sock"));
        std::fs::create_dir(&shared).expect("made");
        assert_eq!(address().path(), first, "it is ours");
        std::fs::set_permissions(&shared, Permissions::from_mode(0o777)).expect("changed");
        assert_eq!(address().path(), other, "is writable by others");
        std::fs::set_permissions(&shared, Permissions::from_mode(0o755)).expect("changed");
        chown(&shared, Some(65534), None).expect("given away");
        assert_eq!(address().path(), other, "it is somebody else's");
        std::fs::remove_dir(&shared).expect("removed");
        symlink(place.path(), &shared).expect("linked");
        assert_eq!(address().path(), other, "it is a link");
        // Clients find a daemon in the state directory even after the public directory is free again.
        std::fs::create_dir(&state).expect("made");
        std::fs::write(&other, "").expect("written");
        std::fs::remove_file(&shared).expect("removed");
        assert_eq!(address().path(), other);
    }
}
