//! `ssh:authorized_key`: public keys that may log in as a user.
//!
//! The file lies in a directory of the user. Each step goes through the kind `file` and the edits of text files, which
//! never follow a link that the user could exchange.
//!
//! Reading order: `key_line.rs` (lines of the file), `account.rs` (home directories), then this file.

mod account;
mod key_line;

use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType, Interpreter};
use crate::fields::field_values::{Fields, Invalid, Place, Value};
use crate::footprint::Footprint;
use crate::host::Host;
use crate::kind::KindSpec;
use crate::parts::edit_fields::STATE;
use crate::parts::text_edit::text_of;
use crate::parts::{FieldReader, Sequence, TextEdit};
use crate::permit::Permit;
use crate::removal::Removal;
use crate::resource::Resource;
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use account::Account;
use futures_util::FutureExt as _;
use key_line::{KeyLine, Keys};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "ssh:authorized_key",
    collectible: true,
    doc: "Manages public keys in a user's authorized_keys; other keys and comments stay. The directory .ssh (0700) and the file (0600) are created for the user.",
    fields: &[
        FieldSpec::new("user", FieldType::Text, "The user, by name. The home directory is that of /etc/passwd.").mode(FieldMode::Static)
            .required()
            .example("eve"),
        FieldSpec::new(
            "key",
            FieldType::Text,
            "The public key: a line of a .pub file, or its base64 part with `type`. Several lines are several keys.",
        ).listable().mode(FieldMode::Value)
        .required()
        .receives(Receives::Shown)
        .example("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC eve@example.org"),
        FieldSpec::new("type", FieldType::Text, "The type of a key that is given as its base64 part.").listable().receives(Receives::Shown).mode(FieldMode::Value)
            .example("ssh-ed25519"),
        FieldSpec::new(
            "options",
            FieldType::Texts,
            "The options before the key, as in sshd(8), as a list or one text with commas. Default: those in `key`; otherwise none.",
        ).mode(FieldMode::Literal(Interpreter::Sshd))
        .receives(Receives::Shown)
        .example("[no-pty, 'from=\"192.0.2.0/24\"']"),
        FieldSpec::new("comment", FieldType::Text, "The comment behind the key. Default: that in `key`; otherwise unchanged.").listable().mode(FieldMode::Value)
            .receives(Receives::Shown)
            .example("eve@example.org"),
        FieldSpec::new(
            "exclusive",
            FieldType::Bool,
            "Removes every other key of the file. Then no other resource may declare keys of the user.",
        ).known_at_load()
        .default("false"),
        FieldSpec::new(
            "path",
            FieldType::Text,
            "Absolute path of another file, whose directory must exist: created with mode 0644 for the daemon's user. Default: .ssh/authorized_keys in the home directory.",
        ).role(FieldRole::Path).mode(FieldMode::Static)
        .example("/etc/ssh/authorized_keys/eve"),
        STATE,
    ],
    sends: &[SendSpec::new(
        "fingerprints",
        FieldType::Texts,
        "The fingerprints of the declared keys, SHA256:….",
    )],
    example: "\"ssh:authorized_key\":\n  - name: eve on laptop\n    user: eve\n    key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmTjmGVfnE8pZh4bDKK8lOkpmZQyyVnWWXXQ1J1JWQC eve@laptop\n",
    restore: None,
    build,
};

/// Serialises the applies: several keys of one user lie in one file, and their checks in front of a write would
/// otherwise disturb each other.
static APPLIES: Mutex<()> = Mutex::new(());

#[derive(Debug)]
struct AuthorizedKeys {
    user: String,
    path: Option<PathBuf>,
    keys: Vec<KeyLine>,
    is_exclusive: bool,
    is_present: bool,
    removal: Option<Removal>,
}

fn build(_name: &str, fields: Fields, _place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    let mut reader = FieldReader::new(fields);
    let user = reader.required_text("user");
    let is_user = !user.contains([':', '/', ' ', '\t']);
    reader.require(is_user, "user", ("expected the name of a user", "for example eve"));
    let text = reader.lines("key").unwrap_or_default();
    let options = reader.fields.texts("options").map(|options| options.join(","));
    let (kind, comment) = (reader.text("type"), reader.text("comment"));
    let mut keys = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match KeyLine::declared(line, kind.as_deref()) {
            Ok(key) => keys.push(key.with(options.as_deref(), comment.as_deref())),
            Err(what) => {
                let hint = "for example ssh-ed25519 AAAA… eve@example.org, a line of a .pub file";
                reader.reject(Invalid::field("key", what).hint(hint));
                break;
            }
        }
    }
    if keys.is_empty() && reader.is_clean() {
        reader.reject(Invalid::field("key", "expected a public key, found none"));
    }
    let is_options = options.as_deref().is_none_or(key_line::are_options);
    let hint = "separate options with commas, and quote values: from=\"192.0.2.1\"";
    reader.require(is_options, "options", ("expected options of sshd without blanks", hint));
    let path = reader.fields.has("path").then(|| reader.path("path", "/"));
    let is_exclusive = reader.fields.bool("exclusive").unwrap_or(false);
    let is_present = reader.is_present();
    let removal = is_present.then(|| {
        let text = |text: &str| Value::Text(text.to_owned());
        let lines = keys.iter().map(KeyLine::without_comment).collect::<Vec<_>>().join("\n");
        let removal = Removal::new().with("user", text(&user)).with("key", text(&lines));
        let removal = removal.with("state", text("absent"));
        match path.as_deref().and_then(Path::to_str) {
            Some(path) => removal.with("path", text(path)),
            None => removal,
        }
    });
    let keys = AuthorizedKeys { user, path, keys, is_exclusive, is_present, removal };
    reader.finish(()).map(|()| Arc::new(keys) as Arc<dyn Resource>)
}

/// A key in the file of a user.
pub(crate) struct LiveKey {
    /// The line of the file.
    pub(crate) line: String,
    /// The comment, or the fingerprint without one.
    pub(crate) label: String,
    pub(crate) fingerprint: String,
}

/// Reads the keys in the home directory of a user; none without the user.
pub(crate) fn live_keys(host: &Host, user: &str) -> Result<Option<Vec<LiveKey>>, Failure> {
    let Some(account) = Account::find_account(host, user)? else { return Ok(None) };
    let path = account.home.join(".ssh/authorized_keys");
    let text = text_of(host.files(), &path)?.unwrap_or_default();
    let key = |line: &str| {
        let key = KeyLine::read(line)?;
        let fingerprint = key.fingerprint().to_owned();
        let label = key.comment().map_or_else(|| fingerprint.clone(), str::to_owned);
        Some(LiveKey { line: line.trim().to_owned(), label, fingerprint })
    };
    Ok(Some(text.lines().filter_map(key).collect()))
}

impl AuthorizedKeys {
    /// Returns the path of the file if it is known without the account: as declared, or in the usual home directory.
    fn usual_path(&self) -> PathBuf {
        self.path.clone().unwrap_or_else(|| usual_file(&self.user))
    }

    /// Makes the resource for the present account of the user. Without the account there is nothing to remove.
    fn resolve(&self, host: &Host) -> Result<Sequence, Failure> {
        let (path, mode, owner, mut elements) = if let Some(path) = &self.path {
            (path.clone(), 0o644, None, Vec::new())
        } else {
            let account = match Account::find_account(host, &self.user)? {
                Some(account) => account,
                None if self.is_present => return Err(Account::missing(&self.user)),
                None => return Ok(Sequence::new(Vec::new())),
            };
            let path = account.home.join(".ssh/authorized_keys");
            let elements = if self.is_present { account.files(&path)? } else { Vec::new() };
            (path, 0o600, Some(account.owner()), elements)
        };
        let editor = Keys {
            wanted: self.keys.clone(),
            is_exclusive: self.is_exclusive,
            is_present: self.is_present,
        };
        let part = format!("the keys of {}", self.user);
        let edit = TextEdit::new(path, part, Arc::new(editor));
        let keys = elements.len();
        // The user can remove the file after the step that makes it: a file of root in its place would stay one.
        elements.push(Arc::new(TextEdit { create: Some(mode), new_owner: owner, ..edit }));
        // The keys are the object: the folder and the file may hold others.
        Ok(Sequence::new(elements).created_by(vec![keys]))
    }
}

impl AuthorizedKeys {
    /// Returns the words for the file that follow "the keys": several users can have one file.
    fn place(&self) -> String {
        let Some(path) = &self.path else { return format!("of {}", self.user) };
        match user_of(path) {
            Some(user) => format!("of {user}"),
            None => format!("in {}", path.display()),
        }
    }
}

/// Returns the path of a user's keys in the usual home directory.
fn usual_file(user: &str) -> PathBuf {
    let home = match user {
        "root" => PathBuf::from("/root"),
        user => Path::new("/home").join(user),
    };
    home.join(".ssh/authorized_keys")
}

/// Returns the user whose usual file has this path.
fn user_of(path: &Path) -> Option<&str> {
    let user = path.ancestors().nth(2)?.file_name()?.to_str()?;
    (usual_file(user) == path).then_some(user)
}

impl Resource for AuthorizedKeys {
    fn sends(&self) -> Sent {
        let prints = self.keys.iter().map(|key| key.fingerprint().to_owned()).collect();
        vec![("fingerprints", SentValue::Shown(Value::Texts(prints)))]
    }

    fn footprint(&self) -> Footprint {
        let all = HostObject::Other("authorized keys", format!("the keys {}", self.place()));
        let all = if self.is_exclusive { Claim::exclusive(all) } else { Claim::shared(all) };
        let key = |key: &KeyLine| {
            let name = format!("the key {} {}", key.fingerprint(), self.place());
            Claim::exclusive(HostObject::Other("authorized key", name)).creating(self.is_present)
        };
        let path = self.usual_path();
        let user = Need::user(&self.user, "owns the authorized keys");
        let mut watch = vec![WatchSource::Path { path: path.clone(), below: false }];
        if self.path.is_none() {
            let path = PathBuf::from("/etc/passwd");
            watch.push(WatchSource::Path { path, below: false });
            // The home directory may be another one.
            watch.push(WatchSource::Polled(self.usual_path()));
        }
        Footprint {
            claims: self
                .keys
                .iter()
                .map(key)
                .chain([all, Claim::shared(HostObject::Content(self.usual_path()))])
                .collect(),
            requires: user
                .into_iter()
                .chain([Need::path(path, "contains the authorized keys")])
                .collect(),
            watch,
            removal: self.removal.clone(),
            uses_only_files: true,
            ..Footprint::default()
        }
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            match self.resolve(host) {
                Ok(resource) => resource.check(host, ask).await,
                Err(failure) => CheckResult::Unknown(failure),
            }
        })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move {
            let _one = APPLIES.lock().unwrap_or_else(PoisonError::into_inner);
            let resource = match self.resolve(host) {
                Ok(resource) => resource,
                Err(failure) => return Outcome::Failed { failure, touched: false },
            };
            // Files alone never wait.
            resource.apply(host, permit, change).now_or_never().unwrap_or_else(|| {
                let failure = Failure::new("the change of the keys did not end");
                Outcome::Failed { failure, touched: true }
            })
        })
    }
}

#[cfg(test)]
mod tests;
