//! Who needs whom: duplicates, rings, and names that nobody bears.

use super::Name;
use super::manifold::Need;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Why workers are not installed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// There is one of that name, perhaps still stopping.
    #[error("a worker named `{0}` exists already")]
    Exists(Name),
    /// An input is named twice.
    #[error("`{worker}` names its input `{input}` twice")]
    Twice {
        /// Who.
        worker: Name,
        /// What.
        input: Name,
    },
    /// They would wait for each other.
    #[error("a cycle: {}", .0.join(" -> "))]
    Cycle(Vec<Name>),
    /// There is none of that name.
    #[error("no worker is named `{0}`")]
    Unknown(Name),
    /// Nothing is installed any more.
    #[error("the supervisor is shutting down")]
    ShuttingDown,
}

/// The inputs of all, by name.
pub(super) type Needs = BTreeMap<Name, Vec<(Name, Need)>>;

/// A ring among those that wait for each other, the first named again at its end. Late-bound inputs make none.
pub(super) fn ring(needs: &Needs) -> Option<Vec<Name>> {
    let mut done: BTreeSet<&Name> = BTreeSet::new();
    for start in needs.keys() {
        // Depth first without recursion: each entry is a name and how many of its inputs were followed.
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

/// An input that is named twice.
pub(super) fn named_twice(inputs: &[(Name, Need)]) -> Option<&Name> {
    let mut seen = BTreeSet::new();
    inputs.iter().map(|(name, _)| name).find(|name| !seen.insert(*name))
}
