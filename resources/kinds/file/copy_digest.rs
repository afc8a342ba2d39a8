//! Whether what is copied is what it was: told by its state, and where that is another one, and the copy differs, by its content.

use super::equality_cache::{hash_state, is_settled};
use super::tree::Tree;
use super::{File, Shape};
use crate::copy_digest::{CopyDigest, CopyDigestSlot};
use crate::host::files::{Content, EntryStat, Fault, Files};
use rustix::fs::FileType;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// More than so many bytes are not read for it: what is so large is told by its state alone.
const READ_AT_MOST: u64 = 64 << 20;

/// A hash of many things, in whatever order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
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

    /// What is copied to there is in this state. A directory moves with what is in it, which is told apart.
    pub(super) fn add_state(&mut self, below: &Path, seen: &EntryStat) {
        if seen.kind == FileType::Directory {
            return self.add(below, "directory");
        }
        let mut hasher = DefaultHasher::new();
        hash_state(seen, &mut hasher);
        self.add(below, hasher.finish());
        self.size = self.size.saturating_add(seen.size);
        self.newest = self.newest.max(seen.changed);
    }

    /// This file is copied to there.
    pub(super) fn add_file(
        &mut self,
        below: &Path,
        content: &Content<'_>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        self.add(below, ("file", content.hash(cancel)?));
        Ok(())
    }

    /// A link with this target, or a directory, is copied to there.
    pub(super) fn add_other(&mut self, below: &Path, target: Option<&[u8]>) {
        self.add(below, ("other", target));
    }
}

impl File {
    /// Tells what is copied, of which a check has just seen this state, where it is to be kept, or tells of what sort a change is: none is known of
    /// before, or it is another state and the copy differs.
    pub(super) fn tell_copied(
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
        // What moves all the time is another one each time.
        let content = read.unwrap_or(state.hash);
        // It could still change without another time: that is not taken for the same state later.
        let state = if is_settled(state.newest) { state.hash } else { !state.hash };
        copies.tell(CopyDigest { state, content });
    }

    /// A hash of the content, if its state is still this one.
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

/// The state of all that a content is made of, in its order.
pub(super) fn state_of(content: &Content<'_>) -> Sum {
    let mut sum = Sum::default();
    for (number, origin) in content.origins().enumerate() {
        sum.add_state(Path::new(&number.to_string()), origin.seen());
    }
    sum
}
