//! What was at a path before a change, and who keeps it: so that it can be looked at and put back.

use crate::failure::Failure;
use std::fmt;
use std::path::Path;

/// What was at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriorState {
    /// Nothing.
    Nothing,
    /// A thing.
    Thing(PriorEntry),
}

/// A thing, with what was to be known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorEntry {
    /// What it was.
    pub shape: PriorShape,
    /// Its permission bits, with set-id and sticky.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its access lists and other extended attributes, name and value, as far as they could be read.
    pub extended: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What a thing was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriorShape {
    /// A regular file of so many bytes.
    File(u64, PriorContent),
    /// A directory. What was in it has entries of its own.
    Directory,
    /// A link with this target.
    Link(Vec<u8>),
    /// A socket, fifo or device, which is not kept.
    Other,
}

/// The content of a file.
#[derive(Clone, PartialEq, Eq)]
pub enum PriorContent {
    /// All of it.
    Bytes(Vec<u8>),
    /// It is not here, because of this.
    Unkept(NotRecorded),
}

/// Why a content is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRecorded {
    /// The change left it as it was.
    Same,
    /// It is sensitive (S-6).
    Secret,
    /// It is larger than what is kept.
    Large,
    /// It could not be read.
    Unreadable,
}

impl fmt::Debug for PriorContent {
    /// Contents are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Unkept(why) => why.fmt(f),
        }
    }
}

/// Values of a resource that is no path, by field; none: there is no such value.
pub type FieldValues = Vec<(&'static str, Option<String>)>;

/// A value of a resource, before a change and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerValue {
    /// Its field: `version`, `hold`, …
    pub field: String,
    /// None: there was no such value.
    pub before: Option<String>,
    /// The value after the change.
    pub after: After,
}

impl FormerValue {
    /// Tells whether the change has moved it, as far as that is known.
    #[must_use]
    pub fn is_moved(&self) -> bool {
        match &self.after {
            After::Unknown => true,
            After::Absent => self.before.is_some(),
            After::Value(after) => self.before.as_ref() != Some(after),
        }
    }
}

/// A value after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// The change goes on, or was cut off.
    Unknown,
    /// There is no such value.
    Absent,
    /// This.
    Value(String),
}

impl From<Option<String>> for After {
    fn from(value: Option<String>) -> Self {
        value.map_or(Self::Absent, Self::Value)
    }
}

/// What a change takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss<'a> {
    /// Content, a link's target, the thing itself; else owner, group and mode alone.
    pub content: bool,
    /// The content that is there, or comes, is sensitive: it is not kept.
    pub secret: bool,
    /// It is purged: nobody declared it, and it goes whether the history has room for it or not.
    pub purged: bool,
    /// What changes, for people: `created`, `removed`, `content`, `mode`, …
    pub what: &'a str,
}

/// Keeps what one run takes away. It comes with the permit of that run, so a kind that may change something can never be without it.
pub trait PriorStateRecorder: fmt::Debug + Send + Sync {
    /// Files larger than this are not read for it.
    fn largest(&self) -> u64;

    /// Keeps what is at a path and will be changed next; durable when it returns, where anything would be lost otherwise. A refusal
    /// means: do not change it. The answer is for [`PriorStateRecorder::settle`].
    fn keep(&self, path: &Path, former: PriorState, losing: Loss<'_>) -> Result<u64, Failure>;

    /// That change was made, at least in part; or it was not made after all.
    fn settle(&self, number: u64, made: bool);

    /// Keeps values of the resource that may be changed next; durable when it returns. The answer is for [`PriorStateRecorder::settle_values`]; it is 0
    /// where they cannot be kept, which is told: what they were is no reason to leave a host as it should not be.
    fn keep_values(&self, before: FieldValues) -> u64;

    /// The values after that change: where none has moved, nothing is kept of it.
    fn settle_values(&self, number: u64, after: FieldValues);
}
