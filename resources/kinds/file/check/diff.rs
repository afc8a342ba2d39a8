//! The display of a changed content: a bounded unified diff, and nothing for secrets (see `hidden_difference`).

use crate::change::Difference;
use crate::host::files::{Content, EntryStat, Fault, Why};
use crate::kinds::file::OldContent;
use crate::kinds::file::check::compare::{Look, Want, state};
use crate::secrets::hidden_difference::{hidden_difference, is_hidden};
use similar::TextDiff;
use std::time::Duration;

/// The size limit in bytes of a line-by-line comparison.
pub(in crate::kinds::file) const SHOWN_AT_MOST: usize = 64 * 1024;

/// The time limit of a diff; a slower diff is coarser.
const TIME: Duration = Duration::from_millis(200);

/// Makes the difference of two contents; `None` stands for a content that was too long to read.
pub(in crate::kinds::file) fn content(
    old_size: Option<u64>,
    old: Option<&[u8]>,
    (new_size, new): (u64, Option<&[u8]>),
) -> Difference {
    Difference {
        aspect: "content",
        from: old_size.map(|size| format!("{size} bytes")).unwrap_or_default(),
        to: format!("{new_size} bytes"),
        diff: old.zip(new).and_then(|(old, new)| unified(old, new)),
    }
}

/// Makes the differences of a new file with this content, as a plan shows them before the directory exists.
pub(crate) fn new_file(content: &[u8]) -> [Difference; 2] {
    let size = content.len() as u64;
    [state("absent", "file"), self::content(None, Some(b""), (size, Some(content)))]
}

/// Makes the difference of a file that another process can have open for writing: the file gets a new inode
/// with the same content.
pub(in crate::kinds::file) fn open_elsewhere() -> Difference {
    Difference {
        aspect: "inode",
        from: "other users can have the file open for writing".into(),
        to: "a new file with the same content".into(),
        diff: None,
    }
}

/// Makes the difference of a lost content that the history does not store (S-6), so that a reader of the plan
/// knows that no undo is possible.
pub(in crate::kinds::file) fn unrecorded_content() -> Difference {
    Difference {
        aspect: "content",
        from: "sensitive: not recorded, cannot be restored".into(),
        to: String::new(),
        diff: None,
    }
}

impl Look<'_> {
    pub(in crate::kinds::file) fn content_difference(
        &self,
        seen: &EntryStat,
        content: &Content<'_>,
        mode: u32,
    ) -> Result<Difference, Fault> {
        if self.is_secret(mode, Some(seen.mode)) {
            return Ok(hidden_difference("content"));
        }
        let old = if seen.size <= SHOWN_AT_MOST as u64 {
            match self.spot.content(seen, SHOWN_AT_MOST) {
                Err(fault) if matches!(fault.why, Why::Moved) => return Err(fault),
                // A file that may be written and not read is replaced all the same.
                other => other.unwrap_or_default(),
            }
        } else {
            None
        };
        let new = content.bytes(SHOWN_AT_MOST)?;
        Ok(self::content(Some(seen.size), old.as_deref(), (content.size(), new.as_deref())))
    }

    /// Returns true for a content that must not be shown: sensitive, or closed by its or its source's mode (S-19).
    /// With `sensitive: false`, only a present file with another closed mode is hidden: it can be a file that the graph
    /// does not know.
    pub(in crate::kinds::file) fn is_secret(&self, mode: u32, now: Option<u32>) -> bool {
        if self.file.rare().old_content == OldContent::Recorded {
            return is_hidden(false, now.filter(|now| *now & 0o777 != mode & 0o777));
        }
        let is_source_closed = match self.want {
            Want::Regular(Some(content)) => content.denies_others(),
            _ => false,
        };
        is_hidden(self.file.sensitive || is_source_closed, [mode].into_iter().chain(now))
    }
}

/// Returns a bounded unified diff; none if a content is too long or no plain text.
#[must_use]
pub fn unified(old: &[u8], new: &[u8]) -> Option<String> {
    if old.len() > SHOWN_AT_MOST || new.len() > SHOWN_AT_MOST {
        return None;
    }
    let (old, new) = (text(old)?, text(new)?);
    let diff = TextDiff::configure().timeout(TIME).diff_lines(old, new);
    let mut shown = diff.unified_diff().context_radius(3).to_string();
    if shown.len() > SHOWN_AT_MOST {
        let mut end = SHOWN_AT_MOST;
        while !shown.is_char_boundary(end) {
            end -= 1;
        }
        shown.truncate(end);
        shown.push_str("\n… (cut)\n");
    }
    Some(shown)
}

/// Returns the bytes as text if a terminal shows them unchanged: control characters could fake other text
/// (S-13).
fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let plain = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t' | '\r');
    text.chars().all(plain).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::SHOWN_AT_MOST;
    use crate::change::Difference;

    fn content(old_size: Option<u64>, old: Option<&[u8]>, new: &[u8]) -> Difference {
        super::content(old_size, old, (new.len() as u64, Some(new)))
    }

    #[test]
    fn a_small_text_is_shown_by_lines() {
        let shown = content(Some(4), Some(b"a\nb\n"), b"a\nc\n");
        assert_eq!(shown.diff.unwrap(), "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        assert_eq!((shown.from.as_str(), shown.to.as_str()), ("4 bytes", "4 bytes"));
    }

    /// S-13: content that could deceive through a terminal is not shown.
    #[test]
    fn binary_long_and_tricky_contents_are_not_shown() {
        assert_eq!(content(Some(1), Some(b"\xff"), b"a").diff, None);
        assert_eq!(content(Some(1), Some(b"\x1b[2J"), b"a").diff, None);
        assert_eq!(content(Some(1), Some(b"a\0"), b"a").diff, None);
        assert_eq!(content(Some(1), Some(b"a"), &vec![b'a'; SHOWN_AT_MOST + 1]).diff, None);
    }

    #[test]
    fn a_diff_is_bounded() {
        let old = "a\n".repeat(SHOWN_AT_MOST / 2);
        let new = "b\n".repeat(SHOWN_AT_MOST / 2);
        let diff = content(None, Some(old.as_bytes()), new.as_bytes()).diff.unwrap();
        assert!(diff.len() <= SHOWN_AT_MOST + 32 && diff.ends_with("(cut)\n"));
    }
}
