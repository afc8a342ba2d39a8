//! A history in memory.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use steadfast_resources::{
    Failure, FieldValues, Loss, PriorContent, PriorShape, PriorState, PriorStateRecorder,
};

/// A recorder that remembers the prior states.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<(PathBuf, PriorState, bool)>>);

impl Recorder {
    /// Returns the former contents of a path; none for a content that was not recorded or did not exist.
    pub(crate) fn contents(&self, path: &Path) -> Vec<Option<Vec<u8>>> {
        let all = self.0.lock().expect("sound");
        let own = all.iter().filter(|(own, ..)| own == path);
        own.map(|(_, state, is_secret)| match state {
            PriorState::Thing(entry) => match &entry.shape {
                PriorShape::File(_, PriorContent::Bytes(bytes)) => {
                    assert!(!is_secret, "a secret content is not passed to the history");
                    Some(bytes.clone())
                }
                _ => None,
            },
            PriorState::Nothing => None,
        })
        .collect()
    }
}

impl PriorStateRecorder for Recorder {
    fn largest(&self) -> u64 {
        1 << 20
    }

    fn keep(&self, path: &Path, former: PriorState, losing: Loss<'_>) -> Result<u64, Failure> {
        let mut all = self.0.lock().expect("sound");
        all.push((path.to_owned(), former, losing.secret));
        Ok(all.len() as u64)
    }

    fn settle(&self, _number: u64, _made: bool) {}

    fn keep_values(&self, _before: FieldValues) -> u64 {
        0
    }

    fn settle_values(&self, _number: u64, _after: FieldValues) {}
}
