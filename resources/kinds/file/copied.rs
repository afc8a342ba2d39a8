//! Whether what is copied is what it was: told by its state, and where that is another one by its content.

use super::known::hash_state;
use super::tree::Tree;
use super::{File, Shape};
use crate::copied::{Copied, Copies};
use crate::host::files::{Content, Fault, Files, Seen};
use rustix::fs::FileType;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// A hash of many things, in whatever order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum(u64);

impl Sum {
    fn add(&mut self, below: &Path, what: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (below, what).hash(&mut hasher);
        self.0 = self.0.wrapping_add(hasher.finish());
    }

    /// What is copied to there is in this state. A directory moves with what is in it, which is told apart.
    pub(super) fn add_state(&mut self, below: &Path, seen: &Seen) {
        if seen.kind == FileType::Directory {
            self.add(below, "directory");
        } else {
            let mut hasher = DefaultHasher::new();
            hash_state(seen, &mut hasher);
            self.add(below, hasher.finish());
        }
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
    /// Tells what is copied, of which a check has just seen this state. What moves meanwhile is told by the next one.
    pub(super) fn tell_copied(
        &self,
        files: &Files,
        (copies, state): (&Copies, Sum),
        cancel: &CancellationToken,
    ) {
        let content = match copies.before() {
            Some(before) if before.state == state.0 => Some(before.content),
            _ => self.hash_copied(files, state, cancel).ok().flatten(),
        };
        if let Some(content) = content {
            copies.tell(Copied { state: state.0, content });
        }
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
            return Ok((now == state).then_some(sum.0));
        }
        let Some(content) = self.content(files)? else { return Ok(None) };
        let hash = content.hash(cancel)?;
        Ok((state_of(&content) == state).then_some(hash))
    }

    /// Whether anything is copied.
    pub(super) fn is_copy(&self) -> bool {
        !self.copied().is_empty()
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
