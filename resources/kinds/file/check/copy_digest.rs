//! Detects changed sources by their metadata, and by their content if the metadata and the copy differ.

use crate::copy_digest::{CopyDigest, CopyDigestSlot};
use crate::host::files::{Content, EntryStat, Fault, Files};
use crate::kinds::file::File;
use crate::kinds::file::Shape;
use crate::kinds::file::check::equality_cache::{hash_state, is_settled};
use crate::kinds::file::tree::walk::Tree;
use rustix::fs::FileType;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The size limit in bytes; larger sources are compared by metadata alone.
const READ_AT_MOST: u64 = 64 << 20;

/// A hash over many objects, independent of their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::kinds::file) struct Sum {
    hash: u64,
    size: u64,
    newest: (i64, i64),
}

impl Sum {
    fn add(&mut self, below: &Path, what: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (below, what).hash(&mut hasher);
        self.hash = self.hash.wrapping_add(hasher.finish());
    }

    /// Adds the state of one source. The time of change of a directory is left out, because its entries are added
    /// on their own.
    pub(in crate::kinds::file) fn add_state(&mut self, below: &Path, seen: &EntryStat) {
        if seen.kind == FileType::Directory {
            return self.add(below, "directory");
        }
        let mut hasher = DefaultHasher::new();
        hash_state(seen, &mut hasher);
        self.add(below, hasher.finish());
        self.size = self.size.saturating_add(seen.size);
        self.newest = self.newest.max(seen.changed);
    }

    /// Adds the content of a source file.
    pub(in crate::kinds::file) fn add_file(
        &mut self,
        below: &Path,
        content: &Content<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        self.add(below, ("file", content.hash(cancel)?));
        Ok(())
    }

    /// Adds a link with its target, or a directory.
    pub(in crate::kinds::file) fn add_other(&mut self, below: &Path, target: Option<&[u8]>) {
        self.add(below, ("other", target));
    }
}

impl File {
    /// Reports the digest of the copied sources to the slot if the digest matters: no earlier digest is known, or
    /// the metadata has changed and the copy differs.
    pub(in crate::kinds::file) fn report_copy_digest(
        &self,
        files: &Files,
        (copies, state): (&CopyDigestSlot, Sum),
        (differs, cancel): (bool, &CancellationToken),
    ) {
        let matters = copies.before().is_none_or(|before| differs && before != state.hash);
        if !matters || self.copied().is_empty() {
            return;
        }
        let read = if state.size > READ_AT_MOST {
            None
        } else {
            self.hash_copied(files, state, cancel).unwrap_or_default()
        };
        // A source that changes all the time counts as changed each time.
        let content = read.unwrap_or(state.hash);
        // A recent source could still change within the same timestamp, so a later check must not take its state
        // as equal.
        let state = if is_settled(state.newest) { state.hash } else { !state.hash };
        copies.report(CopyDigest { state, content });
    }

    /// Returns the hash of the content; none if the state has changed meanwhile.
    fn hash_copied(
        &self,
        files: &Files,
        state: Sum,
        cancel: &CancellationToken,
    ) -> Result<Option<u64>, Fault> {
        if let Shape::Directory(_) = self.shape {
            let (now, sum) = Tree::new(self, files, cancel, None).read()?;
            return Ok((now == state).then_some(sum.hash));
        }
        let Some(content) = self.content(files)? else { return Ok(None) };
        let hash = content.hash(cancel)?;
        Ok((state_of(&content) == state).then_some(hash))
    }
}

/// Returns the state of all sources of a content, in their order.
pub(in crate::kinds::file) fn state_of(content: &Content<'_>) -> Sum {
    let mut sum = Sum::default();
    for (number, origin) in content.origins().enumerate() {
        sum.add_state(Path::new(&number.to_string()), origin.seen());
    }
    sum
}
