//! The folders of unpacked bundles in the state directory, and the link `current` to the one that runs.

use crate::world::bundle::{self, Bundle};
use std::io;
use std::path::{Path, PathBuf};

/// The folder of unpacked bundles in the state directory.
pub(super) const FOLDER: &str = "bundles";

/// The link to the running bundle.
const CURRENT: &str = "current";

/// Returns the link to the running bundle of a state directory.
#[must_use]
pub fn bundle_link(state_directory: &Path) -> PathBuf {
    state_directory.join(FOLDER).join(CURRENT)
}

/// Returns the name of the folder of a bundle.
pub(super) fn folder_of(sequence: u64, digest: &str) -> String {
    format!("{sequence}-{}", digest.get(..12).unwrap_or("x"))
}

/// Returns the sequence of a folder's bundle, and the first digits of its manifest.
fn bundle_of(folder: &str) -> Option<(u64, &str)> {
    let (sequence, digest) = folder.split_once('-')?;
    Some((sequence.parse().ok()?, digest))
}

/// Returns the sequence of the bundle to which `current` leads, and the first digits of its manifest; none if the link
/// leads to no bundle.
pub(super) fn current_bundle(state_directory: &Path) -> Option<(u64, String)> {
    let target = std::fs::read_link(bundle_link(state_directory)).ok()?;
    let (sequence, digest) = bundle_of(target.file_name()?.to_str()?)?;
    Some((sequence, digest.to_owned()))
}

/// Unpacks a bundle at a place, anew.
pub(super) fn unpack(bundle: &Bundle, place: &Path) -> io::Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place)?;
    }
    bundle::unpack_bundle(bundle, place)
}

/// Makes `current` lead to a folder, in one step.
pub(super) fn switch_link(folder: &Path, to: &Path) -> io::Result<()> {
    let new = folder.join("current.new");
    drop(std::fs::remove_file(&new));
    std::os::unix::fs::symlink(to, &new)?;
    std::fs::rename(&new, folder.join(CURRENT))
}

/// Removes all unpacked bundles except the last two, the running one, and the one to which `current` leads.
pub(super) fn remove_old(folder: &Path, running: Option<&str>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let target = std::fs::read_link(folder.join(CURRENT)).unwrap_or_default();
    let is_used = |name: &str| running == Some(name) || target == Path::new(name);
    let sequence = |name: &str| bundle_of(name).map(|(sequence, _)| sequence);
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| sequence(name).is_some() && !is_used(name))
        .collect();
    names.sort_by_key(|name| std::cmp::Reverse(sequence(name)));
    for name in names.into_iter().skip(2) {
        if let Err(error) = std::fs::remove_dir_all(folder.join(&name)) {
            tracing::debug!(%error, name, "an old bundle was not removed");
        }
    }
}
