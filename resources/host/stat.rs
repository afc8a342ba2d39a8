//! Reads the metadata of a path without blocking the caller's thread.

use super::Host;
use super::process::spawner;
use std::io;
use std::path::Path;

/// The metadata of a path for callers that must not block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// The time of the last content change, in seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
}

impl Host {
    /// Returns the metadata of a path, with links followed, for kinds that must not block
    /// ([`crate::ExecutorKind::Command`]).
    ///
    /// # Errors
    ///
    /// Returns the error of stat(2), for example for a missing path.
    pub async fn look(&self, path: &Path) -> io::Result<PathInfo> {
        #[cfg(feature = "simulated-host")]
        if let Some(glance) = super::simulated::glance_here(path) {
            return glance;
        }
        let path = path.to_owned();
        let handle = spawner::handle().map_err(io::Error::other)?;
        let looked = handle.spawn_blocking(move || glance(&path)).await;
        looked.map_err(io::Error::other)?
    }
}

fn glance(path: &Path) -> io::Result<PathInfo> {
    use std::os::unix::fs::MetadataExt as _;
    let found = path.metadata()?;
    Ok(PathInfo { modified: (found.mtime(), found.mtime_nsec()) })
}
