//! The last-good graph: its texts are stored, and a start runs them if the present graph is rejected.

use crate::config::{LoadedGraph, Text};
use crate::store::LAST_GOOD_GRAPH;
use crate::store::database::{move_aside, private, sync};
use crate::store::regular_file;
use crate::world::bundle::sha256_hex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of the format; version 1 had no graph version, and version 2 no checksum.
const VERSION: u32 = 3;

/// The first version with a checksum.
const WITH_SUM: u32 = 3;

/// The identity of an accepted graph; part of the manifest of a state directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphVersion {
    /// The number of different graphs accepted in this state directory so far.
    #[serde(default)]
    pub number: u64,
    /// The name of the graph.
    pub graph: String,
    /// The hash of all texts: 16 hexadecimal digits.
    pub hash: String,
    /// The kinds in the graph, sorted.
    pub kinds: BTreeSet<String>,
    /// The version of steadfast that accepted the graph.
    pub program: String,
}

impl GraphVersion {
    /// Returns the identity of a loaded graph, without its number.
    pub(in crate::workers) fn of(graph: &LoadedGraph) -> Self {
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

/// Returns the last-good graph's identity, and the time of its acceptance in seconds since 1970; `None` if there is
/// none, or if an older program stored it.
#[must_use]
pub fn generation(state_directory: &Path) -> Option<(GraphVersion, u64)> {
    let kept = of_any(state_directory)?;
    Some((kept.generation?, kept.at))
}

/// The stored form of an accepted graph.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workers) struct LastGoodGraph {
    version: u32,
    /// The time of the acceptance, in seconds since 1970.
    pub(in crate::workers) at: u64,
    #[serde(default)]
    generation: Option<GraphVersion>,
    /// The paths named on the command line or in the settings: other paths mean another graph.
    paths: Vec<PathBuf>,
    /// The texts of the files. Secrets appear only by name.
    pub(in crate::workers) texts: Vec<Text>,
    /// The SHA-256 of all that is above, in hexadecimal digits.
    #[serde(default)]
    sum: String,
}

impl LastGoodGraph {
    fn checksum(&self) -> std::io::Result<String> {
        let all = (self.version, self.at, &self.generation, &self.paths, &self.texts);
        Ok(sha256_hex(&serde_json::to_vec(&all)?))
    }
}

/// Returns the damage of the stored graph; `None` if it is intact, or if there is none.
#[must_use]
pub fn damage_of_last_good_graph(state_directory: &Path) -> Option<String> {
    open(state_directory).err().map(|why| format!("{LAST_GOOD_GRAPH}: {why}"))
}

/// Renames a damaged graph, so that it can be examined. Returns a line about it; `None` if the graph is intact.
#[must_use]
pub fn put_damaged_graph_aside(state_directory: &Path) -> Option<String> {
    let why = damage_of_last_good_graph(state_directory)?;
    Some(match move_aside(&state_directory.join(LAST_GOOD_GRAPH)) {
        Ok(aside) => format!("{why}; moved to {}", aside.display()),
        Err(error) => format!("{why}; it cannot be moved: {error}"),
    })
}

/// Reads the stored graph; returns `None` if there is none, it is unreadable, or it was read from other paths than
/// given.
pub(in crate::workers) fn read(
    state_directory: &Path,
    paths: Option<&[PathBuf]>,
) -> Option<LastGoodGraph> {
    let is_it = |kept: &LastGoodGraph| paths.is_none_or(|paths| kept.paths == absolute(paths));
    of_any(state_directory).filter(is_it)
}

/// Reads the stored graph, regardless of its paths.
fn of_any(state_directory: &Path) -> Option<LastGoodGraph> {
    open(state_directory).unwrap_or_else(|why| {
        tracing::warn!(event = "warning", "{LAST_GOOD_GRAPH} cannot be read: {why}");
        None
    })
}

/// Reads the stored graph and verifies its checksum.
fn open(state_directory: &Path) -> std::io::Result<Option<LastGoodGraph>> {
    let text = match regular_file::read(&state_directory.join(LAST_GOOD_GRAPH)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let kept: LastGoodGraph = serde_json::from_slice(&text)?;
    if kept.version >= WITH_SUM && kept.version <= VERSION && kept.sum != kept.checksum()? {
        return Err(std::io::Error::other("its checksum does not match"));
    }
    Ok(Some(kept).filter(|kept| kept.version <= VERSION))
}

/// Removes the leftover of an interrupted write.
pub(in crate::workers) fn clear(state_directory: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(state_directory.join(format!("{LAST_GOOD_GRAPH}.new"))) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Stores a graph atomically, unless it is stored already. Returns false for a graph that is not stored.
pub(in crate::workers) fn write(
    state_directory: &Path,
    paths: &[PathBuf],
    (generation, texts): (&GraphVersion, &[Text]),
) -> std::io::Result<bool> {
    // A graph from the standard input is in no file, and the next start may read another one.
    if paths.iter().any(|path| path.as_os_str() == "-") {
        return Ok(false);
    }
    let (new, path) = (
        state_directory.join(format!("{LAST_GOOD_GRAPH}.new")),
        state_directory.join(LAST_GOOD_GRAPH),
    );
    let before = of_any(state_directory);
    if before.as_ref().is_some_and(|kept| kept.paths == absolute(paths) && kept.texts == texts) {
        return Ok(true);
    }
    let number = before.and_then(|kept| kept.generation).map_or(1, |last| last.number + 1);
    let generation = Some(GraphVersion { number, ..generation.clone() });
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (version, paths, texts) = (VERSION, absolute(paths), texts.to_vec());
    let mut kept = LastGoodGraph { version, at, generation, paths, texts, sum: String::new() };
    kept.sum = kept.checksum()?;
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
