//! Packages of a simulated host: its own status file, and commands that are functions.

use super::{Packages, STATUS};
use crate::failure::Failure;
use crate::host::files::Fault;
use crate::host::simulated::{here, run_here};
use crate::host::{Command, Files, Finished};
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The size limit of the status file in bytes.
const LARGEST: usize = 1 << 20;

/// Returns true if the calling thread is in a simulated host, on which no other process holds locks.
pub(super) fn is_here() -> bool {
    here().is_some()
}

/// Reads the packages of the simulated host of the calling thread, if there is one.
pub(super) fn packages_here(files: &Files) -> Option<Result<Arc<Packages>, Failure>> {
    here()?;
    let path = Path::new(STATUS);
    let read = || -> Result<Vec<u8>, Fault> {
        let Some(spot) = files.open_entry(path)? else { return Ok(Vec::new()) };
        let Some(seen) = spot.look()? else { return Ok(Vec::new()) };
        Ok(spot.content(&seen, LARGEST)?.unwrap_or_default())
    };
    let text = read().map_err(|fault| files.failure(fault, path));
    Some(text.map(|text| Arc::new(Packages::parse(&String::from_utf8_lossy(&text)))))
}

/// Runs a command that changes packages on the simulated host of the calling thread, if there is one.
pub(super) async fn transact_here(command: &Command) -> Option<Result<Finished, Failure>> {
    let running = run_here(command, &CancellationToken::new())?;
    Some(running.await)
}
