//! Where the socket is: a path in a directory of ours, never an abstract name.

use rustix::process::geteuid;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// Where a daemon listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(PathBuf);

/// Why nobody can listen there.
#[derive(Debug, thiserror::Error)]
pub enum Beside {
    /// Another daemon does.
    #[error("another daemon listens at {}", .0.display())]
    Alive(PathBuf),
    /// Its directory is not ours alone.
    #[error("{} belongs to somebody else, or others may write there", .0.display())]
    Unsafe(PathBuf),
    /// The system refuses.
    #[error("cannot listen at {}: {why}", path.display())]
    System {
        /// Where.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

impl Address {
    /// A given one.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The usual one: in the unit's runtime directory, or /run/steadfast, or without root in the user's runtime directory. A state
    /// directory other than the usual one has a socket of its own, in it.
    #[must_use]
    pub fn usual(state_directory: Option<&Path>) -> Self {
        if let Some(directory) = state_directory {
            return Self(directory.join("control.socket"));
        }
        let directory = match std::env::var_os("RUNTIME_DIRECTORY") {
            Some(given) if !given.is_empty() => PathBuf::from(given),
            _ if geteuid().is_root() => PathBuf::from("/run/steadfast"),
            _ => match std::env::var_os("XDG_RUNTIME_DIR") {
                Some(given) if !given.is_empty() => PathBuf::from(given).join("steadfast"),
                _ => PathBuf::from(format!("/tmp/steadfast-{}", geteuid().as_raw())),
            },
        };
        Self(directory.join("control.socket"))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Listens there. A socket that a dead daemon has left is replaced, that of a living one never.
    pub(super) async fn listen(
        &self,
        mode: u32,
        group: Option<u32>,
    ) -> Result<UnixListener, Beside> {
        let system = |why| Beside::System { path: self.0.clone(), why };
        let directory = self.0.parent().unwrap_or_else(|| Path::new("/"));
        match DirBuilder::new().recursive(true).mode(0o755).create(directory) {
            Ok(()) => {}
            Err(why) => return Err(system(why)),
        }
        let found = std::fs::symlink_metadata(directory).map_err(system)?;
        let ours = found.uid() == geteuid().as_raw() || found.uid() == 0;
        if !found.is_dir() || !ours || found.mode() & 0o022 != 0 {
            return Err(Beside::Unsafe(directory.to_owned()));
        }
        match UnixStream::connect(&self.0).await {
            Ok(_) => return Err(Beside::Alive(self.0.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Nobody listens any more.
            Err(_) => std::fs::remove_file(&self.0).map_err(system)?,
        }
        // Under a hidden name until its rights are right; then it is there at once.
        let hidden = directory.join(format!(".control.{}", std::process::id()));
        let _leftover = std::fs::remove_file(&hidden);
        let listener = UnixListener::bind(&hidden).map_err(system)?;
        let placed =
            set_rights(&hidden, mode, group).and_then(|()| std::fs::rename(&hidden, &self.0));
        if let Err(why) = placed {
            let _leftover = std::fs::remove_file(&hidden);
            return Err(system(why));
        }
        Ok(listener)
    }

    /// Takes the socket away, where it is still ours.
    pub(super) fn leave(&self, inode: Option<u64>) {
        let found = std::fs::symlink_metadata(&self.0).ok().map(|found| found.ino());
        if found.is_some() && found == inode {
            let _gone = std::fs::remove_file(&self.0);
        }
    }

    pub(super) fn inode(&self) -> Option<u64> {
        std::fs::symlink_metadata(&self.0).ok().map(|found| found.ino())
    }
}

fn set_rights(path: &Path, mode: u32, group: Option<u32>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if group.is_some() {
        std::os::unix::fs::lchown(path, None, group)?;
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}
