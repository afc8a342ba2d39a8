//! The graph that was accepted last, as it was read: a start runs it where the graph that is there then is refused.

use crate::config::{LoadedGraph, Text};
use crate::store::database::{private, sync};
use crate::store::regular_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Its file in the state directory.
const FILE: &str = "graph.json";

/// The version of its shape; the first said nothing of the generation.
const VERSION: u32 = 2;

/// Which graph it is, for people: part of what the manifest of a state must say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphVersion {
    /// Counts the graphs that were accepted in this state directory, as far as each was another one than the one before.
    #[serde(default)]
    pub number: u64,
    /// The name of the graph.
    pub graph: String,
    /// The hash of all that was read: 16 hexadecimal digits.
    pub hash: String,
    /// The kinds in it, sorted.
    pub kinds: BTreeSet<String>,
    /// The version of the program that accepted it; its kinds are of that version.
    pub program: String,
}

impl GraphVersion {
    /// Of a graph that was read.
    pub(super) fn of(graph: &LoadedGraph) -> Self {
        let mut kinds = BTreeSet::new();
        for vertex in &graph.vertices {
            let kind = vertex.identity.split('[').next().unwrap_or_default();
            if !kinds.contains(kind) {
                kinds.insert(kind.to_owned());
            }
        }
        Self {
            number: 0,
            graph: graph.name.clone(),
            hash: format!("{:016x}", graph.hash),
            kinds,
            program: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Which graph was accepted last, and when (seconds since 1970); none where none was, or an older program accepted it.
#[must_use]
pub fn generation(state_directory: &Path) -> Option<(GraphVersion, u64)> {
    let kept = of_any(state_directory)?;
    Some((kept.generation?, kept.at))
}

/// A graph that was accepted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LastGoodGraph {
    version: u32,
    /// When, in seconds since 1970.
    pub(super) at: u64,
    #[serde(default)]
    generation: Option<GraphVersion>,
    /// What was named on the command line or in the settings: another name means another graph.
    paths: Vec<PathBuf>,
    /// Its files. Secrets stand in them by name, as everywhere.
    pub(super) texts: Vec<Text>,
}

/// The stored graph, read under these names where some are given; none where there is none, or it cannot be read.
pub(super) fn read(state_directory: &Path, paths: Option<&[PathBuf]>) -> Option<LastGoodGraph> {
    let is_it = |kept: &LastGoodGraph| paths.is_none_or(|paths| kept.paths == absolute(paths));
    of_any(state_directory).filter(is_it)
}

/// The same under whichever names.
fn of_any(state_directory: &Path) -> Option<LastGoodGraph> {
    let unreadable = |why: &dyn std::fmt::Display| {
        tracing::warn!(event = "warning", "{FILE} cannot be read: {why}");
    };
    let text = match regular_file::read(&state_directory.join(FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        read => read.inspect_err(|error| unreadable(error)).ok()?,
    };
    let kept: LastGoodGraph =
        serde_json::from_slice(&text).inspect_err(|error| unreadable(error)).ok()?;
    (kept.version <= VERSION).then_some(kept)
}

/// Removes what is left of a write that was cut off.
pub(super) fn clear(state_directory: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(state_directory.join(format!("{FILE}.new"))) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Keeps it, whole or not at all; nothing is written where it is kept already. Answers whether it is kept.
pub(super) fn write(
    state_directory: &Path,
    paths: &[PathBuf],
    (generation, texts): (&GraphVersion, &[Text]),
) -> std::io::Result<bool> {
    // What was piped in is in no file, and whoever starts the daemon pipes another.
    if paths.iter().any(|path| path.as_os_str() == "-") {
        return Ok(false);
    }
    let (new, path) = (state_directory.join(format!("{FILE}.new")), state_directory.join(FILE));
    let before = of_any(state_directory);
    if before.as_ref().is_some_and(|kept| kept.paths == absolute(paths) && kept.texts == texts) {
        return Ok(true);
    }
    let number = before.and_then(|kept| kept.generation).map_or(1, |last| last.number + 1);
    let generation = Some(GraphVersion { number, ..generation.clone() });
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (version, paths, texts) = (VERSION, absolute(paths), texts.to_vec());
    let kept = LastGoodGraph { version, at, generation, paths, texts };
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
