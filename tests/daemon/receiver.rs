//! A webhook server with scripted answers.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Taken,
    /// An error.
    Error,
    /// A rejection if the batch contains the first event; otherwise accepted.
    FirstRefused,
    /// No answer.
    Stall,
    /// Accepted, but answered too late.
    Late,
    /// A closed connection.
    Close,
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    pub(crate) key: String,
    pub(crate) token: String,
    pub(crate) numbers: Vec<u64>,
    pub(crate) kinds: Vec<String>,
    /// The whole body of the request.
    pub(crate) body: String,
}

#[derive(Default)]
struct Shared {
    came: Vec<Came>,
    next: VecDeque<Answer>,
    usual: Option<Answer>,
}

pub(crate) struct Receiver {
    shared: Arc<Mutex<Shared>>,
    pub(crate) url: String,
}

impl Receiver {
    /// Starts a server that gives these answers to the first requests and `usual` to all others.
    pub(crate) fn new(first: &[Answer], usual: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let url = format!("http://{}/events?a=b", listener.local_addr().expect("an address"));
        let next = first.iter().copied().collect();
        let shared = Shared { came: Vec::new(), next, usual: Some(usual) };
        let shared = Arc::new(Mutex::new(shared));
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&own);
                std::thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { shared, url }
    }

    /// Starts a TLS server with a certificate of [`AUTHORITY`], which no host trusts by default.
    pub(crate) fn secure(usual: Answer) -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").expect("bound");
        let port = listener.local_addr().expect("an address").port();
        let shared = Shared { usual: Some(usual), ..Shared::default() };
        let shared = Arc::new(Mutex::new(shared));
        let own = Arc::clone(&shared);
        let config = secured();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, config) = (Arc::clone(&own), Arc::clone(&config));
                std::thread::spawn(move || {
                    let connection = ServerConnection::new(config).expect("a connection");
                    serve(StreamOwned::new(connection, stream), &shared);
                });
            }
        });
        Self { shared, url: format!("https://localhost:{port}/events") }
    }

    pub(crate) fn came(&self) -> Vec<Came> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).came.clone()
    }

    pub(crate) fn answers(&self, usual: Answer) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).usual = Some(usual);
    }
}

/// The certificate of the authority behind the server's certificate; made for these tests.
pub(crate) const AUTHORITY: &str = include_str!("tls/authority.pem");

fn secured() -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth();
    let config = config.with_single_cert(vec![certificate.expect("one")], key.expect("a key"));
    Arc::new(config.expect("they belong together"))
}

fn serve(stream: impl Read + Write, shared: &Mutex<Shared>) {
    let mut lines = BufReader::new(stream);
    loop {
        let (mut key, mut token, mut length) = (String::new(), String::new(), 0);
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|count| count > 2) {
            let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
            match name.to_ascii_lowercase().as_str() {
                "idempotency-key" => value.clone_into(&mut key),
                "authorization" => value.clone_into(&mut token),
                "content-length" => length = value.parse().expect("a number"),
                _ => {}
            }
            line.clear();
        }
        let mut body = vec![0; length];
        if length == 0 || lines.read_exact(&mut body).is_err() {
            return;
        }
        let text = String::from_utf8(body).expect("UTF-8");
        let body: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(body["batch"], key.as_str());
        let events = body["events"].as_array().expect("a list");
        let numbers = events.iter().map(|event| event["number"].as_u64().expect("a number"));
        let kinds = events.iter().map(|event| event["event"].as_str().expect("a word").to_owned());
        let (numbers, kinds): (Vec<u64>, _) = (numbers.collect(), kinds.collect());
        let holds_first = numbers.contains(&1);
        let came = Came { key, token, numbers, kinds, body: text };
        let answer = {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let next = shared.next.pop_front().or(shared.usual);
            shared.came.push(came);
            next.expect("an answer")
        };
        let to = lines.get_mut();
        let sent = match answer {
            Answer::FirstRefused if holds_first => {
                to.write_all(b"HTTP/1.1 422 Unprocessable Content\r\nContent-Length: 0\r\n\r\n")
            }
            Answer::Taken | Answer::FirstRefused => {
                to.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
            }
            Answer::Error => {
                to.write_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy")
            }
            Answer::Late => {
                std::thread::sleep(Duration::from_secs(2));
                to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
            Answer::Stall => {
                std::thread::sleep(Duration::from_mins(2));
                return;
            }
            Answer::Close => return,
        };
        if sent.is_err() {
            return;
        }
    }
}
