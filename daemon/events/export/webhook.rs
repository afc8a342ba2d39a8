//! A sink that sends batches by HTTP POST. A repeated batch has the same `Idempotency-Key` as the first attempt.

use super::{Batch, Sending, Sink, Unsent};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::time::Duration;
use tokio::time::timeout;

/// The number of bytes read of a reply; the content is not used.
const ANSWER: usize = 64 * 1024;

/// The host has no readable certificates of trusted authorities.
#[derive(Debug, thiserror::Error)]
#[error("no trusted certificates: {0}")]
pub struct NoCertificates(#[source] std::io::Error);

/// A server that receives events.
#[derive(Debug)]
pub struct ToWebhook {
    url: String,
    headers: Vec<(String, String)>,
    patience: Duration,
    client: Caller,
}

/// The HTTP client.
#[derive(Clone, Debug)]
enum Caller {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Secure(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl ToWebhook {
    /// Creates a sink for a URL. For https, the host's trusted certificates verify the server.
    ///
    /// # Errors
    /// No trusted certificates can be read.
    pub fn new(
        url: String,
        headers: Vec<(String, String)>,
        patience: Duration,
    ) -> Result<Self, NoCertificates> {
        let client = if url.starts_with("https:") {
            let roots = HttpsConnectorBuilder::new().with_native_roots();
            let roots = roots.map_err(NoCertificates)?;
            let connector = roots.https_only().enable_http1().build();
            Caller::Secure(Client::builder(TokioExecutor::new()).build(connector))
        } else {
            Caller::Plain(Client::builder(TokioExecutor::new()).build_http())
        };
        Ok(Self { url, headers, patience, client })
    }

    fn request(&self, batch: &Batch) -> Result<Request<Full<Bytes>>, String> {
        let node = rustix::system::uname();
        let host = serde_json::to_string(&*node.nodename().to_string_lossy()).unwrap_or_default();
        let mut body = format!("{{\"batch\":\"{}\",\"host\":{host},\"events\":[", batch.key);
        for (nth, event) in batch.events.iter().enumerate() {
            if nth > 0 {
                body.push(',');
            }
            body.push_str(event.json());
        }
        body.push_str("]}");
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header("content-type", "application/json")
            .header("user-agent", concat!("steadfast/", env!("CARGO_PKG_VERSION")))
            .header("idempotency-key", &batch.key);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())
    }
}

impl Sink for ToWebhook {
    fn under_way(&self) -> usize {
        3
    }

    fn send(&self, batch: Batch) -> Sending {
        let (client, patience) = (self.client.clone(), self.patience);
        let request = self.request(&batch);
        Box::pin(async move {
            let asking = async {
                let request = request?;
                let answer = match &client {
                    Caller::Plain(client) => client.request(request).await,
                    Caller::Secure(client) => client.request(request).await,
                };
                let answer = answer.map_err(|error| told(&error))?;
                let status = answer.status();
                // The body is read so that the connection can be used again.
                let body = Limited::new(answer.into_body(), ANSWER).collect();
                if status.is_success() {
                    // The status is a success, so an error in the body does not matter.
                    drop(body.await);
                    Ok(())
                } else {
                    Err(unsent(status))
                }
            };
            let asked = timeout(patience, asking).await;
            let late = || format!("no response within {} s", patience.as_secs());
            asked.unwrap_or_else(|_| Err(Unsent::Later(late())))
        })
    }
}

/// Converts a status other than success. A client error counts as a rejection; a timeout or too many requests are
/// temporary.
fn unsent(status: StatusCode) -> Unsent {
    let why = format!("the server responded {status}");
    let passes = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    if status.is_client_error() && !passes.contains(&status) {
        Unsent::Refused(why)
    } else {
        Unsent::Later(why)
    }
}

/// Certificate errors: a text in the library's message, and the advice for it.
const CERTIFICATES: [(&str, &str); 3] = [
    (
        "UnknownIssuer",
        "its issuer is unknown: add the issuer to the trusted certificates of this host",
    ),
    ("expired", "expired: renew the certificate, or check the clock"),
    ("not valid for name", "issued for another name: use that name in the url"),
];

/// Describes an error with its causes, preceded by advice if there is some.
fn told(error: &dyn std::error::Error) -> String {
    let said = chain(error);
    let known = CERTIFICATES.iter().find(|(word, _)| said.contains(word));
    match known {
        Some((_, what)) => format!("the certificate of the server is rejected: {what} ({said})"),
        None => said,
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        said.push_str(&format!(": {error}"));
        cause = error.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::{StatusCode, Unsent, unsent};

    /// C-12: a permanent rejection is distinguished from a temporary failure.
    #[test]
    fn c12_a_refusal_is_told_from_what_passes() {
        for (status, is_refused) in [
            (400, true),
            (401, true),
            (422, true),
            (408, false),
            (429, false),
            (500, false),
            (302, false),
        ] {
            let unsent = unsent(StatusCode::from_u16(status).expect("a status"));
            assert_eq!(matches!(unsent, Unsent::Refused(_)), is_refused, "{status}");
        }
    }
}
