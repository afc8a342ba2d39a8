//! The values that a file sends: its hash, size, owner, group and mode.

use super::{File, Shape};
use crate::failure::Failure;
use crate::host::files::{AccountKind, Content, Fault, Files, account_name, denies_others};
use crate::kind::{FieldType, Value};
use crate::parts::checksum::LARGEST;
use crate::values::{SendSpec, Sent, SentValue};
use rustix::fs::FileType;
use tokio_util::sync::CancellationToken;

/// The declarations of the values.
pub(super) const SENDS: &[SendSpec] = &[
    SendSpec::new(
        "hash",
        FieldType::Text,
        "The SHA-256 of a regular file of at most 1 GiB that others may read, as sha256:….",
    ),
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
        let read = || -> Result<Sent, Fault> {
            let mut sent = Sent::new();
            let Some(spot) = files.open_entry(&self.path)? else { return Ok(sent) };
            let Some(seen) = spot.look()? else { return Ok(sent) };
            let text = |text: String| SentValue::Shown(Value::Text(text));
            sent.push(("owner", text(account_name(AccountKind::User, seen.uid))));
            sent.push(("group", text(account_name(AccountKind::Group, seen.gid))));
            sent.push(("mode", text(format!("{:04o}", seen.mode))));
            if seen.kind == FileType::RegularFile {
                let size = i64::try_from(seen.size).unwrap_or(i64::MAX);
                sent.push(("size", SentValue::Shown(Value::Int(size))));
                if !self.sensitive && !denies_others(seen.mode) && seen.size <= LARGEST {
                    let mut content = Content::default();
                    content.push(files.origin_at(&spot, &seen)?);
                    sent.push(("hash", text(format!("sha256:{}", content.sha256(cancel)?))));
                }
            }
            Ok(sent)
        };
        read().map_err(|fault| files.trouble(fault, &self.path))
    }
}
