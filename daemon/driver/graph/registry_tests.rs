//! Tests of vertex numbers over many graphs: the ordered lookup must agree with a full search.

use super::assign_ids::IdAssignment;
use super::registry::GraphRegistry;
use crate::config::{LoadedGraph, Vertex};
use crate::driver::removal::undeclared::Renamed;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steadfast_engine::{Meta, VertexId};
use steadfast_resources::host::Host;
use steadfast_resources::{
    Answer, Change, CheckRequest, CheckResult, Failure, Outcome, Permit, Resource,
};

#[derive(Debug)]
struct Thing;

impl Resource for Thing {
    fn check<'a>(&'a self, _host: &'a Host, _ask: CheckRequest) -> Answer<'a, CheckResult> {
        Box::pin(async { CheckResult::Unknown(Failure::new("nobody looks at it")) })
    }

    fn apply<'a>(
        &'a self,
        _host: &'a Host,
        _permit: &'a Permit,
        _change: Change,
    ) -> Answer<'a, Outcome> {
        Box::pin(async { Outcome::Unchanged })
    }
}

/// Name, definition, protection, former name.
type Declared = (u8, u64, bool, Option<u8>);

fn loaded(declared: &[Declared]) -> LoadedGraph {
    let name = |number: u8| -> Arc<str> { format!("thing[{number}]").into() };
    let names: BTreeSet<u8> = declared.iter().map(|one| one.0).collect();
    let mut taken = BTreeSet::new();
    let vertices = declared.iter().map(|(number, definition, protect, former)| {
        // Config rules: a declared name is no former name, and a former name belongs to one resource only.
        let former = former.filter(|former| !names.contains(former) && taken.insert(*former));
        Vertex {
            identity: name(*number),
            resource: Arc::new(Thing),
            recipe: None,
            definition: *definition,
            meta: Arc::new(Meta::default()),
            rewatch: true,
            autogroup: false,
            delete: false,
            protect: *protect,
            removes: false,
            failure_blocks: false,
            aliases: former.map(|former| (name(former), *definition)).into_iter().collect(),
            after: Arc::default(),
            notifies: Arc::default(),
            labels: Arc::default(),
            place: (0, 1),
        }
    });
    LoadedGraph {
        name: "things".to_owned(),
        comment: None,
        vertices: vertices.collect(),
        inactive: Vec::new(),
        edges: Vec::new(),
        semaphores: Vec::new(),
        windows: Vec::new(),
        usual: Arc::new(Meta::default()),
        origins: Vec::new(),
        warnings: Vec::new(),
        files: Vec::new(),
        hash: 0,
        text_bytes: 0,
        texts: Vec::new(),
        ..LoadedGraph::default()
    }
}

fn running(table: &GraphRegistry) -> BTreeMap<VertexId, Vertex> {
    table.ids().filter_map(|id| Some((id, table.get(id)?.clone()))).collect()
}

/// Returns the running resources under former names, at most one for each new name.
fn renamed(running: &BTreeMap<VertexId, Vertex>, new: &[Vertex]) -> Vec<Renamed> {
    let runs = |name: &str| running.values().any(|other| *other.identity == *name);
    let new = new.iter().filter(|vertex| !runs(&vertex.identity));
    let former = new.filter_map(|vertex| {
        let (from, _) = vertex.aliases.iter().find(|(name, _)| runs(name))?;
        let (from, to) = (Arc::clone(from), Arc::clone(&vertex.identity));
        Some(Renamed { from, to, definition: (vertex.definition, vertex.definition) })
    });
    former.collect()
}

/// Returns the number of the running vertex with this identity, or else with its former identity.
fn expected(running: &BTreeMap<VertexId, Vertex>, vertex: &Vertex) -> Option<VertexId> {
    let by_name = |name: &str| {
        let mut all = running.iter();
        all.find(|(_, other)| *other.identity == *name).map(|(id, _)| *id)
    };
    let former = || vertex.aliases.iter().find_map(|(name, _)| by_name(name));
    by_name(&vertex.identity).or_else(former)
}

fn graphs() -> impl Strategy<Value = Vec<(Vec<Declared>, bool)>> {
    let one = (0..2_u64, prop::bool::weighted(0.2), prop::option::weighted(0.3, 0..9_u8));
    let all = prop::collection::btree_map(0..9_u8, one, 0..9).prop_map(|all| {
        all.into_iter()
            .map(|(name, (hash, protect, former))| (name, hash, protect, former))
            .collect()
    });
    // Mostly sorted by name, as in an edited file.
    let all = all.prop_flat_map(
        |all: Vec<Declared>| prop_oneof![2 => Just(all.clone()), 1 => Just(all).prop_shuffle()],
    );
    prop::collection::vec((all, prop::bool::weighted(0.7)), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// E-17, B-18: a running resource keeps its number, also under a new name; no other has the number; a waiting graph
    /// that is replaced leaves nothing behind; exactly the differing vertices are reported.
    #[test]
    fn numbers_stay_whatever_the_order(graphs in graphs()) {
        let mut table = GraphRegistry::default();
        for (declared, installs) in graphs {
            let before = running(&table);
            let loaded = loaded(&declared);
            let vertices = loaded.vertices.clone();
            let found = table.find(&loaded.vertices, &renamed(&before, &vertices));
            prop_assert!(table.prepare(loaded, found).is_ok());
            let mut ids = BTreeSet::new();
            let (mut differs, mut added, mut changed) = (Vec::new(), 0, 0);
            for vertex in &vertices {
                let id = table.number(&vertex.identity).expect("each has a number");
                prop_assert!(ids.insert(id), "a number of its own");
                prop_assert_eq!(&table.waiting(id).expect("it waits").identity, &vertex.identity);
                let was = expected(&before, vertex);
                prop_assert!(was.map_or_else(|| !before.contains_key(&id), |was| was == id));
                let was = was.and_then(|id| before.get(&id));
                added += usize::from(was.is_none());
                changed += usize::from(was.is_some_and(|was| was.definition != vertex.definition));
                let is_same = was.is_some_and(|was| {
                    (&was.identity, was.definition, was.protect)
                        == (&vertex.identity, vertex.definition, vertex.protect)
                });
                differs.extend((!is_same).then_some(id));
            }
            let gone: Vec<VertexId> =
                before.keys().filter(|id| !ids.contains(id)).copied().collect();
            let (_, change) = table.change().expect("it waits");
            let left = change.removed.count + change.retained.count;
            let told = (change.added.count, change.changed.count, left, change.unchanged);
            let kept = vertices.len() - added - changed;
            prop_assert_eq!(told, (added, changed, gone.len(), kept));
            if !installs {
                continue;
            }
            let installed = table.install();
            prop_assert_eq!(installed.differs, differs);
            for id in gone {
                prop_assert!(table.forget(id).is_some());
            }
            let now = running(&table);
            prop_assert_eq!(now.keys().copied().collect::<BTreeSet<_>>(), ids);
            for number in 0..9 {
                let name = format!("thing[{number}]");
                let runs = now.iter().find(|(_, vertex)| *vertex.identity == *name);
                prop_assert_eq!(table.number(&name), runs.map(|(id, _)| *id));
            }
        }
    }
}

/// E-17: a graph that the engine would reject leaves the waiting graph unchanged, with its names and numbers; the
/// waiting graph then runs.
#[test]
fn a_graph_that_is_refused_leaves_the_one_that_waits() {
    let plain = |name| (name, 0, false, None);
    let mut table = GraphRegistry::default();
    let found = table.find(&loaded(&[plain(0)]).vertices, &[]);
    assert!(table.prepare(loaded(&[plain(0)]), found).is_ok());
    assert_eq!(table.install().differs.len(), 1);
    let mut load = |declared: &[Declared], found: Option<Vec<IdAssignment>>| {
        let loaded = loaded(declared);
        let former = renamed(&running(&table), &loaded.vertices);
        let found = found.unwrap_or_else(|| table.find(&loaded.vertices, &former));
        let taken = table.prepare(loaded, found).is_ok();
        let number = |table: &GraphRegistry, name: u8| table.number(&format!("thing[{name}]"));
        (taken, table.change().is_some(), [0, 1, 2, 3].map(|name| number(&table, name)))
    };
    let waits = load(&[plain(1), (2, 0, false, Some(0))], None);
    let twice =
        vec![IdAssignment::New, IdAssignment::Known(VertexId(0)), IdAssignment::Known(VertexId(0))];
    let refused = load(&[plain(3), plain(0), plain(1)], Some(twice));
    assert_eq!(refused, (false, true, waits.2));
    let installed = table.install();
    assert_eq!(installed.differs.len(), 2);
    let names: Vec<_> = running(&table).values().map(|it| it.identity.to_string()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let next = loaded(&[plain(1), plain(2), plain(3)]);
    let found = table.find(&next.vertices, &[]);
    assert!(table.prepare(next, found).is_ok());
    let numbers: BTreeSet<_> = table.install().differs.into_iter().collect();
    assert_eq!(
        (numbers.len(), running(&table).len()),
        (1, 3),
        "one is new, with a number of its own"
    );
}
