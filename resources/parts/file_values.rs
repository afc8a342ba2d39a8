//! The values that kinds with a file of their own send: its hash, size, owner, group and mode.

use crate::fields::field_spec::FieldType;
use crate::fields::field_values::Value;
use crate::host::files::{
    AccountKind, Content, Fault, Files, LARGEST_OF_OTHERS, account_name, denies_others,
};

use crate::values::sent_values::{SendSpec, Sent, SentValue};
use rustix::fs::FileType;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The declaration of the hash.
pub(crate) const HASH: SendSpec = SendSpec::new(
    "hash",
    FieldType::Text,
    "The SHA-256 of a regular file of at most 1 GiB that others may read, as sha256:….",
);

/// Writes a mode as the loader reads it: octal, with a leading zero and at least four digits.
pub(crate) fn octal_mode(mode: u32) -> String {
    format!("0{:03o}", mode & 0o7777)
}

/// Reads the values from the host; no values if there is no object. The hash of a private file would tell its content.
///
/// # Errors
///
/// Fails if the file cannot be read, and on a cancellation.
pub(crate) fn read_file_values(
    files: &Files,
    path: &Path,
    is_sensitive: bool,
    cancel: &CancellationToken,
) -> Result<Sent, Fault> {
    let mut sent = Sent::new();
    let Some(spot) = files.open_entry(path)? else { return Ok(sent) };
    let Some(seen) = spot.look()? else { return Ok(sent) };
    let text = |text: String| SentValue::Shown(Value::Text(text));
    sent.push(("owner", text(account_name(AccountKind::User, seen.uid))));
    sent.push(("group", text(account_name(AccountKind::Group, seen.gid))));
    sent.push(("mode", text(octal_mode(seen.mode))));
    if seen.kind == FileType::RegularFile {
        let size = i64::try_from(seen.size).unwrap_or(i64::MAX);
        sent.push(("size", SentValue::Shown(Value::Int(size))));
        if !is_sensitive && !denies_others(seen.mode) && seen.size <= LARGEST_OF_OTHERS {
            let mut content = Content::default();
            content.push(files.origin_at(&spot, &seen)?);
            sent.push(("hash", text(format!("sha256:{}", content.sha256(cancel)?))));
        }
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::octal_mode;

    #[test]
    fn a_mode_has_a_leading_zero() {
        for (mode, text) in [
            (0o644, "0644"),
            (0o100_755, "0755"),
            (0o4755, "04755"),
            (0o1777, "01777"),
            (0, "0000"),
        ] {
            assert_eq!(octal_mode(mode), text);
        }
    }
}
