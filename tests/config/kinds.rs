//! The kinds of these tests: `file` has fields of every type and rejects some values, `noop` has no fields.

use std::path::PathBuf;
use std::sync::Arc;
use steadfast_resources::{
    Answer, Change, CheckRequest, CheckResult, Claim, ClosedDirectory, FieldRole, FieldSpec,
    FieldType, Fields, Footprint, Host, Invalid, KindSpec, Outcome, Permit, Place, Resource,
};

pub(crate) static KINDS: &[&KindSpec] = &[&FILE, &EXEC, &NOOP];

static NOOP: KindSpec = KindSpec {
    kind: "noop",
    collectible: false,
    doc: "nothing",
    fields: &[],
    sends: &[],
    example: "",
    restore: None,
    build,
};

static EXEC: KindSpec = KindSpec {
    kind: "exec",
    collectible: false,
    doc: "a command",
    fields: &[
        FieldSpec::new("cmd", FieldType::Text, "").role(FieldRole::Command { arguments: "args" }),
        FieldSpec::new("args", FieldType::Texts, ""),
        FieldSpec::new("env", FieldType::TextMap, ""),
        FieldSpec::new("timeout", FieldType::Int, ""),
        FieldSpec::ignored("pollint", "commands are watched, never polled"),
        FieldSpec::ignored("state", "an exec has no state"),
    ],
    sends: &[],
    example: "",
    restore: None,
    build,
};

static FILE: KindSpec = KindSpec {
    kind: "file",
    collectible: false,
    doc: "a file",
    fields: &[
        FieldSpec::new("path", FieldType::Text, "").role(FieldRole::Path),
        FieldSpec::new("content", FieldType::Text, "").role(FieldRole::Template),
        FieldSpec::new("source", FieldType::Text, "").relative(),
        FieldSpec::new("state", FieldType::Text, ""),
        FieldSpec::new("mode", FieldType::Text, ""),
        FieldSpec::new("owner", FieldType::Text, ""),
        FieldSpec::new("group", FieldType::Text, ""),
        FieldSpec::new("force", FieldType::Bool, ""),
        FieldSpec::new("size", FieldType::Int, ""),
        FieldSpec::new("ratio", FieldType::Float, ""),
        FieldSpec::later("recurse", ""),
    ],
    sends: &[],
    example: "",
    restore: None,
    build,
};

/// A resource that only stores its fields.
#[derive(Debug)]
pub(crate) struct Remembered {
    fields: Fields,
    path: Option<PathBuf>,
    is_closed: bool,
    /// The closed directory above that the loader passed to the resource.
    #[expect(dead_code, reason = "tests read the debug output")]
    below: Option<ClosedDirectory>,
}

fn build(name: &str, mut fields: Fields, place: &Place) -> Result<Arc<dyn Resource>, Vec<Invalid>> {
    assert!(place.base.is_absolute());
    let kept = fields.clone();
    let mut wrong = Vec::new();
    let path = fields.text("path").or_else(|| name.starts_with('/').then(|| name.to_owned()));
    if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
        wrong.push(
            Invalid::field("path", "expected an absolute path").hint("start the path with /"),
        );
    }
    if fields.text("mode").is_some_and(|mode| !mode.starts_with('0')) {
        wrong.push(Invalid::field("mode", "expected a leading zero").hint("write 0644"));
    }
    if wrong.is_empty() {
        let is_directory = path.as_ref().is_some_and(|path| path.ends_with('/'));
        let is_closed = is_directory && kept.clone().text("mode").is_some_and(|it| it == "0700");
        let path = path.map(PathBuf::from);
        Ok(Arc::new(Remembered { fields: kept, path, is_closed, below: None }))
    } else {
        Err(wrong)
    }
}

impl Resource for Remembered {
    fn footprint(&self) -> Footprint {
        let claims = self.path.clone().map(Claim::path).into_iter().collect();
        let path = self.path.clone().filter(|_| self.is_closed);
        let owner = self.fields.clone().text("owner");
        let closed_directory = path.map(|path| ClosedDirectory { path, owner });
        Footprint { claims, closed_directory, ..Footprint::default() }
    }

    fn with_closed_directory(&self, directory: ClosedDirectory) -> Option<Arc<dyn Resource>> {
        let (fields, path) = (self.fields.clone(), self.path.clone());
        let below = Some(directory);
        Some(Arc::new(Self { fields, path, is_closed: self.is_closed, below }))
    }

    fn check<'a>(&'a self, _: &'a Host, _: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async { CheckResult::Same })
    }

    fn apply<'a>(&'a self, _: &'a Host, _: &'a Permit, _: Change) -> Answer<'a, Outcome> {
        Box::pin(async { Outcome::Unchanged })
    }
}
