//! Prior states: the state of a path or of a resource's values before a change, recorded for the history and
//! for undo.

use crate::failure::Failure;
use std::fmt;
use std::path::Path;

/// The state of a path before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriorState {
    /// The path did not exist.
    Nothing,
    /// The path existed.
    Thing(PriorEntry),
}

/// A file system object at a path before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriorEntry {
    /// The type and content of the object.
    pub shape: PriorShape,
    /// The permission bits, with set-id and sticky.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The access lists and other extended attributes, name and value, as far as they could be read.
    pub extended: Vec<(Vec<u8>, Vec<u8>)>,
    /// The directory that closed the object to other users, where others could give its name to another one.
    pub enclosure: Option<Enclosure>,
}

/// A directory above an object that others may not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enclosure {
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The permission bits.
    pub mode: u32,
}

/// The type of a file system object, with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriorShape {
    /// A regular file of this many bytes.
    File(u64, PriorContent),
    /// A directory; the objects in the directory have entries of their own.
    Directory,
    /// A symbolic link with this target.
    Link(Vec<u8>),
    /// A socket, fifo or device, which is not recorded.
    Other,
}

/// The content of a file.
#[derive(Clone, PartialEq, Eq)]
pub enum PriorContent {
    /// The whole content.
    Bytes(Vec<u8>),
    /// The content is not recorded, for this reason.
    NotRecorded(NotRecorded),
}

/// The reason that a content is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRecorded {
    /// The change did not alter the content.
    Same,
    /// The content is sensitive (S-6).
    Secret,
    /// The content exceeds the size limit of the history.
    Large,
    /// The content could not be read.
    Unreadable,
}

impl fmt::Debug for PriorContent {
    /// Prints the length alone, never the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::NotRecorded(why) => why.fmt(f),
        }
    }
}

/// The values of a resource that is not a path, by field; `None` stands for an absent value.
pub type FieldValues = Vec<(&'static str, Option<String>)>;

/// The field of a recorded value that names the other resource whose entry has a change of this one: several resources
/// have edited one file in one step.
pub const EDITED_TOGETHER: &str = "edited";

/// A value of a resource, before a change and after the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerValue {
    /// The name of the field: `version`, `hold`, …
    pub field: String,
    /// The value before the change; none if there was no such value.
    pub before: Option<String>,
    /// The value after the change.
    pub after: After,
}

impl FormerValue {
    /// Returns true if the change has altered the value, as far as that is known.
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
    /// The change is still running, or was cut off.
    Unknown,
    /// There is no such value.
    Absent,
    /// The new value.
    Value(String),
}

impl From<Option<String>> for After {
    fn from(value: Option<String>) -> Self {
        value.map_or(Self::Absent, Self::Value)
    }
}

/// An edit of a part of a text file, with the whole content on both sides.
#[derive(Clone, PartialEq, Eq)]
pub struct PriorEdit {
    /// The content before the edit; empty if there was no file.
    pub before: Vec<u8>,
    /// The content after the edit.
    pub after: Vec<u8>,
}

impl fmt::Debug for PriorEdit {
    /// Prints the lengths alone, never the contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {} bytes", self.before.len(), self.after.len())
    }
}

/// The loss that a change causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss<'a> {
    /// The change replaces content, a link's target or the whole object; false if the change concerns owner,
    /// group and mode alone.
    pub content: bool,
    /// The present or the new content is sensitive, so the content is not recorded.
    pub secret: bool,
    /// The object is undeclared and purged: the change goes ahead even if the history has no room.
    pub purged: bool,
    /// The new content of the file, if the change edits a part of it: an undo then restores the part alone.
    pub edited: Option<&'a [u8]>,
    /// The description of the change for people: `created`, `removed`, `content`, `mode`, …
    pub what: &'a str,
}

/// A record that a recorder has taken, and that may not be durable yet.
#[must_use]
pub struct PendingRecord {
    number: u64,
    wait: Option<Box<dyn FnOnce() -> Result<(), Failure> + Send>>,
}

impl PendingRecord {
    /// Makes a record that is durable.
    pub const fn durable(number: u64) -> Self {
        Self { number, wait: None }
    }

    /// Makes a record that is durable when `wait` has returned without a failure.
    pub fn pending(
        number: u64,
        wait: impl FnOnce() -> Result<(), Failure> + Send + 'static,
    ) -> Self {
        Self { number, wait: Some(Box::new(wait)) }
    }

    /// Returns the number of the record for [`PriorStateRecorder::settle`].
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Waits until the record is durable.
    ///
    /// # Errors
    ///
    /// An error means that the caller must not change the path.
    pub fn wait(self) -> Result<(), Failure> {
        self.wait.map_or(Ok(()), |wait| wait())
    }
}

impl fmt::Debug for PendingRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRecord").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A recorder of the prior states that one run replaces. The run's permit carries the recorder, so no kind
/// can change anything without one.
pub trait PriorStateRecorder: fmt::Debug + Send + Sync {
    /// Returns the size limit in bytes; larger files are not read for the history.
    fn largest(&self) -> u64;

    /// Records the state of a path before the next change. The record is durable on return wherever the change
    /// would lose something. The result is the record's number for [`PriorStateRecorder::settle`].
    ///
    /// # Errors
    ///
    /// An error means that the caller must not change the path.
    fn keep(&self, path: &Path, former: PriorState, losing: Loss<'_>) -> Result<u64, Failure>;

    /// Hands in the state of a path as [`PriorStateRecorder::keep`] does, without waiting: the caller prepares the
    /// change meanwhile, and waits for the record before the change.
    ///
    /// # Errors
    ///
    /// An error means that the caller must not change the path.
    fn begin_keep(
        &self,
        path: &Path,
        former: PriorState,
        losing: Loss<'_>,
    ) -> Result<PendingRecord, Failure> {
        self.keep(path, former, losing).map(PendingRecord::durable)
    }

    /// Completes the record of a path: `made` is false if the change did not happen after all.
    fn settle(&self, number: u64, made: bool);

    /// Records the values of the resource before the next change, durably. The result is the record's number for
    /// [`PriorStateRecorder::settle_values`], or 0 if the values could not be recorded. Such a failure is
    /// reported and does not stop the change: drift must be repaired even without history.
    fn keep_values(&self, before: FieldValues) -> u64;

    /// Completes the record of values; drops the record if no value has changed.
    fn settle_values(&self, number: u64, after: FieldValues);

    /// Records values that a run has produced, such as the exit code and the output of a command. They replace
    /// nothing, so an undo leaves them out.
    fn note_values(&self, values: FieldValues) {
        drop(values);
    }
}
