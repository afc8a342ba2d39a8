//! The HTTP server of the metrics: one path, two formats, over any connection.

use super::to_classic;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// The time in which a client must send the head of a request.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time for which a connection may stay open. A scraper opens another one.
const LONGEST: Duration = Duration::from_mins(5);

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A function that returns the present metrics in `OpenMetrics`.
pub type Metrics = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = String> + Send>> + Send + Sync>;

/// The format of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// The classic text format 0.0.4.
    Classic,
}

/// Returns the format that a request selects: by `?format=`, or else by the header `Accept`.
///
/// # Errors
/// A message if the format is unknown.
fn requested_form(query: Option<&str>, accept: Option<&str>) -> Result<Form, String> {
    let given = query.into_iter().flat_map(|query| query.split('&'));
    match given.filter_map(|pair| pair.strip_prefix("format=")).next_back() {
        Some("text") => return Ok(Form::Classic),
        Some("openmetrics") => return Ok(Form::OpenMetrics),
        Some(other) => {
            return Err(format!("expected format=openmetrics or format=text, found `{other}`\n"));
        }
        None => {}
    }
    let accepts = |name: &str| accept.is_some_and(|accept| accept.contains(name));
    let wants_classic = accepts("text/plain") && !accepts("application/openmetrics-text");
    Ok(if wants_classic { Form::Classic } else { Form::OpenMetrics })
}

fn make_reply(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::new(Bytes::from(text)));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    reply
}

async fn answer_request<B>(request: Request<B>, metrics: Metrics) -> Response<Full<Bytes>> {
    const PLAIN: &str = "text/plain; charset=utf-8";
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let text = "expected GET; metrics cannot be changed\n".to_owned();
        let mut reply = make_reply(StatusCode::METHOD_NOT_ALLOWED, PLAIN, text);
        reply.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return reply;
    }
    let uri = request.uri();
    if uri.path() != "/metrics" {
        return make_reply(
            StatusCode::NOT_FOUND,
            PLAIN,
            "the metrics are at /metrics\n".to_owned(),
        );
    }
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    match requested_form(uri.query(), accept) {
        Ok(Form::OpenMetrics) => make_reply(StatusCode::OK, OPEN_METRICS, metrics().await),
        Ok(Form::Classic) => make_reply(StatusCode::OK, CLASSIC, to_classic(&metrics().await)),
        Err(why) => make_reply(StatusCode::BAD_REQUEST, PLAIN, why),
    }
}

/// Answers the requests of one connection until the client closes it or a time limit is over.
pub async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    metrics: Metrics,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let metrics = Arc::clone(&metrics);
        async move { Ok::<_, Infallible>(answer_request(request, metrics).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(PATIENCE).max_buf_size(16 * 1024);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(LONGEST, connection).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a scrape of the metrics ended early"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Metrics, requested_form, serve_connection};
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[test]
    fn a_scraper_selects_the_format() {
        let form = |query, accept| requested_form(query, accept);
        assert_eq!(form(None, None), Ok(Form::OpenMetrics));
        assert_eq!(form(None, Some("*/*")), Ok(Form::OpenMetrics));
        assert_eq!(form(None, Some("text/plain;version=0.0.4")), Ok(Form::Classic));
        let both = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
        assert_eq!(form(None, Some(both)), Ok(Form::OpenMetrics));
        assert_eq!(form(Some("format=text"), Some(both)), Ok(Form::Classic));
        assert!(form(Some("format=json"), None).is_err_and(|why| why.contains("`json`")));
    }

    async fn exchange(request: &str) -> String {
        let metrics: Metrics =
            Arc::new(|| Box::pin(async { "# TYPE a counter\na_total 1\n# EOF\n".to_owned() }));
        let (mut client, server) = tokio::io::duplex(4096);
        drop(tokio::spawn(serve_connection(server, metrics)));
        client.write_all(request.as_bytes()).await.expect("sent");
        let mut reply = String::new();
        client.read_to_string(&mut reply).await.expect("a reply");
        reply
    }

    #[tokio::test]
    async fn only_metrics_are_served() {
        let close = "Host: h\r\nConnection: close\r\n\r\n";
        let found = exchange(&format!("GET /metrics HTTP/1.1\r\n{close}")).await;
        assert!(found.starts_with("HTTP/1.1 200") && found.ends_with("# EOF\n"), "{found}");
        assert!(found.contains("application/openmetrics-text; version=1.0.0"), "{found}");
        let found = exchange(&format!("GET /metrics?format=text HTTP/1.1\r\n{close}")).await;
        assert!(found.contains("version=0.0.4") && found.ends_with("a_total 1\n"), "{found}");
        assert!(exchange(&format!("GET / HTTP/1.1\r\n{close}")).await.starts_with("HTTP/1.1 404"));
        let found = exchange(&format!("POST /metrics HTTP/1.1\r\n{close}")).await;
        assert!(found.starts_with("HTTP/1.1 405"), "{found}");
        assert!(exchange("nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    }
}
