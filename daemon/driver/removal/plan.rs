//! The removal plan: the resources that a new graph leaves out are removed, forgotten, or protected (B-16, B-17).
//!
//! A removal is a vertex of the new graph that declares the object absent and runs after all former dependents of the
//! resource. So order, retries, limits and run records are those of every other vertex.

use super::notifications::make_room;
use crate::config::{LoadedGraph, Vertex};
use crate::store::{Origin, Ownership, ResourceRecord, StoredState};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steadfast_resources::{DeclaredPaths, HostObject, guard_removal};

/// Ownership records by identity.
pub(in crate::driver) type KeptOwned = HashMap<Arc<str>, Arc<Ownership>>;

/// The policy of a load.
#[derive(Clone, Copy, Debug)]
pub(in crate::driver) struct LoadPolicy {
    /// True if an operator requests the load: only then removals are approved.
    pub(in crate::driver) explicit: bool,
    /// True if the graph is complete, not a selection.
    pub(in crate::driver) whole: bool,
    /// True for a one-shot command: resources of graphs with other names stay untouched.
    pub(in crate::driver) one_shot: bool,
}

/// The plan for the resources that a graph leaves out.
#[derive(Debug, Default)]
pub(in crate::driver) struct RemovalPlan {
    /// Resources whose records stay: a later load removes them.
    pub(in crate::driver) keep: BTreeSet<Arc<str>>,
    /// Inactive resources with a record: they are declared, and their records stay.
    pub(in crate::driver) inactive: BTreeSet<Arc<str>>,
    /// Resources whose records are dropped.
    pub(in crate::driver) forget: Vec<Arc<str>>,
    /// Messages to the user, by identity.
    pub(in crate::driver) messages: Vec<(Arc<str>, String)>,
}

impl RemovalPlan {
    /// Adds a message for each forgotten resource that has none.
    pub(in crate::driver) fn explain_forgotten(&mut self) {
        let told: HashSet<Arc<str>> =
            self.messages.iter().map(|(name, _)| Arc::clone(name)).collect();
        let silent = self.forget.iter().filter(|name| !told.contains(*name));
        let says = "undeclared; the object stays as it is (on_remove: forget)";
        let messages: Vec<_> = silent.map(|name| (Arc::clone(name), says.to_owned())).collect();
        self.messages.extend(messages);
    }
}

/// Returns the identities that an apply of this graph would remove; empty if the graph would be rejected.
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

/// The planned treatment of one undeclared resource.
enum Disposition {
    Forgotten(Option<String>),
    Retained(Option<String>),
    Removed,
}

/// Plans the removals of a graph and adds removal vertices to it. `may_leave` holds every record that the graph may
/// leave out.
///
/// # Errors
///
/// The protected resources that the graph leaves out.
pub(in crate::driver) fn plan_removals(
    loaded: &mut LoadedGraph,
    (kept, may_leave): (&KeptOwned, BTreeSet<Arc<str>>),
    approved: &dyn Fn(&str, &Ownership) -> bool,
    terms: LoadPolicy,
) -> Result<RemovalPlan, Vec<Arc<str>>> {
    let inactive = loaded.inactive.iter().map(|inactive| &inactive.identity);
    let inactive: BTreeSet<Arc<str>> =
        inactive.filter(|identity| may_leave.contains(*identity)).cloned().collect();
    let leaving = undeclared_records(loaded, kept, may_leave, terms);
    let mut plan = RemovalPlan { inactive, ..RemovalPlan::default() };
    if !terms.whole {
        let stays = |owned: &Ownership| is_deletable(owned) || owned.is_protected();
        let stay = leaving.into_iter().filter(|(_, owned)| stays(owned));
        plan.keep.extend(stay.map(|(identity, _)| identity));
        return Ok(plan);
    }
    let protected = leaving.iter().filter(|(_, owned)| owned.is_protected());
    let protected: Vec<Arc<str>> = protected.map(|(identity, _)| Arc::clone(identity)).collect();
    if !protected.is_empty() {
        return Err(protected);
    }
    let claims = leaving.iter().any(|(_, owned)| is_deletable(owned)).then(|| Claims::of(loaded));
    let mut removal_vertices = BTreeMap::new();
    for (identity, owned) in leaving {
        // `on_remove: delete` of a collection is the consent to the removal of what others withdraw.
        let is_withdrawn = loaded.vanished.contains(&identity);
        let explicit = terms.explicit || is_withdrawn || approved(&identity, &owned);
        let disposition = match disposition(loaded, &owned, explicit) {
            Disposition::Removed => add_removal_vertex(
                loaded,
                (&identity, &owned),
                claims.as_ref(),
                &mut removal_vertices,
            ),
            other => other,
        };
        match disposition {
            Disposition::Removed => {}
            Disposition::Forgotten(says) => {
                plan.messages.extend(says.map(|says| (Arc::clone(&identity), says)));
                plan.forget.push(identity);
            }
            Disposition::Retained(says) => {
                plan.messages.extend(says.map(|says| (Arc::clone(&identity), says)));
                plan.keep.insert(identity);
            }
        }
    }
    order(loaded, kept, &removal_vertices);
    Ok(plan)
}

/// Lists the recorded resources that the graph declares under no name or alias, in order of identity.
fn undeclared_records(
    loaded: &LoadedGraph,
    kept: &KeptOwned,
    may_leave: BTreeSet<Arc<str>>,
    terms: LoadPolicy,
) -> Vec<(Arc<str>, Arc<Ownership>)> {
    if may_leave.is_empty() {
        return Vec::new();
    }
    // An inactive resource is declared: its records stay.
    let inactive = loaded.inactive.iter().map(|inactive| inactive.identity.as_ref());
    let names: HashSet<&str> =
        loaded.vertices.iter().map(|v| v.identity.as_ref()).chain(inactive).collect();
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

/// Returns the definition of the removal vertex of a resource, if its record has a removal text.
pub(in crate::driver) fn definition_of_removal(identity: &str, owned: &Ownership) -> Option<u64> {
    owned.removal.as_deref().map(|text| Vertex::removal_definition(identity, text))
}

/// Returns true if the object was created by the daemon and is to be deleted when its resource leaves the graph.
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
            "undeclared; the object was created by graph `{}`, whose load can remove it",
            owned.graph
        );
        return Disposition::Retained(Some(says));
    }
    if !explicit {
        let says = "undeclared; pending removal: `steadfast reload` removes the object";
        return Disposition::Retained(Some(says.to_owned()));
    }
    Disposition::Removed
}

/// Adds the removal vertex of a resource, unless another resource now has its object.
fn add_removal_vertex(
    loaded: &mut LoadedGraph,
    (identity, owned): (&Arc<str>, &Ownership),
    claims: Option<&Claims>,
    removal_vertices: &mut BTreeMap<Arc<str>, usize>,
) -> Disposition {
    let text = owned.removal.as_deref().unwrap_or_default();
    let number = match loaded.remove(identity, (owned.thing, text)) {
        Ok(number) => number,
        Err(why) => {
            return Disposition::Retained(Some(format!(
                "undeclared; the object cannot be removed: {why}"
            )));
        }
    };
    let declared = match (claims, loaded.vertices.get(number)) {
        (Some(claims), Some(removal)) => claims.check(loaded, removal),
        _ => None,
    };
    if let Some(disposition) = declared {
        loaded.vertices.truncate(number);
        return disposition;
    }
    if let (Some(claims), Some(removal)) = (claims, loaded.vertices.get_mut(number)) {
        removal.resource = guard_removal(Arc::clone(&removal.resource), &claims.declared);
    }
    removal_vertices.insert(Arc::clone(identity), number);
    Disposition::Removed
}

/// The claims of the resources of a graph.
struct Claims {
    exact: HashMap<HostObject, usize>,
    paths: BTreeMap<PathBuf, usize>,
    /// Directories that a resource manages with all their content.
    trees: Vec<(PathBuf, usize)>,
    /// All declared paths, for a later comparison of the real objects on the host. The plan itself must not block on
    /// file access.
    declared: Arc<DeclaredPaths>,
}

impl Claims {
    fn of(loaded: &LoadedGraph) -> Self {
        let (mut exact, mut paths, mut trees) = (HashMap::new(), BTreeMap::new(), Vec::new());
        for (number, vertex) in loaded.vertices.iter().enumerate() {
            let footprint = vertex.resource.footprint();
            if !footprint.creates() {
                continue;
            }
            for claim in footprint.claims.into_iter().filter(|claim| claim.creates) {
                if let HostObject::Path(path) = &claim.object {
                    paths.insert(path.clone(), number);
                }
                exact.insert(claim.object, number);
            }
            trees.extend(footprint.purge_root.map(|path| (path, number)));
        }
        let each = loaded.vertices.iter();
        let declared =
            each.map(|vertex| (Arc::clone(&vertex.identity), Arc::clone(&vertex.resource)));
        Self { exact, paths, trees, declared: Arc::new(DeclaredPaths::by(declared.collect())) }
    }

    /// Returns the treatment of an object that the graph itself declares, or that contains a declared object.
    fn check(&self, loaded: &LoadedGraph, removal: &Vertex) -> Option<Disposition> {
        let name = |number: usize| {
            loaded
                .vertices
                .get(number)
                .map(|vertex| vertex.identity.to_string())
                .unwrap_or_default()
        };
        for claim in removal.resource.footprint().claims {
            if let Some(number) = self.exact.get(&claim.object) {
                let says = format!("undeclared; {} now manages {claim}", name(*number));
                return Some(Disposition::Forgotten(Some(says)));
            }
            let Some(path) = claim.as_path() else { continue };
            if let Some((_, number)) = self.trees.iter().find(|(tree, _)| path.starts_with(tree)) {
                let says = format!("undeclared; {} now manages {claim}", name(*number));
                return Some(Disposition::Forgotten(Some(says)));
            }
            if let Some(number) = self.below(path) {
                let says = format!(
                    "undeclared; the object is not removed while {} lies in it",
                    name(number)
                );
                return Some(Disposition::Retained(Some(says)));
            }
        }
        None
    }

    fn below(&self, path: &Path) -> Option<usize> {
        // Paths are ordered by their components: all paths below a directory follow it.
        let mut from = self.paths.range(path.to_owned()..);
        from.next().filter(|(next, _)| next.starts_with(path)).map(|(_, number)| *number)
    }
}

/// Orders the removals: each dependent of a removed resource comes before the removal.
fn order(loaded: &mut LoadedGraph, kept: &KeptOwned, removal_vertices: &BTreeMap<Arc<str>, usize>) {
    if removal_vertices.is_empty() {
        return;
    }
    let first = removal_vertices.values().min().copied().unwrap_or_default();
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
    for (identity, removal) in removal_vertices {
        let mut seen: HashSet<&str> = HashSet::from([identity.as_ref()]);
        let mut next: Vec<&str> = vec![identity];
        while let Some(name) = next.pop() {
            for dependent in dependents.get(name).into_iter().flatten() {
                if !seen.insert(dependent) {
                    continue;
                }
                if let Some(other) = removal_vertices.get(*dependent) {
                    removals.entry(*other).or_default().push(*removal);
                    continue;
                }
                edges.extend(numbers.get(dependent).map(|number| (*number, *removal)));
                next.push(dependent);
            }
        }
    }
    edges.extend(without_cycles(&removals));
    let mut notified = Vec::new();
    for (identity, removal) in removal_vertices {
        let text = kept.get(identity).and_then(|owned| owned.removal.as_deref());
        let targets = Vertex::notified_by_removal(text.unwrap_or_default());
        let targets = targets.iter().filter_map(|target| numbers.get(target.as_ref()));
        notified.extend(targets.map(|target| (*removal, *target)));
    }
    make_room(loaded, &mut edges, (&notified, first));
    loaded.add_edges(&edges);
    loaded.put_notifications(&notified);
}

/// Drops edges that would close a cycle: the orders of different graphs may contradict each other (B-21).
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

    /// Returns true if there is a path from `from` to `to`.
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
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
        /// B-13, B-14: each vertex follows its predecessors of the old order or of the new one, in any mix. The result
        /// has no cycle, no edge is dropped that fits in, and none is dropped before and after the swap.
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
    fn an_edge_that_closes_a_cycle_is_left_out() {
        let edges = BTreeMap::from([(1, vec![2, 3]), (2, vec![3]), (3, vec![1, 4]), (5, vec![5])]);
        assert_eq!(without_cycles(&edges), [(1, 2), (2, 3), (3, 4), (1, 3)]);
    }
}
