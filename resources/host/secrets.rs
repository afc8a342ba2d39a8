//! The supplies of secrets: credentials of systemd, private files, and commands.

use super::files::Why;
use super::input_trust::Reader;
use super::process::{End, spawner};
use super::{Command, Host};
use crate::failure::Failure;
use crate::secrets::secret_text::Secret;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The size limit of a secret in bytes.
const LONGEST: usize = 1 << 20;

/// The deadline of a supplying command, which runs for each use and must be quick.
const PATIENCE: Duration = Duration::from_mins(1);

/// The supply of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// A credential that systemd passes to the daemon's unit (`LoadCredential=`), by name.
    Credential(String),
    /// A file that only its owner can read: root or the user of the daemon. The content is used unchanged.
    File(PathBuf),
    /// The output of a command, given as an argument vector, without one newline at its end.
    Command(Vec<String>),
}

impl Host {
    /// Reads the present value of a secret. Failures never contain any part of the secret.
    ///
    /// # Errors
    ///
    /// Fails if the credential or file is missing, empty, too long, not UTF-8 or accessible for other users, or
    /// if the command fails or prints no usable text.
    pub async fn secret(
        &self,
        supply: &Supply,
        cancel: &CancellationToken,
    ) -> Result<Secret, Failure> {
        let path = match supply {
            Supply::Command(argv) => return self.printed(argv, cancel).await,
            Supply::File(path) => path.clone(),
            Supply::Credential(name) => credentials()?.join(name),
        };
        let host = self.clone();
        let reading = spawner::handle()?.spawn_blocking(move || host.private(&path));
        reading.await.map_err(|why| Failure::new(format!("a secret cannot be read: {why}")))?
    }

    async fn printed(
        &self,
        argv: &[String],
        cancel: &CancellationToken,
    ) -> Result<Secret, Failure> {
        let argv_0 = argv.first().cloned();
        let (argv, timeout) = (argv.to_vec(), Some(PATIENCE));
        let command = Command { argv, timeout, judged: true, ..Command::default() };
        let finished = self.query(&command, cancel).await.map_err(|mut failure| {
            failure.what.insert_str(0, "secret: ");
            failure
        })?;
        let program =
            argv_0.as_deref().map_or_else(String::new, |it| crate::secrets::escape::short(it, 40));
        let refuse = |why: &str| {
            Failure::new(format!("the command `{program}` that supplies a secret {why}"))
                .hint("run the command manually; its output is not shown here")
        };
        if !finished.is_success() {
            return Err(refuse(&match finished.end {
                End::Exited(code) => format!("ended with exit code {code}"),
                End::Killed(signal) => format!("was ended by signal {signal}"),
                End::TimedOut => format!("gave no answer within {} s", PATIENCE.as_secs()),
                End::Cancelled { .. } => "was cancelled".to_owned(),
            }));
        }
        if finished.stdout.truncated() {
            return Err(refuse("printed more than 1 MiB"));
        }
        let text = std::str::from_utf8(finished.stdout.bytes());
        let text = text.map_err(|_not_shown| refuse("printed no UTF-8"))?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        if text.is_empty() {
            return Err(refuse("printed nothing"));
        }
        Ok(text.into())
    }

    /// Reads a file that no other user may read or write.
    fn private(&self, path: &Path) -> Result<Secret, Failure> {
        let shown = crate::secrets::escape::short(&path.to_string_lossy(), 60);
        let refuse = |why: &str| Failure::new(format!("the secret {shown} {why}"));
        let missing =
            || refuse("does not exist").hint("create the file, owned by root, with mode 0600");
        let files = self.files();
        let found = files.origin(path).map_err(|fault| {
            if matches!(fault.why, Why::Moved) { missing() } else { files.failure(fault, path) }
        })?;
        let origin = found.ok_or_else(missing)?;
        let seen = *origin.seen();
        if seen.kind != FileType::RegularFile {
            return Err(refuse("is not a regular file"));
        }
        if !(seen.uid == 0 || files.owns(&seen)) {
            return Err(refuse("belongs to another user")
                .hint("make root the owner of the file: chown root"));
        }
        if seen.mode & 0o077 != 0 {
            return Err(refuse("is readable by others").hint("chmod 0600"));
        }
        let reader = Reader::here();
        if reader.is_strict()
            && let Some(doubt) = reader.untrusted_on_the_way(path)
        {
            let why = format!("could be replaced by another user\n{doubt}");
            return Err(refuse(&why).hint("make root the owner of all parent directories"));
        }
        let mut content = super::files::Content::default();
        content.push(origin);
        let bytes = content.bytes(LONGEST).map_err(|fault| files.failure(fault, path))?;
        let bytes = bytes.ok_or_else(|| refuse("is longer than 1 MiB"))?;
        if bytes.is_empty() {
            // A file may be empty for a moment while somebody writes a new secret.
            return Err(refuse("is empty"));
        }
        let text = String::from_utf8(bytes).map_err(|_not_shown| refuse("is not UTF-8"))?;
        Ok(text.into())
    }

    /// Fills a buffer with random bytes of the system.
    ///
    /// # Errors
    ///
    /// Fails if the system provides no random bytes.
    #[expect(clippy::unused_self, reason = "randomness goes through the one door to the machine")]
    pub fn random(&self, bytes: &mut [u8]) -> Result<(), Failure> {
        super::kernel::random(bytes).map_err(|why| Failure::new(format!("no random source: {why}")))
    }
}

fn credentials() -> Result<PathBuf, Failure> {
    let folder = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    folder.filter(|folder| folder.is_absolute()).ok_or_else(|| {
        Failure::new("systemd gave no credentials: CREDENTIALS_DIRECTORY is not set")
            .hint("add LoadCredential= or SetCredentialEncrypted= to the unit of the daemon")
    })
}
