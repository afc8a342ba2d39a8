//! The fetch of one bundle from a folder, a server or a git repository. Nothing of it is believed before the signature
//! is verified.

use super::download::{DownloadError, download_file};
use super::git_fetch::{GitFetchError, fetch_from_git};
use crate::store::regular_file;
use crate::world::bundle::{BundleSource, MAX_BUNDLE_BYTES};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::task::JoinError;

/// The time limit of a read from a folder, which may be one of another machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Held while a file is read: a folder that does not answer takes one thread, however often it is tried.
static READING: Mutex<()> = Mutex::const_new(());

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
    /// The folder does not answer.
    #[error("{}: the folder does not answer within 2 min", .0.display())]
    Late(PathBuf),
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
        BundleSource::Folder(folder) => read_within(folder.join(file), read_bounded).await,
    }
}

/// Reads a file within the time limit. A thread that hangs in the read is left behind, and no second one begins.
async fn read_within(
    path: PathBuf,
    read: impl FnOnce(&Path) -> Result<Vec<u8>, FetchError> + Send + 'static,
) -> Result<Vec<u8>, FetchError> {
    let late = FetchError::Late(path.clone());
    let reading = async {
        let alone = READING.lock().await;
        let read = tokio::task::spawn_blocking(move || {
            let _alone = alone;
            read(&path)
        });
        read.await?
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap_or(Err(late))
}

/// Reads a regular file, at most one byte more than the largest bundle.
fn read_bounded(path: &Path) -> Result<Vec<u8>, FetchError> {
    let failed = |error| FetchError::File { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    let file = regular_file::open(path).map_err(failed)?;
    file.take(MAX_BUNDLE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A folder that hangs fails each try after its time, takes one thread, and is used again when it answers.
    #[tokio::test(start_paused = true)]
    async fn a_folder_that_hangs_takes_one_thread() {
        let (go, hung) = std::sync::mpsc::channel::<()>();
        let hangs = move |_: &Path| {
            // The sender drops at the end of the hang.
            hung.recv().unwrap_or_default();
            Ok(Vec::new())
        };
        let path = PathBuf::from("/bundles/site-1.tar");
        let tried = tokio::spawn(read_within(path.clone(), hangs));
        tokio::task::yield_now().await;
        tokio::time::advance(PATIENCE).await;
        let tried = tried.await.unwrap();
        assert!(matches!(&tried, Err(FetchError::Late(at)) if *at == path), "{tried:?}");
        let has_begun = Arc::new(AtomicBool::new(false));
        let begun = Arc::clone(&has_begun);
        let begins = move |_: &Path| {
            begun.store(true, Ordering::SeqCst);
            Ok(vec![1])
        };
        let tried = tokio::spawn(read_within(path.clone(), begins));
        tokio::task::yield_now().await;
        tokio::time::advance(PATIENCE).await;
        let tried = tried.await.unwrap();
        assert!(matches!(tried, Err(FetchError::Late(_))), "{tried:?}");
        assert!(!has_begun.load(Ordering::SeqCst), "a second thread has begun");
        drop(go);
        let _free = READING.lock().await;
    }

    /// A name in the folder that leads to a FIFO is refused at once.
    #[tokio::test]
    async fn a_fifo_is_no_bundle() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site-1.tar");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let source = BundleSource::Folder(folder.path().to_owned());
        let why = fetch_bundle(&source, "site-1.tar", folder.path()).await.unwrap_err();
        assert!(why.to_string().contains("expected a file, found a fifo"), "{why}");
    }
}
