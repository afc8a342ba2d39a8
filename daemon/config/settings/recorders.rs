//! The setting `recorders`: destinations of events besides the event log.

use crate::config::hash::Stable;
use crate::config::problem::code::Code;
use crate::config::problem::{Problem, quoted};
use crate::config::read::{Entry, Reader};
use std::path::PathBuf;
use steadfast_resources::{FieldSpec, FieldType, Value};

/// A recorder of events.
#[derive(Clone, PartialEq, Eq)]
pub struct Recorder {
    /// The receiver of the events.
    pub destination: Destination,
    /// True if debug events are recorded and sent too.
    pub debug: bool,
}

/// The receiver of the events of a recorder.
#[derive(Clone, PartialEq, Eq)]
pub enum Destination {
    /// A file of JSON lines.
    File {
        /// The absolute path.
        path: PathBuf,
    },
    /// The journal of systemd.
    Journald {
        /// The path of its socket.
        socket: PathBuf,
    },
    /// A server that takes JSON by HTTP POST.
    Webhook {
        /// The URL: `http://` or `https://`.
        url: String,
        /// The headers of each request; they may be secret.
        headers: Vec<(String, String)>,
        /// The time limit of a request, in seconds.
        timeout: u64,
    },
}

/// Omits the content, which may contain passwords.
impl std::fmt::Debug for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::File { .. } => "File",
            Self::Journald { .. } => "Journald",
            Self::Webhook { .. } => "Webhook",
        })
    }
}

/// Omits the headers, which may contain passwords.
impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl Recorder {
    /// Returns the name of the recorder: unique, stable across restarts, and without secrets.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.destination {
            Destination::File { path } => format!("file:{}", path.display()),
            Destination::Journald { .. } => "journald".to_owned(),
            Destination::Webhook { url, .. } => {
                // The path is a password for many services, so the name has a hash of the URL.
                let (scheme, host) = scheme_and_host(url);
                let end = url.find(['?', '#']).unwrap_or(url.len());
                let hash = Stable::new().text(url.get(..end).unwrap_or_default()).finish() >> 32;
                format!("webhook:{scheme}://{host}#{hash:08x}")
            }
        }
    }

    /// Returns a warning if headers with secrets are sent to another host without encryption.
    #[must_use]
    pub fn clear_headers(&self) -> Option<String> {
        let Destination::Webhook { url, headers, .. } = &self.destination else { return None };
        let (scheme, host) = scheme_and_host(url);
        let port = host.rfind(':').filter(|at| !host.get(*at..).unwrap_or_default().contains(']'));
        let name = host.get(..port.unwrap_or(host.len())).unwrap_or_default();
        let is_here = matches!(name, "localhost" | "[::1]") || name.starts_with("127.");
        let is_clear = scheme == "http" && !is_here;
        let secrets = ["authorization", "proxy-authorization", "cookie"];
        let is_secret = |name: &str| {
            let name = name.to_ascii_lowercase();
            secrets.contains(&&*name) || ["token", "key", "secret"].iter().any(|w| name.contains(w))
        };
        let (name, _) = headers.iter().find(|(name, _)| is_clear && is_secret(name))?;
        Some(format!("the recorder {} sends its header {name} without encryption", self.name()))
    }
}

fn scheme_and_host(url: &str) -> (&str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    (scheme, rest.split(['/', '?', '#']).next().unwrap_or_default())
}

const JOURNAL: &str = "/run/systemd/journal/socket";

/// The default time limit of a request, in seconds.
const TIMEOUT: i64 = 10;

/// The documentation of the field `debug`.
const DEBUG: &str = "true also records and sends debug events, such as each run that changes nothing; default false";

static FILE: &[FieldSpec] = &[
    FieldSpec::new("debug", FieldType::Bool, DEBUG),
    FieldSpec::new(
        "path",
        FieldType::Text,
        "file to append JSON lines to, relative to this file; reopened after a rotation. For root: a file owned by root with one link, writable only by root, like all its parent directories",
    ),
];

static JOURNALD: &[FieldSpec] = &[
    FieldSpec::new("debug", FieldType::Bool, DEBUG),
    FieldSpec::new(
        "socket",
        FieldType::Text,
        "socket of the journal; default /run/systemd/journal/socket",
    ),
];

static WEBHOOK: &[FieldSpec] = &[
    FieldSpec::new("debug", FieldType::Bool, DEBUG),
    FieldSpec::new(
        "url",
        FieldType::Text,
        "http:// or https:// URL; receives {batch, events} by POST",
    ),
    FieldSpec::new("headers", FieldType::TextMap, "headers of each request, such as Authorization"),
    FieldSpec::new("timeout", FieldType::Seconds, "timeout of a request in seconds; default 10"),
];

const KINDS: [(&str, &[FieldSpec]); 3] =
    [("file", FILE), ("journald", JOURNALD), ("webhook", WEBHOOK)];

/// Returns all sorts of recorders with their fields, for `explain`.
#[must_use]
pub fn recorders() -> &'static [(&'static str, &'static [FieldSpec])] {
    &KINDS
}

impl<'t> Reader<'t, '_> {
    /// Reads a list of maps, each with one key: the sort of recorder.
    pub(in crate::config) fn recorders(&mut self, entry: Entry<'t>) -> Vec<Recorder> {
        let mut all: Vec<Recorder> = Vec::new();
        let wants = "a list, for example `- file: {path: /var/log/steadfast.jsonl}`";
        for item in self.list(entry, "`recorders`", wants).unwrap_or_default() {
            let wants = "a map with one of file, journald, webhook";
            let entries = self.map(*item, "a recorder", wants).unwrap_or_default();
            for entry in entries {
                let Some((kind, fields)) = KINDS.iter().find(|(kind, _)| *kind == entry.key) else {
                    let known: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
                    self.unknown(entry.key, entry.key_span, "a recorder", &known);
                    continue;
                };
                let Some(recorder) = self.recorder(kind, fields, entry) else { continue };
                if all.iter().any(|other| other.name() == recorder.name()) {
                    let what =
                        format!("the recorder `{}` is already declared", quoted(&recorder.name()));
                    self.refuse_recorder(entry, &what, "declare each recorder once");
                } else {
                    all.push(recorder);
                }
            }
        }
        all
    }

    fn refuse_recorder(&mut self, entry: Entry<'t>, what: &str, hint: &str) {
        let place = self.source.place(self.value_span(entry));
        self.say(Problem::new(Code::Setting, what).hint(hint).at(Some(place)));
    }

    fn recorder(
        &mut self,
        kind: &str,
        fields: &'static [FieldSpec],
        entry: Entry<'t>,
    ) -> Option<Recorder> {
        let what = format!("the recorder `{kind}`");
        let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let (mut target, mut headers, mut timeout) = (None, Vec::new(), TIMEOUT);
        let mut debug = false;
        let before = self.problems.errors();
        let inner = if self.is_null(entry.value) {
            Vec::new()
        } else {
            self.map(entry.value, &what, "a map")?
        };
        for inner in inner {
            let Some(field) = fields.iter().find(|field| field.name == inner.key) else {
                self.unknown(inner.key, inner.key_span, &what, &known);
                continue;
            };
            match self.value(field, inner, &what) {
                Some(Value::Text(text)) if text.is_empty() => {
                    self.refuse_recorder(
                        inner,
                        &format!("`{}` should not be empty", inner.key),
                        &what,
                    );
                }
                Some(Value::Text(text)) => {
                    if kind == "webhook" && !is_url(&text) {
                        let hint = "put user and password into headers";
                        let wrong = "`url` should be http://HOST/… or https://HOST/…";
                        self.refuse_recorder(inner, wrong, hint);
                    }
                    target = Some(text);
                }
                Some(Value::TextMap(map)) => {
                    if let Some((name, _)) = map.iter().find(|header| !is_header(header)) {
                        let wrong = format!("`{}` is not a valid header", quoted(name));
                        self.refuse_recorder(
                            inner,
                            &wrong,
                            "letters, digits, dashes; a value in one line",
                        );
                    }
                    headers = map;
                }
                Some(Value::Bool(asked)) => debug = asked,
                Some(Value::Int(seconds)) if (1..=600).contains(&seconds) => timeout = seconds,
                Some(Value::Int(_)) => {
                    self.refuse_recorder(
                        inner,
                        "`timeout` should be a number from 1 to 600",
                        "seconds",
                    );
                }
                _ => {}
            }
        }
        if kind != "journald" && target.is_none() && self.problems.errors() == before {
            self.missing(entry.value, known.get(1).copied().unwrap_or_default(), &what);
        }
        let base = &self.source.base;
        let destination = (self.problems.errors() == before).then(|| match (kind, target) {
            ("webhook", url) => Destination::Webhook {
                url: url.unwrap_or_default(),
                headers,
                timeout: timeout.unsigned_abs(),
            },
            ("file", path) => Destination::File { path: base.join(path.unwrap_or_default()) },
            (_, socket) => Destination::Journald {
                socket: base.join(socket.unwrap_or_else(|| JOURNAL.to_owned())),
            },
        });
        destination.map(|destination| Recorder { destination, debug })
    }
}

/// Returns true for `http://HOST…` or `https://HOST…` without a user, in printable ASCII.
fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest.filter(|rest| rest.bytes().all(|byte| byte.is_ascii_graphic())) else {
        return false;
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    !host.is_empty() && !host.contains('@')
}

/// Returns true for a name of letters, digits and dashes, and a value on one line.
fn is_header((name, value): &(String, String)) -> bool {
    let own = ["content-type", "content-length", "host", "idempotency-key", "transfer-encoding"];
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        && !own.contains(&name.to_ascii_lowercase().as_str())
        && value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

#[cfg(test)]
mod tests {
    use super::{Destination, Recorder};

    fn webhook(url: &str, header: &str) -> Recorder {
        let headers = vec![(header.to_owned(), "CANARY".to_owned())];
        let destination = Destination::Webhook { url: url.to_owned(), headers, timeout: 10 };
        Recorder { destination, debug: false }
    }

    /// L2: the name of a webhook has no path, because many services use the path as a password.
    #[test]
    fn the_name_of_a_webhook_has_no_path() {
        let name = |url: &str| webhook(url, "Authorization").name();
        let shown = name("https://hooks.example.org:8443/T0/CANARY?token=CANARY#CANARY");
        assert!(shown.starts_with("webhook:https://hooks.example.org:8443#"), "{shown}");
        assert!(!shown.contains("CANARY"), "{shown}");
        assert_ne!(name("https://h/a"), name("https://h/b"));
        assert_eq!(name("https://h/a?x"), name("https://h/a?y"));
    }

    #[test]
    fn secret_headers_in_clear_are_found() {
        let found = |url: &str, header: &str| webhook(url, header).clear_headers().is_some();
        assert!(found("http://h/x", "authorization") && found("http://h/x", "X-Api-Key"));
        assert!(!found("https://h/x", "Authorization") && !found("http://h/x", "X-Site"));
        for here in
            ["http://localhost:1/x", "http://127.0.0.1/x", "http://[::1]:80/x", "http://[::1]/"]
        {
            assert!(!found(here, "Authorization"), "{here}");
        }
        assert!(
            !webhook("http://h/x", "Authorization").clear_headers().unwrap().contains("CANARY")
        );
    }
}
