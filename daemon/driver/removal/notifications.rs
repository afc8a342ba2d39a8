//! The notifications of a removal: the resources that a removed resource notified are refreshed when it is gone.

use crate::config::LoadedGraph;
use std::collections::{HashMap, HashSet};

/// Takes out of `orders` each pair that would close a cycle with the notifications. In a pair of either, the second comes after the
/// first; vertices from the number `first` on are removals.
///
/// A notified resource, and all that comes after it, is run after the removal that notifies it: it cannot come before that removal
/// as well.
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

/// A vertex and all that its edges lead to.
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
