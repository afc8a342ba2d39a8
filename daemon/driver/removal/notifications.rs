//! Notifications of removals: resources that a removed resource notified are refreshed after the removal.

use crate::config::LoadedGraph;
use std::collections::{HashMap, HashSet};

/// Drops the pairs of `orders` that would close a cycle with the notifications. In each pair the second vertex comes
/// after the first; vertices with numbers from `first` on are removals.
///
/// A notified resource and its dependents run after the removal that notifies it, so they cannot also come before that
/// removal.
pub(in crate::driver) fn make_room(
    loaded: &LoadedGraph,
    orders: &mut Vec<(usize, usize)>,
    (notified, first): (&[(usize, usize)], usize),
) {
    if notified.is_empty() {
        return;
    }
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    let edges = loaded.edges.iter().map(|link| (link.from, link.to));
    for (from, to) in edges.chain(orders.iter().copied()).chain(notified.iter().copied()) {
        children.entry(from).or_default().push(to);
    }
    let mut parents: HashMap<usize, Vec<usize>> = HashMap::new();
    for (from, to) in orders.iter().filter(|(from, _)| *from >= first) {
        parents.entry(*to).or_default().push(*from);
    }
    for (removal, target) in notified {
        let after = reachable(&children, *target);
        let before = reachable(&parents, *removal);
        orders.retain(|(from, to)| *from >= first || !after.contains(from) || !before.contains(to));
    }
}

/// Returns a vertex and all vertices that its edges lead to.
fn reachable(edges: &HashMap<usize, Vec<usize>>, from: usize) -> HashSet<usize> {
    let (mut seen, mut next) = (HashSet::from([from]), vec![from]);
    while let Some(at) = next.pop() {
        for to in edges.get(&at).into_iter().flatten() {
            if seen.insert(*to) {
                next.push(*to);
            }
        }
    }
    seen
}
