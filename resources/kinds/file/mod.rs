//! `file`: a regular file, a directory or a link, with content, owner, group and mode; or nothing at a path.

mod apply;
mod check;
mod declare;
mod diff;
mod mode;
mod plan;

use crate::change::{Change, Outcome, Verdict};
use crate::host::Host;
use crate::permit::Permit;
use crate::resource::{Answer, Ask, Resource};
use crate::source::{Claim, Source};
use crate::spec::{FieldSpec, FieldType, Spec};
use mode::Mode;
use std::fmt;
use std::path::PathBuf;

/// The kind.
pub static SPEC: Spec = Spec {
    kind: "file",
    doc: "A file, a directory (a path that ends in /) or a link, with content, owner, group and mode; or none.",
    fields: FIELDS,
    build: declare::build,
};

const FIELDS: &[FieldSpec] = &[
    FieldSpec::new(
        "path",
        FieldType::Text,
        "Absolute path; a / at the end makes it a directory. Default: the name.",
    ),
    FieldSpec::new(
        "dirname",
        FieldType::Text,
        "Replaces the directory part of the path; ends in /.",
    ),
    FieldSpec::new(
        "basename",
        FieldType::Text,
        "Replaces the last part of the path; a / at the end makes it a directory.",
    ),
    FieldSpec::new(
        "state",
        FieldType::Text,
        "exists, absent, or undefined (hold the attributes if it is there). Default: exists.",
    ),
    FieldSpec::new(
        "content",
        FieldType::Text,
        "The whole content. Default: whatever it is; empty when created.",
    ),
    FieldSpec::new("symlink", FieldType::Text, "Makes it a symbolic link with this target."),
    FieldSpec::new(
        "owner",
        FieldType::Text,
        "Owner, by name or number. Default: as it is; ours when created.",
    ),
    FieldSpec::new(
        "group",
        FieldType::Text,
        "Group, by name or number. Default: as it is; ours when created.",
    ),
    FieldSpec::new(
        "mode",
        FieldType::Text,
        "0644 or u=rw,g=r. Default: as it is; 0644 or, for a directory, 0755 when created.",
    ),
    FieldSpec::new(
        "force",
        FieldType::Bool,
        "Something with content may go: a directory with all below it, a file that must become a directory or a link, a socket. Default: false.",
    ),
    FieldSpec::new(
        "sensitive",
        FieldType::Bool,
        "Show nothing of the content. Default: true where the mode denies others to read.",
    ),
    FieldSpec::later("source", "A file to copy from."),
    FieldSpec::later("fragments", "Files that are joined to the content."),
    FieldSpec::later("template", "A template that makes the content."),
    FieldSpec::later("recurse", "Hold all below the directory too."),
    FieldSpec::later("purge", "Remove from the directory what nobody declared."),
    FieldSpec::later("validate", "A command that must accept the new content."),
    FieldSpec::later("backup", "Keep the old content."),
    FieldSpec::later("replace", "false: create once, never change."),
];

/// A file as declared.
struct File {
    path: PathBuf,
    shape: Shape,
    owner: Option<String>,
    group: Option<String>,
    mode: Option<Mode>,
    force: bool,
    sensitive: bool,
}

/// What must be at the path.
enum Shape {
    /// A regular file; with this content, if declared.
    Regular(Option<String>),
    /// A directory.
    Directory,
    /// A link with this target.
    Link(String),
    /// Nothing.
    Absent,
    /// Whatever is there, or nothing.
    IfThere { is_directory: bool },
}

impl fmt::Debug for File {
    /// Contents may be secrets, and are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Resource for File {
    fn claims(&self) -> Vec<Claim> {
        vec![Claim::Path(self.path.clone())]
    }

    fn watch(&self) -> Vec<Source> {
        vec![Source::Path { path: self.path.clone(), below: false }]
    }

    fn check<'a>(&'a self, host: &'a Host, ask: Ask) -> Answer<'a, Verdict> {
        Box::pin(async move { self.verdict(host.files(), &ask.cancel) })
    }

    fn apply<'a>(
        &'a self,
        host: &'a Host,
        permit: &'a Permit,
        change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async move { self.make_so(host.files(), permit, change) })
    }
}
