//! `repo`: a repository of apt, in a deb822 file in /etc/apt/sources.list.d, with its package lists.
//!
//! A repository counts as declared once apt has read its lists: a wrong key or an unreachable server fails the
//! repository and none of its packages. Before the file changes, the old lists of the repository are removed, so lists
//! on the disk always belong to the present declaration. Nothing is written while the key file is missing or contains
//! no key.
//!
//! Reading order: `declare.rs` (the fields and the file), `key_file.rs` (the precondition), `lists.rs` (names of
//! lists), this file.

mod declare;
mod key_file;
mod lists;

use crate::change::{Change, CheckResult, Difference, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldSpec, FieldType};
use crate::footprint::Footprint;
use crate::host::packages::{Access, Ran, apt, complaint};
use crate::host::{Host, PathInfo};
use crate::kind::KindSpec;
use crate::parts::commands::{command, run_change};
use crate::parts::file_values::HASH;
use crate::parts::{WriteFailure, on_thread};
use crate::permit::Permit;
use crate::resource::{ExecutorKind, Resource, Traits};
use crate::secrets::escape::short;
use crate::values::sent_values::SendSpec;
use crate::watch_source::WatchSource;
use futures_util::FutureExt as _;
use lists::ListNames;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time for reading the lists of the repository.
const PATIENCE: Duration = Duration::from_mins(5);

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "repo",
    collectible: false,
    doc: "Manages a repository of apt in /etc/apt/sources.list.d/NAME.sources, and reads its package lists. Packages come after all repositories of the graph, also after one that failed.",
    fields: &[
        FieldSpec::new("uris", FieldType::Texts, "Addresses of the repository; required unless absent.").mode(FieldMode::Value)
            .example("[https://deb.example.org/debian]")
            .receives(Receives::Shown),
        FieldSpec::new(
            "suites",
            FieldType::Texts,
            "Suites; a suite that ends in / is a folder without components. Required unless absent.",
        ).mode(FieldMode::Value)
        .example("[bookworm]")
        .receives(Receives::Shown),
        FieldSpec::new("components", FieldType::Texts, "Components of the suites.").mode(FieldMode::Value)
            .example("[main]")
            .receives(Receives::Shown),
        FieldSpec::new("types", FieldType::Texts, "deb, deb-src or both.").receives(Receives::Shown).mode(FieldMode::Value).default("[deb]"),
        FieldSpec::new(
            "architectures",
            FieldType::Texts,
            "Architectures. Default: those of dpkg.",
        ).mode(FieldMode::Value)
        .example("[amd64]")
        .receives(Receives::Shown),
        FieldSpec::new(
            "signed_by",
            FieldType::Text,
            "The key that signs the repository: the text of an ASCII-armoured public key, or the absolute path of a key file. Default: the keys that apt trusts for all repositories.",
        ).mode(FieldMode::Value)
        .example("/usr/share/keyrings/debian-archive-keyring.gpg")
        .receives(Receives::Shown),
        FieldSpec::new(
            "trusted",
            FieldType::Bool,
            "true accepts the repository without a signature: everybody on the way to the server can then install programs on this host.",
        ).receives(Receives::Shown)
        .default("false"),
        FieldSpec::new("enabled", FieldType::Bool, "false keeps the file, and apt does not use it.")
            .default("true")
            .receives(Receives::Shown),
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "Presence of the file.").known_at_load()
            .default("exists"),
    ],
    sends: &[SendSpec::new("path", FieldType::Text, "The path of the file."), HASH],
    example: "repo:\n  - name: example\n    uris: [https://deb.example.org/debian]\n    suites: [bookworm]\n    components: [main]\n    signed_by: /usr/share/keyrings/example.gpg\n",
    restore: None,
    build: declare::build,
};

/// The time limit for another package manager that holds the lock.
const LOCK_WAIT: Duration = Duration::from_mins(2);

/// Runs a command and gives the folders of the lists their former times again: the age of the lists (`cache_age` of
/// `pkg`) is the age of all of them.
const WITH_OLD_TIMES: &str = r#"
lists=/var/lib/apt/lists
old=$(stat -c %Y "$lists/partial" 2>/dev/null || echo 0)
all=$(stat -c %Y "$lists" 2>/dev/null || echo 0)
"$@"
code=$?
touch -d "@$old" "$lists/partial" 2>/dev/null
touch -d "@$all" "$lists" 2>/dev/null
exit "$code"
"#;

/// The file of a repository. Before a change, the lists that were read under the old declaration are removed.
#[derive(Debug)]
struct Declaration {
    file: Arc<dyn Resource>,
    lists: ListNames,
    is_unread: IsUnread,
}

/// True after a change of the declaration, until apt has read its lists: lists of the same address and suite can be
/// those of another declaration with other components.
type IsUnread = Arc<AtomicBool>;

/// The lists of a repository, which apt must have read.
#[derive(Debug)]
struct Lists {
    name: String,
    path: PathBuf,
    names: ListNames,
    /// The declared file of the key.
    key: Option<PathBuf>,
    is_unread: IsUnread,
    /// The last failed try.
    last_failure: Mutex<Option<FailedTry>>,
}

/// A try of apt that failed: its end, the lists after it, and the failure.
#[derive(Clone, Debug)]
struct FailedTry {
    ended: Instant,
    lists: Vec<(PathBuf, PathInfo)>,
    failure: Failure,
}

/// The time after a failed try in which an event is one that apt made itself: the lists are not read again.
const ECHO: Duration = Duration::from_secs(2);

impl Declaration {
    async fn make_so(&self, host: &Host, permit: &Permit, change: Change) -> Outcome {
        // Without a former declaration, the lists belong to another one.
        let old = if change.creates { Vec::new() } else { self.lists.present(host).await };
        let has_removed = !old.is_empty();
        if !old.is_empty() {
            let mut argv = vec!["rm", "-f", "--"];
            argv.extend(old.iter().filter_map(|path| path.to_str()));
            if let Err(WriteFailure { failure, touched }) =
                run_change(host, permit, &command(&argv)).await
            {
                return ended(permit, failure, touched);
            }
        }
        let (file, own_permit) = (Arc::clone(&self.file), permit.for_thread());
        // An apply of a file never waits.
        let work = move |host: &Host| file.apply(host, &own_permit, change).now_or_never();
        match on_thread(host, work).await {
            Ok(Some(Outcome::Failed { failure, touched })) => {
                Outcome::Failed { failure, touched: touched || has_removed }
            }
            Ok(Some(outcome)) => {
                self.is_unread.store(true, Ordering::SeqCst);
                outcome
            }
            Ok(None) => ended(permit, Failure::new("the file was not written"), true),
            Err(failure) => ended(permit, failure, true),
        }
    }
}

fn ended(permit: &Permit, failure: Failure, touched: bool) -> Outcome {
    match permit.check() {
        Err(_) => Outcome::Interrupted,
        Ok(()) => Outcome::Failed { failure, touched },
    }
}

impl Resource for Declaration {
    fn footprint(&self) -> Footprint {
        self.file.footprint()
    }

    fn traits(&self) -> Traits {
        Traits::confined_command()
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            let file = Arc::clone(&self.file);
            let work = move |host: &Host| file.check(host, ask).now_or_never();
            match on_thread(host, work).await {
                Ok(Some(result)) => result,
                Ok(None) => CheckResult::Unknown(Failure::new("the file was not examined")),
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
        Box::pin(self.make_so(host, permit, change))
    }
}

impl Lists {
    /// Returns the command that reads the lists of this repository and no other.
    fn update(&self) -> Vec<String> {
        let list = format!("Dir::Etc::sourcelist={}", self.path.display());
        let update = apt(&[
            "-o",
            &list,
            "-o",
            "Dir::Etc::sourceparts=-",
            "-o",
            "APT::Get::List-Cleanup=0",
            "-o",
            "APT::Update::Error-Mode=any",
            "-o",
            "Acquire::Retries=0",
            "-o",
            "Acquire::http::Timeout=20",
            "-o",
            "Acquire::https::Timeout=20",
            "update",
        ]);
        let shell = ["sh", "-c", WITH_OLD_TIMES, "sh"].map(ToOwned::to_owned);
        shell.into_iter().chain(update).collect()
    }

    async fn read(&self, host: &Host, permit: &Permit) -> Outcome {
        let outcome = self.read_once(host, permit).await;
        let failed = match &outcome {
            Outcome::Failed { failure, .. } => Some(FailedTry {
                ended: Instant::now(),
                lists: self.names.states(host).await,
                failure: failure.clone(),
            }),
            _ => None,
        };
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        outcome
    }

    /// Returns the failure of a try that has just ended and left the lists as they are now.
    async fn just_failed(&self, host: &Host) -> Option<Failure> {
        let last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = last.filter(|last| last.ended.elapsed() < ECHO)?;
        (self.names.states(host).await == last.lists).then_some(last.failure)
    }

    async fn read_once(&self, host: &Host, permit: &Permit) -> Outcome {
        let Some(mut turn) = host.package_turn(LOCK_WAIT, permit).await else {
            return Outcome::Interrupted;
        };
        let before = self.names.states(host).await;
        loop {
            match host.transact(&mut turn, (self.update(), None), permit).await {
                Err(failure) => return ended(permit, failure, false),
                Ok(Ran::Refused) => {}
                Ok(Ran::Without(Access::Locked(holder))) => {
                    let seconds = turn.patience().as_secs();
                    let what = format!("the lists are locked by {holder}; waited {seconds} s");
                    return ended(permit, Failure::new(what).passing(), false);
                }
                Ok(Ran::Without(_)) => return Outcome::Interrupted,
                Ok(Ran::Finished(finished, _)) if finished.is_success() => {
                    return match self.names.missing(host).await {
                        None => {
                            self.is_unread.store(false, Ordering::SeqCst);
                            Outcome::Changed(vec!["lists read".to_owned()])
                        }
                        Some(uri) => {
                            ended(permit, self.unread(&format!("no lists of {uri}")), true)
                        }
                    };
                }
                Ok(Ran::Finished(finished, _)) => {
                    let said = finished.stderr.text();
                    let unread = self.unread(&complaint(&finished).what);
                    // A failed download most often leaves the lists as they were.
                    let touched = self.names.states(host).await != before;
                    return ended(permit, self.with_missing_keys(&said, unread), touched);
                }
            }
        }
    }

    /// Names the keys that apt wants for a signature and does not have.
    fn with_missing_keys(&self, said: &str, unread: Failure) -> Failure {
        let keys = missing_keys(said).join(", ");
        if keys.is_empty() {
            return unread;
        }
        let from = match &self.key {
            Some(path) => format!(": {} does not contain it", path.display()),
            None => String::new(),
        };
        let what = format!(
            "apt wants the key {} for the lists of {}\n{}",
            short(&keys, 40),
            short(&self.name, 20),
            unread.what
        );
        let hint = format!("`signed_by` must contain the key {}{from}", short(&keys, 100));
        Failure { what, hint: Some(hint), ..unread }
    }

    fn unread(&self, why: &str) -> Failure {
        let what =
            format!("the package lists of {} could not be read\n{why}", short(&self.name, 50));
        Failure::new(what).hint("check `uris`, `suites`, `components` and `signed_by`").passing()
    }
}

/// Returns the ids of the keys that apt does not have, from its warnings.
fn missing_keys(said: &str) -> Vec<&str> {
    let ids = said.split("NO_PUBKEY ").chain(said.split("Missing key "));
    let starts_with_id = |text: &str| {
        let digits = text.bytes().take_while(u8::is_ascii_hexdigit).count();
        (8..=40).contains(&digits).then_some(digits)
    };
    let mut ids: Vec<&str> = ids.filter_map(|text| text.get(..starts_with_id(text)?)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

impl Resource for Lists {
    fn footprint(&self) -> Footprint {
        let watch = self.names.paths().map(|path| WatchSource::Path { path, below: false });
        Footprint { watch: watch.collect(), ..Footprint::default() }
    }

    fn traits(&self) -> Traits {
        Traits {
            executor: ExecutorKind::Command,
            confined: true,
            cancellable: false,
            timeout: Some(PATIENCE),
            // Packages of other repositories go on.
            failure_blocks: false,
            ..Traits::default()
        }
    }

    fn check<'a>(&'a self, host: &'a Host, _ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move {
            if let Some(failure) = self.just_failed(host).await {
                return CheckResult::Unknown(failure);
            }
            let to = if let Some(uri) = self.names.missing(host).await {
                format!("read from {uri}")
            } else if self.is_unread.load(Ordering::SeqCst) {
                "read under the changed declaration".to_owned()
            } else if let Some(key) = &self.key
                && host.look(key).await.is_err()
            {
                format!("read with the key {}", key.display())
            } else {
                return CheckResult::Same;
            };
            let from = String::new();
            CheckResult::Differs(Change::of(vec![Difference {
                aspect: "lists",
                from,
                to,
                diff: None,
            }]))
        })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(self.read(host, permit))
    }
}

#[cfg(test)]
mod tests {
    use super::missing_keys;

    #[test]
    fn the_keys_that_apt_wants_are_found() {
        let said = "W: GPG error: http://a s InRelease: The following signatures couldn't be verified \
            because the public key is not available: NO_PUBKEY 0E98404D386FA1D9 NO_PUBKEY 6ED0E7B82643E131\n\
            W: Sub-process /usr/bin/sqv returned an error code (1), error message is: Missing key \
            4CB50190207B4758A3F73A796ED0E7B82643E131, which is needed to verify signature.\n\
            E: The repository 'http://a s InRelease' is not signed.\n";
        let expected =
            ["0E98404D386FA1D9", "4CB50190207B4758A3F73A796ED0E7B82643E131", "6ED0E7B82643E131"];
        assert_eq!(missing_keys(said), expected);
        assert!(missing_keys("E: NO_PUBKEY\nMissing key x").is_empty());
    }
}
