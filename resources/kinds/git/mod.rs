//! `git`: a working tree of a git repository at a branch, a tag or a commit.
//!
//! Hooks, file system monitors and the `ext` transport of git never run. Without `user`, git works as the daemon's user
//! and rejects a tree of another user, who could run commands through its configuration.
//!
//! A fetched version is stored under a reference of its own (`refs/steadfast/version`), with its name in the
//! configuration of the tree. A check compares HEAD with it and asks the server only with `update: true`.
//!
//! Reading order: `declare.rs` (the fields), this file, `fetch.rs` (the change), `undo.rs`.

mod declare;
mod fetch;
mod undo;

use crate::check_request::Answer;
use crate::claim::Claim;
use crate::dependency::{HostObject, Need};
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{FieldMode, FieldRole, FieldSpec, FieldType};
use crate::fields::field_values::Value;
use crate::footprint::Footprint;
use crate::footprint::PathAfter;
use crate::host::files::{AccountKind, EntryStat, Files, account_name, said};
use crate::host::input_trust::Reader;
use crate::host::{Command, End, Finished, Host, git_command};
use crate::kind::KindSpec;
use crate::parts::commands::failed;
use crate::parts::staging::guard_way_for;
use crate::parts::{ValueSet, WriteFailure, on_thread};
use crate::permit::Permit;
use crate::prior_state::FieldValues;
use crate::removal::Removal;
use crate::resource::Traits;
use crate::values::sent_values::{SendSpec, Sent, SentValue};
use crate::watch_source::WatchSource;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "git",
    collectible: false,
    doc: "Manages a working tree of a git repository. The name is the directory. A refresh has no meaning.",
    fields: &[
        FieldSpec::new("path", FieldType::Text, "Absolute path of the directory. Default: the name.").role(FieldRole::Path).mode(FieldMode::Static)
            .example("/srv/app"),
        FieldSpec::new(
            "repo",
            FieldType::Text,
            "Address of the repository: a URL, HOST:PATH, or an absolute path. Required unless absent.",
        ).mode(FieldMode::Value)
        .example("https://git.example.org/app.git")
        .receives(Receives::Shown),
        FieldSpec::new(
            "version",
            FieldType::Text,
            "Branch, tag or full commit. HEAD is detached. Default: HEAD of the repository.",
        ).mode(FieldMode::Value)
        .example("v1.2")
        .receives(Receives::Shown),
        FieldSpec::new(
            "update",
            FieldType::Bool,
            "true asks the repository at each check and follows a branch; false keeps the commit that was fetched first for this version.",
        )
        .default("false")
        .receives(Receives::Shown),
        FieldSpec::new("depth", FieldType::Int, "Number of commits to fetch. Default: the whole history.")
            .range(1, 1_000_000)
            .example("1")
            .receives(Receives::Shown),
        FieldSpec::new(
            "force",
            FieldType::Bool,
            "true discards local changes of tracked files; false fails instead. Untracked files stay. A removal deletes a tree with changed or untracked files, or with commits of its own, only with true.",
        )
        .default("false")
        .receives(Receives::Shown),
        FieldSpec::new(
            "verify",
            FieldType::Bool,
            "true checks out only a commit or an annotated tag with a good signature, by a key in the GnuPG keyring of the user, or in gpg.ssh.allowedSignersFile of the user's git configuration. A signed tag must have the name of the version; a signed commit names none, so the repository chooses which signed commit a branch means.",
        )
        .default("false")
        .receives(Receives::Shown),
        FieldSpec::new(
            "user",
            FieldType::Text,
            "User that git runs as and that owns the tree. The parent directory must allow that user to create it. Default: the daemon's user.",
        ).mode(FieldMode::Value)
        .example("deploy")
        .receives(Receives::Shown),
        FieldSpec::new("timeout", FieldType::Duration, "Deadline of a fetch.")
            .default("10m")
            .receives(Receives::Shown),
        FieldSpec::new("state", FieldType::Choice(&["exists", "absent"]), "Presence of the directory.").known_at_load()
            .default("exists"),
    ],
    sends: &[
        SendSpec::new("commit", FieldType::Text, "The commit of HEAD."),
        SendSpec::new("path", FieldType::Text, "The working tree."),
    ],
    example: "git:\n  - name: /srv/app\n    repo: https://git.example.org/app.git\n    version: v1.2\n",
    restore: Some(declare::restore),
    build: declare::build,
};

/// The reference of the fetched version.
const VERSION: &str = "refs/steadfast/version";

/// The commit of the checkout that is under way.
const CHECKOUT: &str = "steadfast.checkout";

/// The deadline of a local query.
const QUERY: Duration = Duration::from_mins(2);

/// A working tree as declared.
#[derive(Debug)]
struct Tree {
    path: PathBuf,
    /// The address; none for undo, which works with the fetched commits.
    repo: Option<String>,
    version: String,
    update: bool,
    depth: Option<i64>,
    force: bool,
    verify: bool,
    user: Option<String>,
    timeout: Duration,
}

/// The found state of a working tree.
#[derive(Debug)]
struct Found {
    repo: Option<String>,
    head: Option<String>,
    /// The commit of the declared version; none if it is unknown or not fetched.
    wanted: Option<String>,
    is_changed: bool,
    /// The changes are those of a checkout of this program that was cut off.
    is_cut_off: bool,
}

impl Tree {
    /// Makes a tree as it is, for queries as its owner.
    fn present(path: PathBuf, user: Option<String>) -> Self {
        let version = "HEAD".to_owned();
        let (update, force, verify) = (false, false, false);
        Self { path, repo: None, version, update, depth: None, force, verify, user, timeout: QUERY }
    }

    /// Returns a command of git in the tree.
    fn git(&self, words: &[&str]) -> Command {
        let path = self.path.display().to_string();
        self.as_user(git_command(Some(&path), words, self.above()))
    }

    /// Returns a command of git outside the tree.
    fn git_outside(&self, words: &[&str]) -> Command {
        self.as_user(git_command(None, words, self.above()))
    }

    /// Returns the directory above the tree.
    fn above(&self) -> &Path {
        self.path.parent().unwrap_or_else(|| Path::new("/"))
    }

    fn as_user(&self, command: Command) -> Command {
        let user = self.user.clone();
        Command { user, timeout: Some(QUERY), no_new_privs: true, ..command }
    }

    async fn ask(
        &self,
        host: &Host,
        cancel: &CancellationToken,
        words: &[&str],
    ) -> Result<Finished, Failure> {
        let finished = host.query(&self.git(words), cancel).await;
        let finished = finished.map_err(|failure| failure.hint("`git` needs the package git"))?;
        // The owner of the tree can stop git, such as with a FIFO in place of a file. Further queries would stop, too.
        match finished.end {
            End::TimedOut => Err(self.unreadable(words, &finished)),
            End::Exited(_) | End::Killed(_) | End::Cancelled { .. } => Ok(finished),
        }
    }

    /// Returns the output of a query of one line; none if git ends with another code than 0.
    async fn line(
        &self,
        host: &Host,
        cancel: &CancellationToken,
        words: &[&str],
    ) -> Result<Option<String>, Failure> {
        let finished = self.ask(host, cancel, words).await?;
        let text = finished.stdout.text().trim().to_owned();
        Ok((finished.is_success() && !text.is_empty()).then_some(text))
    }

    /// Reads the tree; none if there is no repository at the path.
    async fn look(
        &self,
        host: &Host,
        cancel: &CancellationToken,
    ) -> Result<Option<Found>, Failure> {
        let (path, user) = (self.path.clone(), self.user.clone());
        on_thread(host, move |host| guard_tree(host.files(), &path, user.as_deref())).await??;
        if host.look(&self.path.join(".git")).await.is_err() {
            return Ok(None);
        }
        let words = ["rev-parse", "--git-dir"];
        let finished = self.ask(host, cancel, &words).await?;
        if finished.end != End::Exited(0) {
            return Err(self.unreadable(&words, &finished));
        }
        let line = async |words: &[&str]| self.line(host, cancel, words).await;
        let head = line(&["rev-parse", "--verify", "-q", "HEAD^{commit}"]).await?;
        let repo = line(&["config", "--get", "remote.origin.url"]).await?;
        let wanted = self.wanted_commit(host, cancel).await?;
        let status = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules"];
        let finished = self.ask(host, cancel, &status).await?;
        if head.is_some() && finished.end != End::Exited(0) {
            return Err(self.unreadable(&status, &finished));
        }
        let is_changed = head.is_some() && finished.stdout.total() > 0;
        // HEAD moves at the end of a checkout.
        let begun = if is_changed { line(&["config", "--get", CHECKOUT]).await? } else { None };
        let is_cut_off = begun.is_some() && begun != head;
        Ok(Some(Found { repo, head, wanted, is_changed, is_cut_off }))
    }

    fn unreadable(&self, words: &[&str], finished: &Finished) -> Failure {
        let failure = failed(&self.git(words), finished);
        failure.hint("`user` must be the owner of the tree; remove the directory to clone it again")
    }

    /// Returns the commit of the declared version.
    async fn wanted_commit(
        &self,
        host: &Host,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Failure> {
        if is_commit(&self.version) {
            return Ok(Some(self.version.clone()));
        }
        if self.update
            && let Some(repo) = &self.repo
        {
            return fetch::remote_commit(self, repo, (host, cancel))
                .await
                .map(|(_, commit)| Some(commit));
        }
        let line = async |words: &[&str]| self.line(host, cancel, words).await;
        let stored = line(&["config", "--get", "steadfast.version"]).await?;
        let is_stored = stored.as_ref() == Some(&self.version);
        let tag = format!("refs/tags/{}", self.version);
        let branch = format!("refs/remotes/origin/{}", self.version);
        let names = if is_stored { vec![VERSION] } else { vec![tag.as_str(), branch.as_str()] };
        for name in names {
            let commit = format!("{name}^{{commit}}");
            if let Some(found) = line(&["rev-parse", "--verify", "-q", &commit]).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Returns the user that git runs as in the tree at a path, none for the daemon's user; none if there is no object.
///
/// # Errors
///
/// Fails if the path cannot be examined.
pub(crate) async fn tree_owner(
    host: &Host,
    path: &Path,
) -> Result<Option<Option<String>>, Failure> {
    let path = path.to_owned();
    on_thread(host, move |host| {
        let files = host.files();
        let look = || files.open_entry(&path)?.map(|entry| entry.look()).transpose();
        let seen = look().map_err(|fault| files.failure(fault, &path))?.flatten();
        let is_others = |seen: &EntryStat| files.is_root() && seen.uid != 0;
        Ok(seen.map(|seen| is_others(&seen).then(|| account_name(AccountKind::User, seen.uid))))
    })
    .await?
}

/// Fails if a user besides the one that git runs as can put another tree at the path: git works by the path, and would
/// change that tree.
fn guard_tree(files: &Files, path: &Path, user: Option<&str>) -> Result<(), Failure> {
    let uid = user.map(|user| files.accounts().number(AccountKind::User, user)).transpose()?;
    let reader = Reader::here().on_behalf_of(uid);
    if !reader.is_strict() {
        return Ok(());
    }
    let hint =
        "declare as `user` the only user, besides root, who can change the directories above";
    guard_way_for("read", path, uid).map_err(|failure| failure.hint(hint))?;
    let look = || files.open_entry(path)?.map(|entry| entry.look()).transpose();
    let seen = look().map_err(|fault| files.failure(fault, path))?.flatten();
    let is_link = seen.is_some_and(|seen| seen.kind == FileType::Symlink);
    if let Some(doubt) = reader.untrusted_on_the_way(path).filter(|_| is_link) {
        let failure = said("read", path, "it is a link that another user can change");
        return Err(failure.hint(format!("declare the target of the link ({doubt})")));
    }
    let common = path.join(".git/commondir");
    let look = || files.open_entry(&common)?.map(|entry| entry.look()).transpose();
    if look().map_err(|fault| files.failure(fault, path))?.flatten().is_some() {
        let failure = said("use", path, "it is a working tree of another repository (commondir)");
        return Err(failure.hint("remove .git/commondir, or clone the repository anew"));
    }
    // git runs the programs that the configuration of the repository names, such as filters.
    let mut configuration = [".git/config", ".git/config.worktree"].into_iter();
    match configuration.find_map(|name| reader.untrusted_on_the_way(&path.join(name))) {
        Some(doubt) => {
            let why = "another user can change the configuration of the repository";
            let hint = format!("git runs programs that it names: close it to others; {doubt}");
            Err(said("use", path, why).hint(hint))
        }
        None => Ok(()),
    }
}

/// A live working tree.
pub(crate) struct LiveTree {
    pub(crate) repo: String,
    /// The version that steadfast fetched, or the present commit.
    pub(crate) version: String,
}

/// Reads a working tree as its owner; none if there is no repository, or one without an origin or a commit.
pub(crate) async fn live_tree(
    host: &Host,
    path: &Path,
    user: Option<String>,
) -> Result<Option<LiveTree>, Failure> {
    let cancel = CancellationToken::new();
    let tree = Tree::present(path.to_owned(), user);
    let Some(found) = tree.look(host, &cancel).await? else { return Ok(None) };
    let (Some(repo), Some(head)) = (found.repo, found.head) else { return Ok(None) };
    let stored = tree.line(host, &cancel, &["config", "--get", "steadfast.version"]).await?;
    let reference = format!("{VERSION}^{{commit}}");
    let fetched = tree.line(host, &cancel, &["rev-parse", "--verify", "-q", &reference]).await?;
    let version = stored.filter(|_| fetched.as_ref() == Some(&head)).unwrap_or(head);
    Ok(Some(LiveTree { repo, version }))
}

impl Tree {
    /// Returns the fields that remove the tree; none for undo, which makes no tree.
    fn removal(&self) -> Option<Removal> {
        self.repo.as_ref()?;
        let path = Value::Text(self.path.display().to_string());
        let removal = Removal::new().with("path", path);
        let removal = removal.with("state", Value::Text("absent".to_owned()));
        Some(if self.force { removal.with("force", Value::Bool(true)) } else { removal })
    }
}

/// Returns true if the text is a full commit id.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl ValueSet for Tree {
    fn wanted(&self) -> FieldValues {
        let repo = self.repo.as_ref().map(|repo| ("repo", Some(repo.clone())));
        let version = ("version", Some(self.version.clone()));
        let changes = ("changes", Some("none".to_owned()));
        let signature = self.verify.then(|| ("signature", Some("good".to_owned())));
        repo.into_iter().chain([version, changes]).chain(signature).collect()
    }

    fn read<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Answer<'a, Result<FieldValues, Failure>> {
        Box::pin(async move {
            let Some(found) = self.look(host, cancel).await? else {
                // Nothing can be changed in a tree that does not exist.
                let changes = ("changes", Some("none".to_owned()));
                return Ok(vec![("repo", None), ("version", None), changes]);
            };
            if found.is_changed && !self.force && !found.is_cut_off {
                let what = "the working tree has local changes";
                let hint = "commit or undo them; `force: true` discards them";
                let path = self.path.display();
                return Err(Failure::new(format!("{what}\n{path}")).hint(hint));
            }
            let is_there = found.head.is_some() && found.head == found.wanted;
            let version = if is_there { Some(self.version.clone()) } else { found.head.clone() };
            let changes = if found.is_changed { "yes" } else { "none" };
            let changes = ("changes", Some(changes.to_owned()));
            let signature = match found.head.as_ref().filter(|_| self.verify) {
                Some(head) => {
                    let judged = fetch::verify_signature(self, (host, cancel), head).await;
                    judged.is_ok().then(|| "good".to_owned())
                }
                None => None,
            };
            let signature = ("signature", signature);
            let commit = ("commit", found.head);
            Ok(vec![("repo", found.repo), ("version", version), changes, signature, commit])
        })
    }

    fn write<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        _differing: &'a [&'static str],
    ) -> Answer<'a, Result<(), WriteFailure>> {
        Box::pin(fetch::bring(self, host, permit))
    }

    fn footprint(&self) -> Footprint {
        let path = &self.path;
        let parent = path.parent().map(|parent| Need::path(parent, "contains the tree"));
        let user = self.user.iter().filter_map(|user| Need::user(user, "owns the tree"));
        let local = self.repo.iter().filter(|repo| repo.starts_with('/'));
        let local = local.map(|repo| Need::path(repo, "is the repository"));
        let git = Need::exact(HostObject::Package("git".to_owned()), "has git");
        let watch = |path: PathBuf, below| WatchSource::Path { path, below };
        Footprint {
            claims: vec![Claim::path(path.clone())],
            provides: vec![HostObject::Path(path.clone())],
            requires: parent.into_iter().chain(user).chain(local).chain([git]).collect(),
            watch: vec![
                watch(path.clone(), true),
                watch(path.join(".git/HEAD"), false),
                watch(path.join(".git/config"), false),
            ],
            path_after_apply: PathAfter::Directory,
            removal: self.removal(),
            ..Footprint::default()
        }
    }

    fn traits(&self) -> Traits {
        let timeout = Some(self.timeout + Duration::from_mins(10));
        Traits { timeout, ..Traits::confined_command() }
    }

    fn existence(&self) -> Option<&'static str> {
        Some("version")
    }

    fn sent(&self, found: &FieldValues) -> Sent {
        let commit = found.iter().find(|(name, _)| *name == "commit");
        let commit = commit.and_then(|(_, value)| value.clone());
        let path = ("path", self.path.display().to_string());
        let all = commit.map(|it| ("commit", it)).into_iter().chain([path]);
        all.map(|(key, text)| (key, SentValue::Shown(Value::Text(text)))).collect()
    }
}
