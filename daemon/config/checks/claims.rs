//! Shared claims: a resource that purges a directory receives the claims of others below it, and a resource below a
//! directory that another one closes to other users receives this directory, as parts of their definitions.

use super::Validator;
use crate::config::hash::Stable;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use steadfast_resources::{Claim, ClosedDirectory};

impl Validator<'_> {
    /// Passes to each resource that purges a directory the claims of others below that directory.
    pub(in crate::config) fn share_claims(&mut self) {
        let minds = |vertex: usize| self.vertices.get(vertex)?.resource.as_ref()?.purge_root();
        let minding: Vec<(usize, PathBuf)> = (0..self.vertices.len())
            .filter_map(|vertex| Some((vertex, minds(vertex)?.to_owned())))
            .collect();
        if minding.is_empty() {
            return;
        }
        // Paths are ordered by their components, so that all paths below one follow it.
        let claimed: BTreeMap<&Path, usize> = self
            .claims
            .iter()
            .filter_map(|(claim, holder)| match claim {
                Claim::Path(path) => Some((path.as_path(), *holder)),
                Claim::Unit { .. } | Claim::Package(_) => None,
            })
            .collect();
        for (vertex, directory) in minding {
            let below = (Bound::Excluded(directory.as_path()), Bound::Unbounded);
            let others: Vec<PathBuf> = claimed
                .range::<Path, _>(below)
                .take_while(|(path, _)| path.starts_with(&directory))
                .filter(|(_, holder)| **holder != vertex)
                .map(|(path, _)| (*path).to_owned())
                .collect();
            let Some(candidate) = self.vertices.get_mut(vertex) else { continue };
            let Some(resource) = candidate.resource.as_ref().filter(|_| !others.is_empty()) else {
                continue;
            };
            let hash = Stable::new().number(candidate.definition);
            let told = others.iter().fold(hash, |hash, path| hash.text(&path.to_string_lossy()));
            if let Some(resource) = resource.with_claims(others) {
                candidate.resource = Some(resource);
                candidate.definition = told.finish();
            }
        }
    }

    /// Passes to each resource the innermost directory above its path that another resource closes to other users.
    pub(in crate::config) fn share_closed_directories(&mut self) {
        let closes =
            |candidate: &super::DraftVertex| candidate.resource.as_ref()?.closed_directory();
        let closed: BTreeMap<PathBuf, ClosedDirectory> =
            self.vertices.iter().filter_map(closes).map(|one| (one.path.clone(), one)).collect();
        if closed.is_empty() {
            return;
        }
        let mut below = Vec::new();
        for (claim, holder) in &self.claims {
            let Claim::Path(path) = claim else { continue };
            let above = path.ancestors().skip(1).find_map(|above| closed.get(above));
            below.extend(above.map(|above| (*holder, above.clone())));
        }
        for (vertex, directory) in below {
            let Some(candidate) = self.vertices.get_mut(vertex) else { continue };
            let hash = Stable::new().number(candidate.definition);
            let hash = hash.text(&directory.path.to_string_lossy());
            let hash = hash.text(directory.owner.as_deref().unwrap_or_default());
            let resource = candidate.resource.as_ref();
            if let Some(resource) = resource.and_then(|one| one.with_closed_directory(directory)) {
                candidate.resource = Some(resource);
                candidate.definition = hash.finish();
            }
        }
    }
}
