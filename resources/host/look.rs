//! Looks at a path without holding the caller's thread.

use super::{Host, spawner};
use std::fs::Metadata;
use std::io;
use std::path::Path;

impl Host {
    /// What is at a path, links followed; for kinds that must not block ([`crate::Seat::Command`]).
    pub async fn look(&self, path: &Path) -> io::Result<Metadata> {
        let path = path.to_owned();
        let handle = spawner::handle().map_err(io::Error::other)?;
        let looked = handle.spawn_blocking(move || path.metadata()).await;
        looked.map_err(io::Error::other)?
    }
}
