//! The graph that was accepted last, as it was read: a start runs it where the graph that is there then is refused.

use crate::config::Text;
use crate::store::database::{private, sync};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Its file in the state directory.
const FILE: &str = "graph.json";

/// The version of its shape.
const VERSION: u32 = 1;

/// A graph that was accepted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Accepted {
    version: u32,
    /// When, in seconds since 1970.
    pub(super) at: u64,
    /// What was named on the command line or in the settings: another name means another graph.
    paths: Vec<PathBuf>,
    /// Its files. Secrets stand in them by name, as everywhere.
    pub(super) texts: Vec<Text>,
}

/// What was kept of the graph with these names; none where nothing was, or it cannot be read.
pub(super) fn read(state_directory: &Path, paths: &[PathBuf]) -> Option<Accepted> {
    let text = std::fs::read(state_directory.join(FILE)).ok()?;
    let kept: Accepted = serde_json::from_slice(&text)
        .inspect_err(|error| tracing::warn!(event = "warning", "{FILE} cannot be read: {error}"))
        .ok()?;
    (kept.version == VERSION && kept.paths == absolute(paths)).then_some(kept)
}

/// Removes what is left of a write that was cut off.
pub(super) fn clear(state_directory: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(state_directory.join(format!("{FILE}.new"))) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Keeps it, whole or not at all; nothing is written where it is kept already. Answers whether it is kept.
pub(super) fn write(
    state_directory: &Path,
    paths: &[PathBuf],
    texts: &[Text],
) -> std::io::Result<bool> {
    // What was piped in is in no file, and whoever starts the daemon pipes another.
    if paths.iter().any(|path| path.as_os_str() == "-") {
        return Ok(false);
    }
    let (new, path) = (state_directory.join(format!("{FILE}.new")), state_directory.join(FILE));
    if read(state_directory, paths).is_some_and(|kept| kept.texts == texts) {
        return Ok(true);
    }
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let kept = Accepted { version: VERSION, at, paths: absolute(paths), texts: texts.to_vec() };
    let mut file = private(&new)?;
    file.set_len(0)?;
    file.write_all(&serde_json::to_vec(&kept)?)?;
    file.sync_all()?;
    std::fs::rename(&new, &path)?;
    sync(state_directory)?;
    Ok(true)
}

fn absolute(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone())).collect()
}
