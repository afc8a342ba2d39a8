//! The check value of the key: a keyed hash of a constant. A damaged key is named, and not taken for another one.

use super::regular_file;
use super::state_dir::private;
use ring::hmac;
use std::io::Write as _;
use std::path::Path;

/// The name of the file in the state directory.
pub(super) const CHECK: &str = "values.key.check";

/// The constant whose hash is the check value.
const CONSTANT: &[u8] = b"steadfast values.key";

/// Returns the reason for which this key is not the one of the check value. A state without a whole check value has
/// none: an older program made it, or the write of the check value was interrupted.
pub(super) fn find_damage(directory: &Path, key: &[u8; 32]) -> Option<String> {
    let stored = regular_file::read(&directory.join(CHECK)).ok()?;
    let is_whole = stored.len() == 65 && stored.ends_with(b"\n");
    (is_whole && stored != check_value(key)).then(|| format!("the content does not match {CHECK}"))
}

/// Stores the check value of a key, unless there is a whole one.
pub(super) fn complete(directory: &Path, key: &[u8; 32]) {
    let path = directory.join(CHECK);
    if regular_file::read(&path).is_ok_and(|stored| stored.len() == 65) {
        return;
    }
    let written = private(&path).and_then(|mut file| {
        file.set_len(0)?;
        file.write_all(&check_value(key))?;
        file.sync_all()
    });
    if let Err(error) = written {
        tracing::debug!(%error, "the check value of the key is stored at a later start");
    }
}

/// Removes the check value of a key that is about to be replaced.
pub(super) fn remove(directory: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(directory.join(CHECK)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn check_value(key: &[u8; 32]) -> Vec<u8> {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), CONSTANT);
    let mut text = String::new();
    for byte in tag.as_ref() {
        text.push_str(&format!("{byte:02x}"));
    }
    text.push('\n');
    text.into_bytes()
}
