//! The last accepted graph in memory: a restarted driver receives it again, even if its files have changed, or the
//! state directory is gone.

use super::{ReloadRequest, lock};
use crate::compression;
use crate::config::{self, LoadedGraph, Options, Text};
use std::sync::{Arc, MutexGuard};

/// The last accepted graph.
#[derive(Clone, Debug, Default)]
pub(super) enum LatestGraph {
    /// No graph was accepted yet.
    #[default]
    Nothing,
    /// The number and the texts of the graph.
    Here(u64, Arc<[Text]>),
    /// The number and the compressed texts, with their size before, of a graph that is stored in the state directory
    /// too.
    Packed(u64, (Arc<[u8]>, u64)),
}

impl LatestGraph {
    /// Compresses the texts of a graph.
    pub(super) fn pack(number: u64, texts: &[Text]) -> Self {
        let pack = |json: Vec<u8>| Some((compression::pack(&json).ok()?.into(), json.len() as u64));
        match serde_json::to_vec(texts).ok().and_then(pack) {
            Some(packed) => Self::Packed(number, packed),
            None => Self::Here(number, texts.into()),
        }
    }

    fn number(&self) -> Option<u64> {
        match self {
            Self::Nothing => None,
            Self::Here(number, _) | Self::Packed(number, _) => Some(*number),
        }
    }

    /// Returns the texts; none if no graph was accepted.
    fn texts(&self) -> Option<Vec<Text>> {
        match self {
            Self::Nothing => None,
            Self::Here(_, texts) => Some(texts.to_vec()),
            Self::Packed(_, (packed, size)) => {
                serde_json::from_slice(&compression::unpack(packed, *size)?).ok()
            }
        }
    }
}

impl ReloadRequest {
    /// Records an accepted graph.
    pub(super) fn take(&self, number: u64, texts: Arc<[Text]>) {
        let mut latest = self.lock_latest();
        if latest.number().is_none_or(|other| other <= number) {
            *latest = LatestGraph::Here(number, texts);
        }
    }

    /// Compresses the texts of an accepted graph, unless a later graph was accepted meanwhile.
    pub(super) fn pack_latest(&self, number: u64, texts: &[Text]) {
        let packed = LatestGraph::pack(number, texts);
        let mut latest = self.lock_latest();
        if latest.number() == Some(number) {
            *latest = packed;
        }
    }

    /// Returns the last accepted graph.
    pub(super) async fn latest(&self) -> Option<Box<LoadedGraph>> {
        let latest = self.lock_latest().clone();
        let graph = self.graph();
        let options = self.live.options(Options { refuse_empty: false, ..graph.options });
        let read = tokio::task::spawn_blocking(move || {
            let loaded = config::load_texts(latest.texts()?, &options).inspect_err(|rejected| {
                let why = rejected.without_values();
                tracing::warn!(event = "warning", "the running graph is now rejected: {why}");
            });
            loaded.ok()
        });
        // The texts are recorded already.
        Some(Box::new(LoadedGraph { texts: Vec::new(), ..read.await.ok()?? }))
    }

    pub(super) fn lock_latest(&self) -> MutexGuard<'_, LatestGraph> {
        lock(&self.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::LatestGraph;
    use crate::config::{KindSet, Options, load};

    #[test]
    fn packed_texts_are_equal_and_small() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text = format!("graph: g\n{}", "# a comment\n".repeat(10_000));
        std::fs::write(&file, text).expect("written");
        let options = Options::new(KindSet::of_this_build());
        let loaded = load(&[file.path().to_owned()], &options).expect("a valid graph");
        let texts = loaded.texts;
        let packed = LatestGraph::pack(7, &texts);
        assert_eq!((packed.number(), packed.texts()), (Some(7), Some(texts)));
        let LatestGraph::Packed(_, (bytes, _)) = packed else { panic!("expected packed texts") };
        assert!(bytes.len() < 10_000, "{}", bytes.len());
        assert!(LatestGraph::Nothing.texts().is_none());
    }
}
