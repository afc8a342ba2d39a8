//! The values that a file sends: its hash, size, owner, group and mode.

use super::{File, Shape};
use crate::failure::Failure;
use crate::fields::field_spec::FieldType;
use crate::host::files::Files;
use crate::parts::file_values::{HASH, read_file_values};
use crate::values::sent_values::{SendSpec, Sent};
use tokio_util::sync::CancellationToken;

/// The declarations of the values.
pub(super) const SENDS: &[SendSpec] = &[
    HASH,
    SendSpec::new("size", FieldType::Int, "The size of a regular file in bytes."),
    SendSpec::new("owner", FieldType::Text, "The owner, by name where there is one."),
    SendSpec::new("group", FieldType::Text, "The group, by name where there is one."),
    SendSpec::new("mode", FieldType::Text, "The octal mode, as 0644."),
];

impl File {
    /// Returns true if the resource can send the value. The hash of a private file would tell its content.
    pub(super) fn can_send(&self, key: &str) -> bool {
        match (&self.shape, key) {
            (Shape::Absent, _) => false,
            (Shape::Regular(_), "hash") => !self.sensitive,
            (Shape::Directory(_) | Shape::Link(_), "hash" | "size") => false,
            _ => true,
        }
    }

    /// Reads the values from the host.
    pub(super) fn read_values(
        &self,
        files: &Files,
        cancel: &CancellationToken,
    ) -> Result<Sent, Failure> {
        read_file_values(files, &self.path, self.sensitive, cancel)
            .map_err(|fault| files.failure(fault, &self.path))
    }
}
