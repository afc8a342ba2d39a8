//! Validation of worker dependencies: duplicates, cycles, unknown names.

use super::Name;
use super::manifold::Need;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// The reason for which workers are not installed or removed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// A worker of that name exists, perhaps still stopping.
    #[error("a worker named `{0}` exists already")]
    Exists(Name),
    /// An input is named twice.
    #[error("`{worker}` names its input `{input}` twice")]
    Twice {
        /// The worker.
        worker: Name,
        /// The input.
        input: Name,
    },
    /// Workers would wait for each other.
    #[error("a cycle: {}", .0.join(" -> "))]
    Cycle(Vec<Name>),
    /// No worker has that name.
    #[error("no worker is named `{0}`")]
    Unknown(Name),
    /// The supervisor is shutting down.
    #[error("the supervisor is shutting down")]
    ShuttingDown,
}

/// The inputs of all workers, by name.
pub(super) type Needs = BTreeMap<Name, Vec<(Name, Need)>>;

/// Returns a cycle of required or optional inputs, with its first name repeated at the end. Late-bound inputs form no
/// cycle.
pub(super) fn ring(needs: &Needs) -> Option<Vec<Name>> {
    let mut done: BTreeSet<&Name> = BTreeSet::new();
    for start in needs.keys() {
        // Depth first without recursion: each entry is a name and the number of its inputs already followed.
        let mut path: Vec<(&Name, usize)> = vec![(start, 0)];
        while let Some((name, at)) = path.last_mut() {
            let inputs = needs.get(*name).map_or(&[][..], Vec::as_slice);
            let next = inputs.get(*at);
            *at += 1;
            let Some((input, need)) = next else {
                done.insert(*name);
                path.pop();
                continue;
            };
            if *need == Need::Handle || done.contains(input) {
                continue;
            }
            if let Some(from) = path.iter().position(|(name, _)| *name == input) {
                let mut ring: Vec<Name> =
                    path.iter().skip(from).map(|(name, _)| Name::clone(name)).collect();
                ring.push(Name::clone(input));
                return Some(ring);
            }
            path.push((input, 0));
        }
    }
    None
}

/// Returns an input that is named twice.
pub(super) fn named_twice(inputs: &[(Name, Need)]) -> Option<&Name> {
    let mut seen = BTreeSet::new();
    inputs.iter().map(|(name, _)| name).find(|name| !seen.insert(*name))
}
