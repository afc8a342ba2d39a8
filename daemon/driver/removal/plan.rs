//! What a new graph leaves out: what of it is removed, what is left alone, and what must not leave (B-16, B-17).
//!
//! What is removed is a vertex of the new graph that declares it absent, after all that came after it: so order, retries, limits
//! and the record of the run are those of every other vertex.

use super::notifications::make_room;
use crate::config::{LoadedGraph, Vertex};
use crate::store::{Origin, Ownership, ResourceRecord, StoredState};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::{Claim, DeclaredPaths, guard_removal};

/// What is kept of whose things are, by identity.
pub(in crate::driver) type KeptOwned = HashMap<Arc<str>, Arc<Ownership>>;

/// Under which terms a graph is loaded.
#[derive(Clone, Copy, Debug)]
pub(in crate::driver) struct LoadPolicy {
    /// An operator asks for it: only then anything is condemned.
    pub(in crate::driver) explicit: bool,
    /// It is the whole graph, not a selection of it.
    pub(in crate::driver) whole: bool,
    /// A command that ends: what belongs to graphs of other names is none of its business.
    pub(in crate::driver) one_shot: bool,
}

/// What becomes of what a graph leaves out.
#[derive(Debug, Default)]
pub(in crate::driver) struct RemovalPlan {
    /// Whose records stay: they are removed by a later load.
    pub(in crate::driver) keep: BTreeSet<Arc<str>>,
    /// What is nobody's from now on.
    pub(in crate::driver) forget: Vec<Arc<str>>,
    /// What is to be said of each.
    pub(in crate::driver) messages: Vec<(Arc<str>, String)>,
}

/// What an apply of this graph would remove because it has left the graph, by name; nothing where it would be refused.
#[must_use]
pub fn removals(mut loaded: LoadedGraph, recalled: &StoredState) -> Vec<Arc<str>> {
    let owned = |(identity, kept): (&String, &ResourceRecord)| {
        Some((identity.as_str().into(), Arc::clone(kept.owned.as_ref()?)))
    };
    let kept: KeptOwned = recalled.resources.iter().filter_map(owned).collect();
    let all = kept.keys().cloned().collect();
    let terms = LoadPolicy { explicit: true, whole: true, one_shot: true };
    if plan_removals(&mut loaded, (&kept, all), &|_, _| false, terms).is_err() {
        return Vec::new();
    }
    let removed = loaded.vertices.into_iter().filter(|vertex| vertex.removes);
    removed.map(|vertex| vertex.identity).collect()
}

/// What is to become of one.
enum Disposition {
    Forgotten(Option<String>),
    Kept(Option<String>),
    Removed,
}

/// Takes leave of what is not in this graph: adds to it what removes the rest, or names all that must not leave. Of all that is
/// kept, at most these are not in it.
pub(in crate::driver) fn plan_removals(
    loaded: &mut LoadedGraph,
    (kept, may_leave): (&KeptOwned, BTreeSet<Arc<str>>),
    condemned: &dyn Fn(&str, &Ownership) -> bool,
    terms: LoadPolicy,
) -> Result<RemovalPlan, Vec<Arc<str>>> {
    let leaving = leaving(loaded, kept, may_leave, terms);
    let mut farewell = RemovalPlan::default();
    if !terms.whole {
        let stays = |owned: &Ownership| is_deletable(owned) || owned.is_protected();
        let stay = leaving.into_iter().filter(|(_, owned)| stays(owned));
        farewell.keep = stay.map(|(identity, _)| identity).collect();
        return Ok(farewell);
    }
    let protected = leaving.iter().filter(|(_, owned)| owned.is_protected());
    let protected: Vec<Arc<str>> = protected.map(|(identity, _)| Arc::clone(identity)).collect();
    if !protected.is_empty() {
        return Err(protected);
    }
    let claims = leaving.iter().any(|(_, owned)| is_deletable(owned)).then(|| Claims::of(loaded));
    let mut tombs = BTreeMap::new();
    for (identity, owned) in leaving {
        let explicit = terms.explicit || condemned(&identity, &owned);
        let fate = match disposition(loaded, &owned, explicit) {
            Disposition::Removed => {
                add_removal_vertex(loaded, (&identity, &owned), claims.as_ref(), &mut tombs)
            }
            other => other,
        };
        match fate {
            Disposition::Removed => {}
            Disposition::Forgotten(says) => {
                farewell.messages.extend(says.map(|says| (Arc::clone(&identity), says)));
                farewell.forget.push(identity);
            }
            Disposition::Kept(says) => {
                farewell.messages.extend(says.map(|says| (Arc::clone(&identity), says)));
                farewell.keep.insert(identity);
            }
        }
    }
    order(loaded, kept, &tombs);
    Ok(farewell)
}

/// All that is kept and not in the graph, under no former name either; in order.
fn leaving(
    loaded: &LoadedGraph,
    kept: &KeptOwned,
    may_leave: BTreeSet<Arc<str>>,
    terms: LoadPolicy,
) -> Vec<(Arc<str>, Arc<Ownership>)> {
    if may_leave.is_empty() {
        return Vec::new();
    }
    let names: HashSet<&str> = loaded.vertices.iter().map(|v| v.identity.as_ref()).collect();
    let aliased = loaded.vertices.iter().filter(|v| !v.aliases.is_empty());
    let aliased = aliased.filter(|v| !kept.contains_key(&v.identity));
    let moved: HashSet<&str> =
        aliased.flat_map(|v| &v.aliases).map(|(alias, _)| alias.as_ref()).collect();
    let is_ours = |owned: &Ownership| !terms.one_shot || *owned.graph == *loaded.name;
    let leaving = may_leave.into_iter().filter_map(|identity| {
        let name = identity.as_ref();
        let owned = kept.get(name).filter(|owned| is_ours(owned))?;
        let leaves = !names.contains(name) && !moved.contains(name);
        leaves.then(|| (identity, Arc::clone(owned)))
    });
    leaving.collect()
}

/// What the definition is called of the vertex that removes what is kept so.
pub(in crate::driver) fn definition_of_removal(identity: &str, owned: &Ownership) -> Option<u64> {
    owned.removal.as_deref().map(|text| Vertex::removal_definition(identity, text))
}

/// What we have made, and remove when it leaves.
pub(in crate::driver) fn is_deletable(owned: &Ownership) -> bool {
    owned.delete && owned.origin == Some(Origin::Created) && owned.removal.is_some()
}

fn disposition(loaded: &LoadedGraph, owned: &Ownership, explicit: bool) -> Disposition {
    if !owned.delete || owned.origin.is_none() {
        return Disposition::Forgotten(None);
    }
    if !is_deletable(owned) {
        let says = "undeclared; the object existed before and is not removed";
        return Disposition::Forgotten(Some(says.to_owned()));
    }
    if *owned.graph != *loaded.name {
        let says = format!(
            "undeclared; the object was created by graph `{}` and is not removed",
            owned.graph
        );
        return Disposition::Forgotten(Some(says));
    }
    if !explicit {
        let says = "undeclared; pending removal: `steadfast reload` removes the object";
        return Disposition::Kept(Some(says.to_owned()));
    }
    Disposition::Removed
}

/// Makes the vertex that removes it, unless somebody else has it now.
fn add_removal_vertex(
    loaded: &mut LoadedGraph,
    (identity, owned): (&Arc<str>, &Ownership),
    claims: Option<&Claims>,
    tombs: &mut BTreeMap<Arc<str>, usize>,
) -> Disposition {
    let text = owned.removal.as_deref().unwrap_or_default();
    let number = match loaded.remove(identity, (owned.thing, text)) {
        Ok(number) => number,
        Err(why) => {
            return Disposition::Kept(Some(format!(
                "undeclared; the object cannot be removed: {why}"
            )));
        }
    };
    let held = match (claims, loaded.vertices.get(number)) {
        (Some(claims), Some(tomb)) => claims.hold(loaded, tomb),
        _ => None,
    };
    if let Some(fate) = held {
        loaded.vertices.truncate(number);
        return fate;
    }
    if let (Some(claims), Some(tomb)) = (claims, loaded.vertices.get_mut(number)) {
        tomb.resource = guard_removal(Arc::clone(&tomb.resource), &claims.held);
    }
    tombs.insert(Arc::clone(identity), number);
    Disposition::Removed
}

/// What the resources of a graph claim.
struct Claims {
    exact: HashMap<Claim, usize>,
    paths: BTreeMap<PathBuf, usize>,
    /// Directories that are held with all that is in them.
    trees: Vec<(PathBuf, usize)>,
    /// The same for who can look whether two paths lead to one thing: that is not done here, where nothing may block.
    held: Arc<DeclaredPaths>,
}

impl Claims {
    fn of(loaded: &LoadedGraph) -> Self {
        let (mut exact, mut paths, mut trees) = (HashMap::new(), BTreeMap::new(), Vec::new());
        let creating = loaded.vertices.iter().enumerate().filter(|(_, it)| it.resource.creates());
        for (number, vertex) in creating {
            for claim in vertex.resource.claims() {
                if let Claim::Path(path) = &claim {
                    paths.insert(path.clone(), number);
                }
                exact.insert(claim, number);
            }
            trees.extend(vertex.resource.purge_root().map(|path| (path.to_owned(), number)));
        }
        let each = loaded.vertices.iter();
        let held = each.map(|vertex| (Arc::clone(&vertex.identity), Arc::clone(&vertex.resource)));
        Self { exact, paths, trees, held: Arc::new(DeclaredPaths::by(held.collect())) }
    }

    /// What follows where the graph itself has what would be removed, or something in it.
    fn hold(&self, loaded: &LoadedGraph, tomb: &Vertex) -> Option<Disposition> {
        let name = |number: usize| {
            loaded
                .vertices
                .get(number)
                .map(|vertex| vertex.identity.to_string())
                .unwrap_or_default()
        };
        for claim in tomb.resource.claims() {
            if let Some(number) = self.exact.get(&claim) {
                let says = format!("undeclared; {} now manages {claim}", name(*number));
                return Some(Disposition::Forgotten(Some(says)));
            }
            let Claim::Path(path) = &claim else { continue };
            if let Some((_, number)) = self.trees.iter().find(|(tree, _)| path.starts_with(tree)) {
                let says = format!("undeclared; {} now manages {claim}", name(*number));
                return Some(Disposition::Forgotten(Some(says)));
            }
            if let Some(number) = self.below(path) {
                let says = format!(
                    "undeclared; the object is not removed while {} lies in it",
                    name(number)
                );
                return Some(Disposition::Kept(Some(says)));
            }
        }
        None
    }

    fn below(&self, path: &Path) -> Option<usize> {
        // Paths are ordered by their parts, so that all below one follow it.
        let mut from = self.paths.range(path.to_owned()..);
        from.next().filter(|(next, _)| next.starts_with(path)).map(|(_, number)| *number)
    }
}

/// Everything that came after something comes before its removal: what is removed, and what stays.
fn order(loaded: &mut LoadedGraph, kept: &KeptOwned, tombs: &BTreeMap<Arc<str>, usize>) {
    if tombs.is_empty() {
        return;
    }
    let first = tombs.values().min().copied().unwrap_or_default();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for (number, vertex) in loaded.vertices.iter().take(first).enumerate() {
        numbers.extend(vertex.aliases.iter().map(|(alias, _)| (alias.as_ref(), number)));
        numbers.insert(&vertex.identity, number);
    }
    let mut dependents: HashMap<&str, Vec<&str>> = HashMap::new();
    for (identity, owned) in kept {
        for need in &owned.after {
            dependents.entry(need).or_default().push(identity);
        }
    }
    for names in dependents.values_mut() {
        names.sort_unstable();
    }
    let mut edges = Vec::new();
    let mut removals: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (identity, tomb) in tombs {
        let mut seen: HashSet<&str> = HashSet::from([identity.as_ref()]);
        let mut next: Vec<&str> = vec![identity];
        while let Some(name) = next.pop() {
            for dependent in dependents.get(name).into_iter().flatten() {
                if !seen.insert(dependent) {
                    continue;
                }
                if let Some(other) = tombs.get(*dependent) {
                    removals.entry(*other).or_default().push(*tomb);
                    continue;
                }
                edges.extend(numbers.get(dependent).map(|number| (*number, *tomb)));
                next.push(dependent);
            }
        }
    }
    edges.extend(without_cycles(&removals));
    let mut notified = Vec::new();
    for (identity, tomb) in tombs {
        let text = kept.get(identity).and_then(|owned| owned.removal.as_deref());
        let targets = Vertex::notified_by_removal(text.unwrap_or_default());
        let targets = targets.iter().filter_map(|target| numbers.get(target.as_ref()));
        notified.extend(targets.map(|target| (*tomb, *target)));
    }
    make_room(loaded, &mut edges, (&notified, first));
    loaded.put_after(&edges);
    loaded.put_notifications(&notified);
}

/// Orders of different graphs may contradict each other: what would close a cycle is left out (B-21).
fn without_cycles(edges: &BTreeMap<usize, Vec<usize>>) -> Vec<(usize, usize)> {
    let (mut done, mut kept) = (HashSet::new(), Vec::new());
    for root in edges.keys() {
        let mut path: Vec<(usize, usize)> = Vec::new();
        let mut on_path = HashSet::new();
        if done.contains(root) {
            continue;
        }
        path.push((*root, 0));
        on_path.insert(*root);
        while let Some((vertex, at)) = path.pop() {
            let Some(child) = edges.get(&vertex).and_then(|children| children.get(at)) else {
                on_path.remove(&vertex);
                done.insert(vertex);
                continue;
            };
            path.push((vertex, at + 1));
            if on_path.contains(child) {
                continue;
            }
            kept.push((vertex, *child));
            if !done.contains(child) {
                path.push((*child, 0));
                on_path.insert(*child);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::without_cycles;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashSet};

    /// Whether one leads to the other.
    fn leads(edges: &[(usize, usize)], from: usize, to: usize) -> bool {
        let (mut next, mut seen) = (vec![from], HashSet::new());
        while let Some(at) = next.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at) {
                next.extend(edges.iter().filter(|(one, _)| *one == at).map(|(_, other)| *other));
            }
        }
        false
    }

    proptest! {
        /// B-13, B-14: each thing stands after its neighbour of the old order or of the new one, as far as the swap has come: whatever
        /// has been recorded, what is left of both is an order, no edge is given up that fits in, and before and after the swap none is.
        #[test]
        fn between_two_orders_there_is_always_one(
            old in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle(),
            new in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle(),
            is_new in prop::collection::vec(any::<bool>(), 8),
        ) {
            let after = |order: &[usize], thing: usize| {
                let at = order.iter().position(|other| *other == thing).unwrap();
                order[..at].to_vec()
            };
            let edges = |is_new: &[bool]| {
                let each = |thing: usize| {
                    (thing, after(if is_new[thing] { &new } else { &old }, thing))
                };
                (0..8).map(each).collect::<BTreeMap<_, _>>()
            };
            let between = edges(&is_new);
            let kept = without_cycles(&between);
            for (one, other) in &kept {
                prop_assert!(!leads(&kept, *other, *one), "{one} and {other} wait for each other");
            }
            for (one, others) in &between {
                for other in others.iter().filter(|other| !kept.contains(&(*one, **other))) {
                    prop_assert!(leads(&kept, *other, *one), "{one} after {other} was given up");
                }
            }
            for whole in [[false; 8], [true; 8]] {
                prop_assert_eq!(without_cycles(&edges(&whole)).len(), 28);
            }
        }
    }

    #[test]
    fn what_closes_a_cycle_is_left_out() {
        let edges = BTreeMap::from([(1, vec![2, 3]), (2, vec![3]), (3, vec![1, 4]), (5, vec![5])]);
        assert_eq!(without_cycles(&edges), [(1, 2), (2, 3), (3, 4), (1, 3)]);
    }
}
