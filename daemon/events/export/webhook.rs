//! A server that takes batches of events by HTTP POST. A repeated batch has the same `Idempotency-Key` as the first try.

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

/// So much of an answer is read, in bytes: nothing in it is needed.
const ANSWER: usize = 64 * 1024;

/// A server.
#[derive(Debug)]
pub struct ToWebhook {
    url: String,
    headers: Vec<(String, String)>,
    patience: Duration,
    client: Caller,
}

/// Who connects.
#[derive(Clone, Debug)]
enum Caller {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Secure(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl ToWebhook {
    /// This one. Where it is asked by https, whom it may be is judged by the certificates that this host trusts.
    pub fn new(
        url: String,
        headers: Vec<(String, String)>,
        patience: Duration,
    ) -> Result<Self, String> {
        let client = if url.starts_with("https:") {
            let roots = HttpsConnectorBuilder::new().with_native_roots();
            let roots = roots.map_err(|error| format!("no trusted certificates: {error}"))?;
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
                // Read, so that the connection serves for the next one.
                let body = Limited::new(answer.into_body(), ANSWER).collect();
                if status.is_success() {
                    // It has said that it took them; how it goes on is no matter.
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

/// What an answer that is no success means. A server that refuses would say the same to the same batch again; one that was too slow for
/// us, or to which we were too fast, may not.
fn unsent(status: StatusCode) -> Unsent {
    let why = format!("the server responded {status}");
    let passes = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    if status.is_client_error() && !passes.contains(&status) {
        Unsent::Refused(why)
    } else {
        Unsent::Later(why)
    }
}

/// What is wrong with a certificate, as the library says it, and what can be done.
const CERTIFICATES: [(&str, &str); 3] = [
    (
        "UnknownIssuer",
        "its issuer is unknown: add the issuer to the trusted certificates of this host",
    ),
    ("expired", "expired: renew the certificate, or check the clock"),
    ("not valid for name", "issued for another name: use that name in the url"),
];

/// An error with all that caused it, and first what to do where that is known.
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

    /// C-12: what a server refuses for what it is, is told from what may pass.
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
