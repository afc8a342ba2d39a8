//! The last-good settings: their text, stored in the state directory, for a start at which the settings file is
//! rejected.

use crate::config::Text;
use crate::store::database::{private, sync};
use crate::store::{SqliteStore, regular_file};
use serde::{Deserialize, Serialize};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use steadfast_resources::{Encrypted, Host, Secret, StateKey};

/// The file in the state directory.
const FILE: &str = "settings.json";

/// The version of the format.
const VERSION: u32 = 1;

/// The context of the encryption.
const PLACE: &[&str] = &["settings"];

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    /// The time of writing, in seconds since 1970.
    at: u64,
    /// The text, encrypted with the key of the state directory, because headers of a webhook are secrets.
    encrypted: String,
}

/// Returns the last-good text of a settings file, and the time of storing it in seconds since 1970. `None` if no text
/// is stored, the text cannot be decrypted, or others than the owner may enter the directory.
#[must_use]
pub fn last_good_settings(state_directory: &Path, file: &Path) -> Option<(Text, u64)> {
    let found = std::fs::metadata(state_directory).ok()?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own || found.mode() & 0o077 != 0 {
        return None;
    }
    let (text, at) = read(state_directory)?;
    text.is_of(file).then_some((text, at))
}

fn read(state_directory: &Path) -> Option<(Text, u64)> {
    let bytes = regular_file::read(&state_directory.join(FILE)).ok()?;
    let stored: Stored = serde_json::from_slice(&bytes).ok()?;
    let stored = Some(stored).filter(|stored| stored.version == VERSION)?;
    let key = StateKey::new(SqliteStore::peek_key(state_directory)?.0);
    let text = key.decrypt(&Encrypted::from_hex(&stored.encrypted)?, PLACE)?;
    Some((serde_json::from_str(text.reveal()).ok()?, stored.at))
}

/// Stores the text atomically, unless it is stored already. The state directory must have its key.
pub(in crate::workers) fn write(state_directory: &Path, text: &Text) -> std::io::Result<()> {
    if read(state_directory).is_some_and(|(stored, _)| stored == *text) {
        return Ok(());
    }
    let key = SqliteStore::peek_key(state_directory);
    let key = key.ok_or_else(|| std::io::Error::other("the state directory has no key yet"))?;
    let text = Secret::from(serde_json::to_string(text)?);
    let encrypted = StateKey::new(key.0).encrypt(&text, PLACE, &Host::default());
    let encrypted = encrypted.map_err(|failure| std::io::Error::other(failure.what))?.to_hex();
    let (new, path) = (state_directory.join(format!("{FILE}.new")), state_directory.join(FILE));
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let mut file = private(&new)?;
    file.set_len(0)?;
    file.write_all(&serde_json::to_vec(&Stored { version: VERSION, at, encrypted })?)?;
    file.sync_all()?;
    std::fs::rename(&new, &path)?;
    sync(state_directory)
}
