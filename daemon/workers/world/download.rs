//! A download over https with a limit of size and time. The host's trusted certificates verify the server.

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::error::Error;
use std::time::Duration;

/// The time limit of a download.
const PATIENCE: Duration = Duration::from_mins(2);

/// The reason for which a download failed.
#[derive(Debug, thiserror::Error)]
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
    let refused = |why: String| DownloadError { address: address.to_owned(), why };
    let failed = |error: &dyn Error| refused(with_causes(error));
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
            return Err(refused(answer.status().to_string()));
        }
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let body = Limited::new(answer.into_body(), most).collect().await;
        Ok(body.map_err(|error| failed(error.as_ref()))?.to_bytes().to_vec())
    };
    let late = |_| Err(refused("no complete answer within 2 min".to_owned()));
    tokio::time::timeout(PATIENCE, loading).await.unwrap_or_else(late)
}

/// Returns the message of an error and those of its causes.
fn with_causes(error: &dyn Error) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let cause = error.to_string();
        // Some messages contain those of their causes.
        if !words.iter().any(|before| before.contains(&cause)) {
            words.push(cause);
        }
        next = error.source();
    }
    words.join(": ")
}

#[cfg(test)]
mod tests {
    use super::download_file;

    /// A failed connection is reported with its cause.
    #[tokio::test]
    async fn a_failed_download_names_its_cause() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("https://{}/b", server.local_addr().unwrap());
        drop(server);
        let why = download_file(&address, 10).await.unwrap_err().to_string();
        assert!(why.contains("Connection refused"), "{why}");
    }
}
