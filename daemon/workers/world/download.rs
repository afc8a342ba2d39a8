//! A download over https with a limit of size and time. The host's trusted certificates verify the server.

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::time::Duration;
use thiserror::Error;

/// The time limit of a download.
const PATIENCE: Duration = Duration::from_mins(2);

/// The reason for which a download failed.
#[derive(Debug, Error)]
#[error("{address}: {why}")]
pub(super) struct DownloadError {
    address: String,
    why: String,
}

/// Returns the content at an address.
///
/// # Errors
/// [`DownloadError`] if the server does not answer in time, or with an error, or with more than `limit` bytes.
pub(super) async fn download_file(address: &str, limit: u64) -> Result<Vec<u8>, DownloadError> {
    let failed = |error: &dyn std::fmt::Display| DownloadError {
        address: address.to_owned(),
        why: error.to_string(),
    };
    let roots = HttpsConnectorBuilder::new().with_native_roots().map_err(|error| failed(&error))?;
    let connector = roots.https_only().enable_http1().build();
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let request = Request::get(address)
        .header("user-agent", concat!("steadfast/", env!("CARGO_PKG_VERSION")))
        .body(Empty::<Bytes>::new())
        .map_err(|error| failed(&error))?;
    let loading = async {
        let answer = client.request(request).await.map_err(|error| failed(&error))?;
        if !answer.status().is_success() {
            return Err(failed(&answer.status()));
        }
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let body = Limited::new(answer.into_body(), most).collect().await;
        Ok(body.map_err(|error| failed(&error))?.to_bytes().to_vec())
    };
    let late = |_| Err(failed(&"no complete answer within 2 min"));
    tokio::time::timeout(PATIENCE, loading).await.unwrap_or_else(late)
}
