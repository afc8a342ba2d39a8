//! The fetch of one bundle from a folder, a server or a git repository. Nothing of it is believed before the signature
//! is verified.

use super::download::{DownloadError, download_file};
use super::git_fetch::{GitFetchError, fetch_from_git};
use crate::world::bundle::{BundleSource, MAX_BUNDLE_BYTES};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use thiserror::Error;
use tokio::task::JoinError;

/// The reason for which a bundle was not fetched.
#[derive(Debug, Error)]
pub(super) enum FetchError {
    /// The record of the deploy names no plain file.
    #[error("expected the name of a file, found `{0}`")]
    FileName(String),
    /// The bundle was not downloaded.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The git repository has no such bundle, or cannot be read.
    #[error(transparent)]
    Git(#[from] GitFetchError),
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The thread that reads the file panicked.
    #[error("{0}")]
    Panicked(#[from] JoinError),
}

/// Returns the bytes of a bundle: at most one more than [`MAX_BUNDLE_BYTES`]. `scratch` is a folder for temporary
/// files.
pub(super) async fn fetch_bundle(
    source: &BundleSource,
    file: &str,
    scratch: &Path,
) -> Result<Vec<u8>, FetchError> {
    let is_plain = !file.is_empty()
        && !file.contains('/')
        && !file.starts_with('.')
        && !file.chars().any(char::is_control);
    if !is_plain {
        return Err(FetchError::FileName(file.escape_debug().to_string()));
    }
    match source {
        BundleSource::Https(address) => {
            Ok(download_file(&format!("{address}/{file}"), MAX_BUNDLE_BYTES).await?)
        }
        BundleSource::Git { repository, reference } => {
            let fetched = fetch_from_git((repository, reference), file, scratch).await?;
            tokio::task::spawn_blocking(move || read_bounded(&fetched.path)).await?
        }
        BundleSource::Folder(folder) => {
            let path = folder.join(file);
            tokio::task::spawn_blocking(move || read_bounded(&path)).await?
        }
    }
}

/// Reads a file, at most one byte more than the largest bundle.
fn read_bounded(path: &Path) -> Result<Vec<u8>, FetchError> {
    let failed = |error| FetchError::File { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(MAX_BUNDLE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
