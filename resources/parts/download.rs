//! Downloads by `curl`: every credential goes through its standard input, never through arguments.

use super::checksum::checksum_of;
use super::commands::{command_with_input, failed};
use super::field_reader::{FieldReader, bounded, normal_path};
use super::managed::WriteFailure;
use super::on_thread;
use super::staging::guard_way;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::fields::field_values::Invalid;
use crate::fields::field_values::MaybeSecret;
use crate::host::{End, Host};
use crate::kind::LONGEST_SPAN;
use crate::permit::Permit;
use crate::secrets::escape::short;
use crate::secrets::secret_text::Secret;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns the need of a download: the package of curl, if the graph installs it.
pub(crate) fn needed_package() -> Need {
    Need::exact(HostObject::Package("curl".to_owned()), "has curl")
}

/// The address of a download.
pub(crate) const URL: FieldSpec = FieldSpec::new(
    "url",
    FieldType::Text,
    "Address: http, https or file. Redirections are followed; one from https never leads to http.",
)
.mode(FieldMode::Value)
.example("https://example.org/app-1.2.tar.gz")
.receives(Receives::Shown);

/// The checksum of a download.
pub(crate) const CHECKSUM: FieldSpec = FieldSpec::new(
    "checksum",
    FieldType::Text,
    "Checksum of the file, sha256: and 64 hexadecimal digits; nothing else is accepted.",
)
.mode(FieldMode::Value)
.example("sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
.receives(Receives::Shown);

/// The account on the server.
pub(crate) const USERNAME: FieldSpec =
    FieldSpec::new("username", FieldType::Text, "Name for the server, with `password`.")
        .mode(FieldMode::Value)
        .example("deploy")
        .receives(Receives::Shown);

/// The password on the server.
pub(crate) const PASSWORD: FieldSpec =
    FieldSpec::new("password", FieldType::Text, "Password for the server; give it as a secret.")
        .mode(FieldMode::Value)
        .example("secret")
        .receives(Receives::Secrets);

/// The bearer token for the server.
pub(crate) const TOKEN: FieldSpec =
    FieldSpec::new("token", FieldType::Text, "Bearer token for the server; give it as a secret.")
        .mode(FieldMode::Value)
        .example("secret")
        .conflicts_with(&["password"])
        .receives(Receives::Secrets);

/// The certificates of authorities for the server.
pub(crate) const CACERT: FieldSpec = FieldSpec::new(
    "cacert",
    FieldType::Text,
    "File with the certificates that the server is judged by. Default: those of the host.",
)
.mode(FieldMode::Value)
.example("/etc/ssl/certs/company.pem")
.receives(Receives::Shown);

/// The deadline of the download.
pub(crate) const TIMEOUT: FieldSpec = FieldSpec::new(
    "timeout",
    FieldType::Duration,
    "Deadline of the download; a server that sends nothing for a minute fails earlier.",
)
.default("10m")
.receives(Receives::Shown);

const DEADLINE: Duration = Duration::from_mins(10);

/// A file to download.
#[derive(Clone, Debug)]
pub(crate) struct Download {
    url: String,
    /// The expected SHA-256 in lower case.
    pub(crate) sha256: String,
    username: Option<String>,
    password: Option<Secret>,
    token: Option<Secret>,
    pub(crate) cacert: Option<PathBuf>,
    pub(crate) timeout: Duration,
}

impl Download {
    /// Reads the fields of a download; `url` and `checksum` must be given.
    pub(crate) fn read(reader: &mut FieldReader) -> Self {
        let url = reader.required_text("url");
        check_url(&url, reader);
        let sha256 = read_checksum(reader);
        if sha256.is_none() && !reader.fields.has("checksum") {
            let what = "expected `checksum`, found none or a wrong one";
            let hint = "sha256: and 64 hexadecimal digits; `sha256sum FILE` prints them";
            reader.reject(Invalid::field("checksum", what).hint(hint));
        }
        let username = reader.text("username");
        let password = secret("password", reader);
        let problem = ("`username` needs `password`", "give the password as a secret");
        reader.require(username.is_none() || password.is_some(), "username", problem);
        let problem = ("`password` needs `username`", "give the name for the server");
        reader.require(username.is_some() || password.is_none(), "password", problem);
        let problem =
            ("a name for HTTP cannot contain `:`", "the server takes the rest for a password");
        let has_colon = username.as_ref().is_some_and(|name| name.contains(':'));
        reader.require(!has_colon, "username", problem);
        let token = secret("token", reader);
        let cacert = reader.text("cacert").map(|text| {
            let path = normal_path(&text);
            let problem = ("expected an absolute path", "for example /etc/ssl/certs/company.pem");
            reader.require(path.is_some(), "cacert", problem);
            path.unwrap_or_default()
        });
        let timeout = read_timeout(reader);
        Self { url, sha256: sha256.unwrap_or_default(), username, password, token, cacert, timeout }
    }

    /// Returns the address without its query.
    pub(crate) fn name(&self) -> &str {
        self.url.split(['?', '#']).next().unwrap_or_default()
    }

    /// Returns the path of a file address; none for a server.
    fn local_path(&self) -> Option<PathBuf> {
        self.name().strip_prefix("file://").map(|path| PathBuf::from(decode_percent(path)))
    }

    /// Downloads the file to a path in a private folder, and compares it with the checksum.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be reached, is too slow or answers with an error, or if the file differs from the
    /// checksum.
    pub(crate) async fn store(
        &self,
        host: &Host,
        permit: &Permit,
        to: &Path,
    ) -> Result<(), WriteFailure> {
        if let Some(path) = self.local_path() {
            guard_way("read", &path).map_err(WriteFailure::untouched)?;
        }
        let mut curl = command_with_input(&["curl", "-q", "-K", "-"], self.config(to).into());
        // curl ends itself at the deadline, with a better message.
        curl.timeout = Some(self.timeout + Duration::from_secs(10));
        let finished = host.run(&curl, permit).await.map_err(|failure| {
            WriteFailure::untouched(failure.hint("a download needs the package curl"))
        })?;
        if finished.end != End::Exited(0) {
            let why = match finished.end {
                End::Exited(28) => "the server was too slow".to_owned(),
                End::Exited(_) => finished.stderr.last_lines(1).join(" "),
                _ => failed(&curl, &finished).what,
            };
            let why = why.trim_start_matches("curl: ").to_owned();
            return Err(WriteFailure::untouched(self.undone(&why)));
        }
        let path = to.to_owned();
        let found = on_thread(host, move |host| checksum_of(host.files(), &path));
        match found.await.and_then(|found| found).map_err(WriteFailure::untouched)? {
            Some(found) if found == self.sha256 => Ok(()),
            Some(found) => {
                let what = format!(
                    "the downloaded file does not have its checksum\nexpected sha256:{}\nfound sha256:{found}",
                    self.sha256
                );
                let hint =
                    "the file on the server has changed, or `checksum` belongs to another file";
                Err(WriteFailure::untouched(Failure::new(what).hint(hint)))
            }
            None => Err(WriteFailure::untouched(self.undone("the file is empty"))),
        }
    }

    fn undone(&self, why: &str) -> Failure {
        let what = format!("cannot download {}", short(self.name(), 80));
        Failure::new(format!("{}\n{}", bounded(what), short(why, 300))).passing()
    }

    /// Returns the configuration for curl, with all credentials.
    fn config(&self, to: &Path) -> String {
        let mut text = String::from("fail\nsilent\nshow-error\nlocation\nmax-redirs = 10\n");
        let redirections = if self.url.starts_with("https:") { "=https" } else { "=http,https" };
        let mut option = |name: &str, value: &str| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            // Writing to a text cannot fail.
            let _infallible = writeln!(text, "{name} = \"{value}\"");
        };
        option("url", &self.url);
        option("output", &to.display().to_string());
        option("proto", "=http,https,file");
        option("proto-redir", redirections);
        option("connect-timeout", "20");
        option("speed-limit", "1");
        option("speed-time", "60");
        option("max-time", &self.timeout.as_secs().max(1).to_string());
        if let Some(path) = &self.cacert {
            option("cacert", &path.display().to_string());
        }
        if let (Some(name), Some(password)) = (&self.username, &self.password) {
            option("user", &format!("{name}:{}", password.reveal()));
        }
        if let Some(token) = &self.token {
            option("oauth2-bearer", token.reveal());
        }
        text
    }
}

/// Returns the digits of the field `checksum`; reports a wrong text.
pub(crate) fn read_checksum(reader: &mut FieldReader) -> Option<String> {
    let text = reader.text("checksum")?;
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    let is_sum = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_sum {
        let what =
            format!("expected sha256: and 64 hexadecimal digits, found {}", short(&text, 30));
        let hint = "`sha256sum FILE` prints the digits";
        reader.reject(Invalid::field("checksum", what).hint(hint));
    }
    is_sum.then(|| digits.to_ascii_lowercase())
}

/// Decodes `%20` and the like.
fn decode_percent(text: &str) -> OsString {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        let code = (*byte == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let decoded = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(decoded.unwrap_or(*byte));
        rest = if decoded.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    OsString::from_vec(bytes)
}

fn check_url(url: &str, reader: &mut FieldReader) {
    let known = ["http://", "https://", "file:///"].iter().any(|scheme| url.starts_with(scheme));
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    if !(url.is_empty() || known && is_plain) {
        let what = format!("expected an http, https or file address, found {}", short(url, 40));
        let hint = if known {
            "spaces and other characters are written as %20"
        } else {
            "curl in an `exec` with `creates` reads other addresses"
        };
        reader.reject(Invalid::field("url", what).hint(hint));
    }
    let host =
        url.split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
    let problem = ("the address contains an account", "use `username` and `password`");
    reader.require(!host.contains('@'), "url", problem);
}

fn secret(field: &'static str, reader: &mut FieldReader) -> Option<Secret> {
    let secret: Secret = match reader.maybe_secret(field)? {
        MaybeSecret::Shown(text) => text.into(),
        MaybeSecret::Secret(secret) => secret,
        MaybeSecret::Sealed(_) => return None,
    };
    let is_plain = !secret.reveal().is_empty() && !secret.reveal().contains(char::is_control);
    let problem =
        ("expected one line without control characters", "check the source of the secret");
    reader.require(is_plain, field, problem);
    Some(secret)
}

fn read_timeout(reader: &mut FieldReader) -> Duration {
    let Some(seconds) = reader.fields.float("timeout") else { return DEADLINE };
    match Duration::try_from_secs_f64(seconds) {
        Ok(timeout) if timeout >= Duration::from_secs(1) && timeout <= LONGEST_SPAN => timeout,
        _ => {
            let what = format!("expected a span of time from 1s on, found {seconds} s");
            reader.reject(Invalid::field("timeout", what));
            DEADLINE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Download;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn quotes_in_a_password_add_no_option() {
        let download = Download {
            url: "https://a/b".to_owned(),
            sha256: String::new(),
            username: Some("me".to_owned()),
            password: Some("x\"\\n".into()),
            token: None,
            cacert: None,
            timeout: Duration::from_mins(1),
        };
        let config = download.config(Path::new("/t/f"));
        assert!(config.contains("user = \"me:x\\\"\\\\n\"\n"), "{config}");
        assert!(config.contains("proto-redir = \"=https\"\n"), "{config}");
        assert!(!format!("{download:?}").contains("x\\\""), "Debug shows no secret");
    }
}
