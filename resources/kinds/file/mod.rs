//! `file`: a regular file, a directory or a link, with content, owner, group and mode; or no object at a
//! path.
//!
//! The kind must never follow a link that another user could exchange, and must not show or store sensitive
//! content.
//!
//! Reading order: `declare/` (the fields), `check/` (one object is compared, and a plan made), `tree/` (everything
//! below a directory), `apply/` (the plan is carried out), `sent.rs` (the values for other
//! resources), `extended/` (access lists, extended attributes, capabilities), `hard_link.rs`.

mod apply;
mod check;
mod declare;
mod extended;
mod hard_link;
mod sent;
mod tree;

use crate::change::{Change, CheckResult, Outcome};
use crate::check_request::{Answer, CheckRequest};
use crate::claim::Claim;
use crate::dependency::HostObject;
use crate::failure::Failure;
use crate::fields::field_spec::Receives;
use crate::fields::field_spec::{
    FieldMode, FieldRole, FieldSpec, FieldType, ForeignValue, Interpreter,
};
use crate::fields::field_values::{Invalid, Value};
use crate::footprint::Footprint;
use crate::footprint::{ClosedDirectory, PathAfter};
use crate::host::Host;
use crate::host::files::denies_others;
use crate::kind::KindSpec;
use crate::parts::edit_fields::VALIDATE_PARTS;
use crate::parts::validate_command::ValidateCommand;
use crate::permit::Permit;
use crate::removal::Removal;
use crate::resource::Resource;
use crate::values::sent_values::Sent;
use crate::watch_source::WatchSource;
pub(crate) use apply::validate::Validation;
pub(crate) use check::diff::new_file;
pub use check::diff::unified;
use check::equality_cache::Known;
use declare::content::{Body, SECRET};
use declare::exceptions::{Claims, Pattern};
use declare::mode::Mode;
pub(crate) use declare::mode::mode_after;
pub(crate) use extended::inspect_extended;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The declaration of the kind.
pub static SPEC: KindSpec = KindSpec {
    kind: "file",
    collectible: true,
    doc: "Manages a file, a directory (a path with a trailing /) or a link with content, owner, group and mode.",
    fields: FIELDS,
    sends: sent::SENDS,
    example: "file:\n  - name: /etc/motd\n    content: welcome\n    mode: 0644\n",
    restore: Some(extended::restore),
    build: declare::fields::build,
};

const FIELDS: &[FieldSpec] = &[
    FieldSpec::new(
        "path",
        FieldType::Text,
        "Absolute path; a trailing / means a directory. Default: the name.",
    ).foreign(ForeignValue::BelowFolder).role(FieldRole::Path).mode(FieldMode::Static),
    FieldSpec::new(
        "dirname",
        FieldType::Text,
        "Replaces the directory part of the path; must end in /.",
    ).mode(FieldMode::Static),
    FieldSpec::new(
        "basename",
        FieldType::Text,
        "Replaces the last part of the path; a trailing / means a directory.",
    ).mode(FieldMode::Static),
    FieldSpec::new(
        "state",
        FieldType::Choice(&["exists", "absent", "undefined"]),
        "exists, absent, or undefined (manage the attributes of an existing object). Default: exists.",
    ).known_at_load(),
    FieldSpec::new(
        "content",
        FieldType::Text,
        "Complete content. Default: unchanged; empty when created.",
    ).foreign(ForeignValue::AtOwnPlace).role(FieldRole::Template).mode(FieldMode::Literal(Interpreter::None))
    .receives(Receives::Seals),
    FieldSpec::new("symlink", FieldType::Text, "Creates a symbolic link to this target.").mode(FieldMode::Value).receives(Receives::Shown).example("/srv/current"),
    FieldSpec::new(
        "owner",
        FieldType::Text,
        "Owner, by name or number. Default: unchanged; the daemon's user when created, or when sensitive content replaces a file of another user. A file with declared content gets a new inode when its owner changes; without content, a process with the file open can still write it.",
    ).mode(FieldMode::Value).receives(Receives::Shown).example("root"),
    FieldSpec::new(
        "group",
        FieldType::Text,
        "Group, by name or number. Default: unchanged; the daemon's group when created, and when another user's object gets a new owner.",
    ).mode(FieldMode::Value).receives(Receives::Shown).example("root"),
    FieldSpec::new(
        "mode",
        FieldType::Text,
        "Mode, 0644 or u=rw,g=r. Default: unchanged; when created 0644, for a directory 0755. Sensitive or secret content without a mode gets 0600, even if the existing file has a wider mode. Set-id bits are dropped on a change of owner unless the mode names them. With `recurse`, set-id bits go to directories only.",
    ).mode(FieldMode::Value).receives(Receives::Shown).example("0644"),
    FieldSpec::new(
        "force",
        FieldType::Bool,
        "Allows the loss of content: a directory with its content, a file that must become a directory or a link, a socket. Allows a change of owner or rights, or a copy for the declared owner, of an object that other users can have moved there: a directory that is not empty, a socket, or an object readable only by its owner. An inaccessible directory that other users can have moved there is never removed. Default: false.",
    ).receives(Receives::Shown),
    FieldSpec::new(
        "sensitive",
        FieldType::Bool,
        "Hides the content; without a mode the file gets 0600. Default: true if the mode denies others to read. false: the history records the content and diffs show it, whatever the mode is; a present file with another mode that denies others stays hidden.",
    ).receives(Receives::Shown),
    FieldSpec::new(
        "source",
        FieldType::Text,
        "File to copy, relative to the graph file; a trailing / means a directory and needs recurse. A new file gets the mode of its source, at most 0755. For root: only root and the declared owner may be able to change the source.",
    ).relative().mode(FieldMode::Value),
    FieldSpec::new(
        "fragments",
        FieldType::Texts,
        "Files concatenated to the content, in this order, relative to the graph file; a directory adds its files sorted by name, without hidden ones. For root: as for source.",
    ).relative().mode(FieldMode::Value),
    FieldSpec::new(
        "recurse",
        FieldType::Bool,
        "With source: copies the whole tree, links as links; otherwise applies owner, group and mode below the directory too; open files stay open. A mode like 0640 gives directories x where it gives r. A declared path below is left to its own resource, with everything in it. Default: false.",
    ).receives(Receives::Shown),
    FieldSpec::new(
        "purge",
        FieldType::Bool,
        "Removes files and links in the directory that neither the source nor another resource declares; with recurse at any depth, including directories. Never removes mount points; sockets and devices only with force. Default: false.",
    ).receives(Receives::Shown),
    FieldSpec::new(
        "excludes",
        FieldType::Texts,
        "Names (*.log) or paths (cache/*) below the directory to ignore: not copied, changed or removed.",
    ).mode(FieldMode::Value).receives(Receives::Shown),
    FieldSpec::new(
        "validate",
        FieldType::Texts,
        "Command that must accept the new content first, as a string or a list: visudo -cf %s. %s is the path of the staged file. Timeout: one minute. In place: {args: [nginx, -t], in_place: true}.",
    ).mode(FieldMode::Argv("")).receives(Receives::Shown).parts(VALIDATE_PARTS),
    FieldSpec::new(
        "in_place",
        FieldType::Bool,
        "Runs validate in a private mount namespace in which the new content stands at its final path; %s is that path then, and may be omitted. One run without %s judges all changed files of the graph with the same command together, at most 32. Needs root, and directories that no other user can change. Default: false.",
    ).receives(Receives::Shown),
    FieldSpec::new(
        "hardlink",
        FieldType::Text,
        "Makes the path another name of this regular file, on the same file system. Content and attributes belong to that file. force: true replaces another file.",
    ).mode(FieldMode::Static).example("/srv/first/name"),
    FieldSpec::new(
        "acl",
        FieldType::Texts,
        "Access list: all entries with accounts, as user:www-data:r-x, and for new entries of a directory default:user:www-data:r-x. With a declared mode, its group bits bound these rights; otherwise the mask follows the entries. An empty list removes all. Default: unchanged.",
    ).mode(FieldMode::Value).example("user:www-data:r-x").receives(Receives::Shown),
    FieldSpec::new(
        "xattrs",
        FieldType::TextMap,
        "Extended attributes by name, as user.origin: web. An empty value removes the attribute; others are unchanged.",
    ).mode(FieldMode::Value).receives(Receives::Shown),
    FieldSpec::new(
        "capabilities",
        FieldType::Text,
        "Capabilities of a program, as cap_net_bind_service=ep, or none. Default: unchanged; a new content has none.",
    ).mode(FieldMode::Value).example("cap_net_bind_service=ep").receives(Receives::Shown),
    FieldSpec::new(
        "backup",
        FieldType::Text,
        "Absolute directory for a copy of each replaced or removed file (except files removed with a directory by force): the last 10 of each path, mode 0600. A file larger than max_file of the history (10 MiB) is not replaced.",
    ).mode(FieldMode::Value),
    FieldSpec::new(
        "replace",
        FieldType::Bool,
        "false: write the content once and never replace it; owner, group and mode stay managed. Default: true.",
    ).receives(Receives::Shown),
];

/// A file as declared.
#[derive(Clone)]
struct File {
    path: PathBuf,
    shape: Shape,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<Mode>,
    force: bool,
    sensitive: bool,
    /// An access list is declared: a new directory inherits none.
    is_listed: bool,
    /// The rarely used fields; none if the declaration has none of them.
    rare: Option<Arc<RareFields>>,
}

/// The policy for storing a replaced or removed content in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OldContent {
    /// The history stores the content unless the mode denies others to read it.
    AsModeSays,
    /// The history stores the content, because the graph says `sensitive: false`.
    Recorded,
}

/// The rarely used fields of a file.
#[derive(Clone)]
struct RareFields {
    recurse: bool,
    purge: bool,
    excludes: Vec<Pattern>,
    validate: ValidateCommand,
    backup: Option<PathBuf>,
    replace: bool,
    old_content: OldContent,
    claims: Claims,
    /// The innermost declared directory above that is closed to other users.
    below: Option<ClosedDirectory>,
    warnings: Vec<Invalid>,
    /// The cache of equal contents, which need not be read again.
    known: Option<Arc<Known>>,
}

impl RareFields {
    const NOTHING: Self = Self {
        recurse: false,
        purge: false,
        excludes: Vec::new(),
        validate: ValidateCommand::NONE,
        backup: None,
        replace: true,
        old_content: OldContent::AsModeSays,
        claims: Claims::NONE,
        below: None,
        warnings: Vec::new(),
        known: None,
    };
}

static NOTHING_RARE: RareFields = RareFields::NOTHING;

/// The object that must be at the path.
#[derive(Clone)]
enum Shape {
    /// A regular file, with this content if declared.
    Regular(Body),
    /// A directory, with the contents of this source directory if declared.
    Directory(Option<PathBuf>),
    /// A symbolic link with this target.
    Link(String),
    /// No object.
    Absent,
    /// Any object, or none.
    IfThere { is_directory: bool },
}

impl File {
    fn rare(&self) -> &RareFields {
        self.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }

    /// Returns the watch source of the path, or of the whole tree if the resource manages the tree.
    fn own_source(&self) -> WatchSource {
        let path = self.path.clone();
        if self.rare().recurse {
            return WatchSource::Tree(path);
        }
        WatchSource::Path { path, below: self.rare().purge }
    }
}

impl fmt::Debug for File {
    /// Prints the path alone: contents may be secrets and are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("path", &self.path).finish_non_exhaustive()
    }
}

impl File {
    /// Returns true if the resource makes its object exist, with all its bytes.
    fn creates(&self) -> bool {
        !matches!(self.shape, Shape::Absent | Shape::IfThere { .. })
    }

    /// Returns the claims: the object at the path, and its bytes if the declaration determines them.
    fn claimed(&self) -> Vec<Claim> {
        let path = Claim::path(self.path.clone()).creating(self.creates());
        let content = HostObject::Content(self.path.clone());
        let writes_bytes = match &self.shape {
            Shape::Regular(body) => !matches!(body, Body::Any) && self.rare().replace,
            Shape::Link(_) | Shape::Absent => true,
            Shape::Directory(_) | Shape::IfThere { .. } => false,
        };
        let content = writes_bytes.then(|| Claim::exclusive(content).creating(self.creates()));
        std::iter::once(path).chain(content).collect()
    }

    /// Returns the fields that remove the object. A directory is removed only if it is empty, unless `force`
    /// allows the loss of its contents.
    fn removal(&self) -> Option<Removal> {
        if !self.creates() {
            return None;
        }
        let text = |text: &str| Value::Text(text.to_owned());
        let absent = Removal::new().with("path", text(self.path.to_str()?));
        let absent = absent.with("state", text("absent"));
        let absent = if self.force { absent.with_data("force", Value::Bool(true)) } else { absent };
        Some(match self.rare().backup.as_ref().and_then(|path| path.to_str()) {
            Some(backup) => absent.with_data("backup", text(backup)),
            None => absent,
        })
    }

    fn path_after_apply(&self) -> PathAfter {
        match &self.shape {
            Shape::Absent => PathAfter::Nothing,
            Shape::Directory(_) => PathAfter::Directory,
            Shape::Link(target) => PathAfter::Link(target.into()),
            Shape::Regular(_) => PathAfter::File,
            Shape::IfThere { .. } => PathAfter::Other,
        }
    }

    /// Returns the directory that the resource closes to other users.
    fn closed_directory(&self) -> Option<ClosedDirectory> {
        let closes = matches!(self.shape, Shape::Directory(_))
            && self.mode.as_ref().is_some_and(Mode::is_exact)
            && self.mode_over(0, true) & 0o001 == 0;
        closes.then(|| ClosedDirectory { path: self.path.clone(), owner: self.owner.clone() })
    }

    fn watched(&self) -> Vec<WatchSource> {
        let mut sources = vec![self.own_source()];
        let alone = |path: &PathBuf| WatchSource::Path { path: path.clone(), below: false };
        match &self.shape {
            Shape::Regular(Body::Source(path)) => sources.push(alone(path)),
            Shape::Regular(Body::Fragments(paths)) => {
                let each = |path: &PathBuf| WatchSource::Path { path: path.clone(), below: true };
                sources.extend(paths.iter().map(each));
            }
            Shape::Directory(Some(path)) => sources.push(WatchSource::Tree(path.clone())),
            Shape::Regular(_)
            | Shape::Directory(None)
            | Shape::Link(_)
            | Shape::Absent
            | Shape::IfThere { .. } => {}
        }
        sources
    }
}

impl Resource for File {
    fn footprint(&self) -> Footprint {
        Footprint {
            claims: self.claimed(),
            provides: self.tokens(),
            requires: self.needed(),
            watch: self.watched(),
            guard_watches: Vec::new(),
            reads: self.copied().to_vec(),
            trusts: self.trusted(),
            purge_root: self.holds_below().then(|| self.path.clone()),
            spares_below: None,
            closed_directory: self.closed_directory(),
            file_owner: self.owner.clone().filter(|_| self.path_after_apply() == PathAfter::File),
            path_after_apply: self.path_after_apply(),
            removal: self.removal(),
            warnings: self.rare().warnings.clone(),
            grouping: self.grouping(),
            uses_only_files: true,
        }
    }

    /// Warns if a declared mode lets other users read a secret content.
    fn doubts_of_secret(&self, field: &str) -> Option<Invalid> {
        let mode = self.mode.as_ref()?.over(SECRET, false);
        let is_read = field == "content" && !denies_others(mode);
        let what = "the secret in the file is readable by others";
        let hint = "set mode: 0600, or 0640 and a group";
        is_read.then(|| Invalid::field("mode", what).hint(hint))
    }

    fn with_claims(&self, claimed: Vec<PathBuf>) -> Option<Arc<dyn Resource>> {
        let rare = RareFields { claims: Claims::new(claimed), ..self.rare().clone() };
        Some(Arc::new(Self { rare: Some(Arc::new(rare)), ..self.clone() }))
    }

    fn with_closed_directory(&self, directory: ClosedDirectory) -> Option<Arc<dyn Resource>> {
        let rare = RareFields { below: Some(directory), ..self.rare().clone() };
        Some(Arc::new(Self { rare: Some(Arc::new(rare)), ..self.clone() }))
    }

    fn sends_key(&self, key: &str) -> bool {
        self.can_send(key)
    }

    fn read_sent<'a>(
        &'a self,
        host: &'a Host,
        cancel: &'a CancellationToken,
    ) -> Option<Answer<'a, Result<Sent, Failure>>> {
        Some(Box::pin(async move { self.read_values(host.files(), cancel) }))
    }

    fn check<'a>(&'a self, host: &'a Host, ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async move { self.verdict(host.files(), &ask) })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move { self.make_so(host, permit, change) })
    }
}
