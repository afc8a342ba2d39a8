//! The key file of a repository, without which apt cannot read the lists.

use crate::check_request::Answer;
use crate::failure::Failure;
use crate::host::Host;
use crate::host::files::{Fault, Files};
use crate::parts::Precondition;
use crate::parts::commands::read_on_thread;
use crate::secrets::escape::short;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

/// The first line of an ASCII-armoured key, which text may precede.
const ARMOUR: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// The part of the file that is searched for a key.
const SEARCHED: usize = 64 * 1024;

/// The declared key file of a repository.
#[derive(Debug)]
pub(super) struct KeyFile {
    /// The name of the repository.
    pub(super) name: String,
    pub(super) path: PathBuf,
}

impl KeyFile {
    fn failure(&self, end: &str) -> Failure {
        let (path, name) = (self.path.display().to_string(), short(&self.name, 20));
        let what = format!("the key file {} of {name} {end}", short(&path, 45));
        let hint = "install the key, or declare it as a `file` or in `signed_by`";
        Failure::new(what).hint(hint).passing()
    }
}

impl Precondition for KeyFile {
    fn require<'a>(&'a self, host: &'a Host) -> Answer<'a, Result<(), Failure>> {
        Box::pin(async move {
            if host.look(&self.path).await.is_err() {
                return Err(self.failure("does not exist"));
            }
            let path = self.path.clone();
            let read = read_on_thread(host, move |host| {
                let files = host.files();
                first_bytes(files, &path).map_err(|fault| files.failure(fault, &path))
            });
            // apt follows a link.
            let Some(bytes) = read.await? else { return Ok(()) };
            if is_key(&bytes) { Ok(()) } else { Err(self.failure("contains no public key")) }
        })
    }
}

/// Returns the beginning of a regular file; none for any other object.
fn first_bytes(files: &Files, path: &Path) -> Result<Option<Vec<u8>>, Fault> {
    let Some(entry) = files.open_entry(path)? else { return Ok(None) };
    let seen = entry.look()?.filter(|seen| seen.kind == FileType::RegularFile);
    seen.map(|seen| entry.first_bytes(&seen, SEARCHED)).transpose()
}

/// Returns true if the bytes are the beginning of a key: each binary packet begins with a set bit.
fn is_key(bytes: &[u8]) -> bool {
    let is_binary = bytes.first().is_some_and(|first| first & 0x80 != 0);
    is_binary || bytes.windows(ARMOUR.len()).any(|part| part == ARMOUR.as_bytes())
}
