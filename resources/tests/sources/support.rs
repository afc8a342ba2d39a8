//! The harness: makes resources from fields, checks and applies them, and serves files by HTTP.

use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use steadfast_resources::{
    CheckRequest, CheckResult, FieldType, Fields, Host, Invalid, KindSet, MintKey, Outcome, Permit,
    Place, Recorders, Resource, Value,
};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
static KEY: OnceLock<MintKey> = OnceLock::new();

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.block_on(future)
}

/// Builds a resource; a list of texts is given as lines, a secret with the prefix `secret:`.
pub(crate) fn build(
    kind: &str,
    name: &str,
    given: &[(&str, &str)],
) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let spec = KindSet::of_this_build().find(kind).unwrap();
    let mut fields = Fields::default();
    for (key, text) in given {
        let field = spec.fields.iter().find(|field| field.name == *key);
        let field = field.unwrap_or_else(|| panic!("{kind} has no {key}"));
        let value = match (field.takes, text.strip_prefix("secret:")) {
            (_, Some(secret)) => Value::Secret(secret.into()),
            (FieldType::Bool, _) => Value::Bool(*text == "true"),
            (FieldType::Int, _) => Value::Int(text.parse().unwrap()),
            (FieldType::Duration, _) => Value::Float(text.parse().unwrap()),
            (FieldType::Texts, _) => Value::Texts(text.lines().map(str::to_owned).collect()),
            _ => Value::Text((*text).to_owned()),
        };
        fields.insert(field.name, value);
    }
    spec.build_resource(name, fields, &Place { base: PathBuf::from("/") })
}

pub(crate) fn resource(kind: &str, name: &Path, given: &[(&str, &str)]) -> Arc<dyn Resource> {
    let name = name.to_str().unwrap();
    build(kind, name, given).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"))
}

pub(crate) fn permit(cancel: &CancellationToken) -> Permit {
    KEY.get_or_init(|| MintKey::take().unwrap()).mint(cancel.clone(), Recorders::None)
}

pub(crate) fn check(resource: &Arc<dyn Resource>) -> CheckResult {
    wait(resource.check(&Host::default(), CheckRequest::default()))
}

/// Checks, and applies if there is a difference; an unknown result counts as a failure.
pub(crate) fn hold(resource: &Arc<dyn Resource>) -> Outcome {
    match check(resource) {
        CheckResult::Same => Outcome::Unchanged,
        CheckResult::Differs(change) => {
            let permit = permit(&CancellationToken::new());
            wait(resource.apply(&Host::default(), &permit, change))
        }
        CheckResult::Unknown(failure) => Outcome::Failed { failure, touched: false },
    }
}

/// Applies a resource, and asserts that something was changed and the resource is then converged.
pub(crate) fn made(resource: &Arc<dyn Resource>) -> Vec<String> {
    match hold(resource) {
        Outcome::Changed(done) => {
            let after = check(resource);
            assert!(matches!(after, CheckResult::Same), "right after the apply: {after:?}");
            done
        }
        other => panic!("expected a change, found {other:?}"),
    }
}

/// Applies a resource, asserts a failure without a change, and returns its message.
pub(crate) fn refused(resource: &Arc<dyn Resource>) -> String {
    let (what, touched) = failed(resource);
    assert!(!touched, "{what}");
    what
}

/// Applies a resource, asserts a failure, and returns its message, and true if something was changed.
pub(crate) fn failed(resource: &Arc<dyn Resource>) -> (String, bool) {
    match hold(resource) {
        Outcome::Failed { failure, touched } => {
            assert!(failure.what.lines().next().unwrap().chars().count() <= 100, "{failure}");
            (failure.what, touched)
        }
        other => panic!("expected a failure, found {other:?}"),
    }
}

/// Builds the removal of a resource and applies it.
pub(crate) fn removed(kind: &str, name: &Path, resource: &Arc<dyn Resource>) {
    let removal = resource.footprint().removal.expect("a removal");
    let spec = KindSet::of_this_build().find(kind).unwrap();
    let absent = spec.build_removal(&removal, name.to_str().unwrap()).unwrap();
    assert!(absent.footprint().removal.is_none(), "a removal has no removal");
    made(&absent);
    assert!(!name.exists());
}

/// Runs a shell script in a directory; the script must succeed.
pub(crate) fn shell(folder: &Path, script: &str) -> String {
    let output = Command::new("sh").args(["-euc", script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(crate) fn sum(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    let start = String::from("sha256:");
    digest.as_ref().iter().fold(start, |text, byte| text + &format!("{byte:02x}"))
}

/// A server of files for this process, with the heads of all requests.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: String,
    files: Arc<Mutex<HashMap<String, Vec<u8>>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server. The path `/hangs` never gets an answer, and `/moved/X` leads to `/X`.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (files, heads) = (Arc::default(), Arc::default());
        let server = Self { address, files, heads };
        let (files, heads) = (Arc::clone(&server.files), Arc::clone(&server.heads));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, heads) = (Arc::clone(&files), Arc::clone(&heads));
                std::thread::spawn(move || answer(stream, &files, &heads));
            }
        });
        server
    }

    /// Offers a file; returns its address and checksum.
    pub(crate) fn offer(&self, path: &str, bytes: &[u8]) -> (String, String) {
        self.files.lock().unwrap().insert(path.to_owned(), bytes.to_vec());
        (format!("{}{path}", self.address), sum(bytes))
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    files: &Mutex<HashMap<String, Vec<u8>>>,
    heads: &Mutex<Vec<String>>,
) {
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while reader.read_line(&mut head).is_ok_and(|count| count > 2) {}
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    heads.lock().unwrap().push(head);
    if path == "/hangs" {
        // The client gives up and closes the connection.
        let _end = reader.read_line(&mut String::new());
        return;
    }
    let found = files.lock().unwrap().get(&path).cloned();
    let (status, more, body) = match (path.strip_prefix("/moved"), found) {
        (Some(to), _) => ("302 Found", format!("Location: {to}\r\n"), Vec::new()),
        (None, Some(body)) => ("200 OK", String::new(), body),
        (None, None) => ("404 Not Found", String::new(), Vec::new()),
    };
    let length = body.len();
    let start =
        format!("HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    let _closed = stream.write_all(start.as_bytes()).and_then(|()| stream.write_all(&body));
}
