//! E-19, automatic groups: about forty shapes, then random graphs.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use steadfast_engine::{
    Candidate, Contracted, Edge, Graph, Meta, SemaphoreId, Traits, VertexId, VertexSpec, contract,
};

/// Parses a shape: `a:p` is a vertex with the key p, `a` one without; `a:p!` is in noop, `a:p~` has a retry, `a:p/1/2`
/// has semaphores. `a>b` is an edge, `a>>b` one that notifies.
fn read(text: &str) -> (Vec<Candidate>, Vec<Edge>) {
    let id = |name: &str| VertexId(name.bytes().fold(0, |id, byte| id * 256 + u32::from(byte)));
    let (mut candidates, mut edges) = (Vec::new(), Vec::new());
    for word in text.split_whitespace() {
        if let Some((from, to)) = word.split_once('>') {
            let notify = to.starts_with('>');
            edges.push(Edge { from: id(from), to: id(to.trim_start_matches('>')), notify });
            continue;
        }
        let (word, semaphores) = word.split_once('/').unwrap_or((word, ""));
        let semaphores = semaphores.split('/').filter_map(|n| n.parse().ok().map(SemaphoreId));
        let (word, noop) = word.strip_suffix('!').map_or((word, false), |word| (word, true));
        let (word, retry) = word.strip_suffix('~').map_or((word, 0), |word| (word, 1));
        let (name, key) = word.split_once(':').unwrap_or((word, ""));
        let meta =
            Meta { noop, retry: Some(retry), semaphores: semaphores.collect(), ..Meta::default() };
        let key = key.bytes().next().map(u32::from);
        candidates.push(Candidate { id: id(name), key, meta: Arc::new(meta), leads: false });
    }
    (candidates, edges)
}

fn name(id: VertexId) -> String {
    id.0.to_be_bytes().into_iter().filter(|byte| *byte > 0).map(char::from).collect()
}

/// Formats the groups and the edges in the notation of [`read`].
fn told(contracted: &Contracted) -> String {
    let groups = contracted.groups.iter().map(|group| {
        let members: Vec<String> = group.members.iter().map(|id| name(*id)).collect();
        members.join("+")
    });
    let edges = contracted.edges.iter().map(|edge| {
        let arrow = if edge.notify { ">>" } else { ">" };
        format!("{}{arrow}{}", name(edge.from), name(edge.to))
    });
    groups.chain(edges).collect::<Vec<_>>().join(" ")
}

/// Shapes with their expected contraction. An edge of a group is shown at its first member.
const SHAPES: &[(&str, &str)] = &[
    ("", ""),
    ("a", ""),
    ("a:p", ""),
    // No edges.
    ("a:p b:p", "a+b"),
    ("a:p b:p c:p", "a+b+c"),
    ("a:p b:q", ""),
    ("a:p b:q c:p d:q", "a+c b+d"),
    ("a b", ""),
    ("a:p b", ""),
    // Never across a dependency.
    ("a:p b:p a>b", "a>b"),
    ("a:p b:p a>>b", "a>>b"),
    ("a:p x b:p a>x x>b", "a>x x>b"),
    ("a:p b:p c:p a>b", "a+c a>b"),
    ("a:p b:p c:p a>b b>c", "a>b b>c"),
    ("a:p b:p c:p a>c", "a+b a>c"),
    ("a:p x y b:p a>x x>y y>b", "a>x x>y y>b"),
    // A common parent, a common child.
    ("x a:p b:p x>a x>b", "a+b x>a"),
    ("x a:p b:p a>x b>x", "a+b a>x"),
    ("x y a:p b:p x>a y>b", "a+b x>a y>a"),
    ("x y a:p b:p a>x b>y", "a+b a>x a>y"),
    // One has a parent, the other none.
    ("x a:p b:p x>a", "a+b x>a"),
    ("x a:p b:p a>x", "a+b a>x"),
    ("x y z a:p b:p x>y y>z z>b", "a+b x>y y>z z>a"),
    // Notify flags are OR-ed.
    ("x a:p b:p x>a x>>b", "a+b x>>a"),
    ("x a:p b:p a>>x b>x", "a+b a>>x"),
    ("x a:p b:p a>>x b>>x", "a+b a>>x"),
    // Diamonds.
    ("a:p b:p c:p d:p a>b a>c b>d c>d", "b+c a>b b>d"),
    ("a:p x y d:p a>x a>y x>d y>d", "a>x a>y x>d y>d"),
    ("x b:p c:p y x>b x>c b>y c>y", "b+c b>y x>b"),
    ("x b:p c:p d:p x>b x>c b>d c>d", "b+c b>d x>b"),
    // Two layers.
    ("a:p b:p x c:p d:p a>x b>x x>c x>d", "a+b c+d a>x x>c"),
    ("a:p b:p c:p d:p a>c b>d", "a+b c+d a>c"),
    ("a:p b:p c:p d:p a>c a>d b>c b>>d", "a+b c+d a>>c"),
    ("a:p b:p c:p d:p e:p a>b b>c d>e", "a+d b+e a>b b>c"),
    // Two keys that would wait for each other: the second is grouped in the graph as contracted by the first.
    ("a:p b:q c:q d:p a>b c>d", "a+d a>b c>a"),
    ("a:p b:q c:q d:p a>b d>c", "a+d b+c a>b"),
    ("a:p b:q c:p d:q a>b c>d", "a+c b+d a>b"),
    ("a:p b:p x:q y:q a>x y>b x>z z", "a+b a>x x>z y>a"),
    // Metaparams: different ones prevent a group; semaphores are united.
    ("a:p b:p!", ""),
    ("a:p! b:p!", "a+b"),
    ("a:p b:p! c:p d:p!", "a+c b+d"),
    ("a:p b:p~ c:p~", "b+c"),
    ("a:p b:p/1", "a+b"),
    ("a:p/1 b:p/2 c:p/1/2", "a+b+c"),
    // Cycles are left to the code that reports them.
    ("a:p b:p a>b b>a", "a>b b>a"),
    ("a:p b:p c:p d:p a>b b>a", "c+d a>b b>a"),
    ("a:p b:p a>z", "a+b a>z"),
];

/// E-19: about forty shapes.
#[test]
fn shapes_become_what_they_should() {
    assert!(SHAPES.len() >= 40);
    for (shape, expected) in SHAPES {
        let (candidates, edges) = read(shape);
        assert_eq!(told(&contract(&candidates, &edges)), *expected, "{shape}");
    }
}

/// E-14: a group takes the union of the semaphores.
#[test]
fn semaphores_are_united() {
    let (candidates, edges) = read("a:p/2/7 b:p/1/2 c:p d:q/3");
    let contracted = contract(&candidates, &edges);
    let numbers: Vec<u32> = contracted.groups[0].meta.semaphores.iter().map(|s| s.0).collect();
    assert_eq!(numbers, [1, 2, 7]);
    assert_eq!(Meta { semaphores: Vec::new(), ..*contracted.groups[0].meta }, Meta::default());
}

/// E-19: a new member does not become the leader.
#[test]
fn a_group_leader_leads_again() {
    let (mut candidates, edges) = read("a:p b:p c:p");
    let leaders = |candidates: &[Candidate]| name(contract(candidates, &edges).groups[0].leader);
    assert_eq!(leaders(&candidates), "a");
    candidates[1].leads = true;
    assert_eq!(leaders(&candidates), "b");
    candidates[2].leads = true;
    assert_eq!(leaders(&candidates), "b");
}

fn anything() -> impl Strategy<Value = (Vec<Candidate>, Vec<Edge>)> {
    (1_u32..24).prop_flat_map(|count| {
        let vertex = (prop::option::weighted(0.8, 0_u32..3), any::<bool>(), 0_u32..3);
        let edge = (0..count, 0..count, any::<bool>());
        let edges = prop::collection::vec(edge, 0..(count as usize * 2));
        (prop::collection::vec(vertex, count as usize), edges).prop_map(|(vertices, edges)| {
            let candidate = |(id, (key, noop, semaphore)): (u32, (Option<u32>, bool, u32))| {
                let semaphores = (semaphore > 0).then_some(SemaphoreId(semaphore));
                let semaphores = semaphores.into_iter().collect();
                let meta = Arc::new(Meta { noop, semaphores, ..Meta::default() });
                Candidate { id: VertexId(id), key, meta, leads: false }
            };
            let edge = |(a, b, notify): (u32, u32, bool)| {
                let (from, to) = (VertexId(a.min(b)), VertexId(a.max(b)));
                (a != b).then_some(Edge { from, to, notify })
            };
            let vertices = (0..).zip(vertices).map(candidate).collect();
            (vertices, edges.into_iter().filter_map(edge).collect())
        })
    })
}

fn leaders(contracted: &Contracted) -> BTreeMap<VertexId, VertexId> {
    let each = |group: &steadfast_engine::Group| {
        let leader = group.leader;
        group.members.iter().map(move |member| (*member, leader)).collect::<Vec<_>>()
    };
    contracted.groups.iter().flat_map(each).collect()
}

/// Returns all vertices that can be reached from a vertex.
fn below(edges: &[Edge], from: VertexId) -> BTreeSet<VertexId> {
    let mut reached = BTreeSet::new();
    let mut left = vec![from];
    while let Some(at) = left.pop() {
        for edge in edges.iter().filter(|edge| edge.from == at) {
            if reached.insert(edge.to) {
                left.push(edge.to);
            }
        }
    }
    reached
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]
    /// E-19: the result is a valid graph, and contains every path of the input.
    #[test]
    fn a_contracted_graph_is_a_graph_with_all_paths((candidates, edges) in anything()) {
        let contracted = contract(&candidates, &edges);
        let leaders = leaders(&contracted);
        let leader = |id: VertexId| leaders.get(&id).copied().unwrap_or(id);
        let declared: Vec<VertexSpec> = candidates
            .iter()
            .filter(|vertex| leader(vertex.id) == vertex.id)
            .map(|vertex| VertexSpec {
                id: vertex.id,
                definition: 0,
                meta: Arc::new(Meta::default()),
                traits: Traits::default(),
            })
            .collect();
        prop_assert!(Graph::new(declared, contracted.edges.clone(), Vec::new()).is_ok());
        for edge in &edges {
            let same = |moved: &&Edge| (moved.from, moved.to) == (leader(edge.from), leader(edge.to));
            let moved = contracted.edges.iter().find(same);
            prop_assert!(moved.is_some_and(|moved| moved.notify || !edge.notify));
        }
    }

    /// E-19: members have one key and one set of metaparams, and no path joins them.
    #[test]
    fn members_may_be_one_transaction((candidates, edges) in anything()) {
        for group in contract(&candidates, &edges).groups {
            let of = |id: VertexId| candidates.iter().find(|vertex| vertex.id == id).unwrap();
            let first = of(group.members[0]);
            prop_assert!(first.key.is_some() && group.members.len() > 1);
            for member in &group.members {
                prop_assert_eq!(of(*member).key, first.key);
                prop_assert_eq!(of(*member).meta.noop, first.meta.noop);
                let below = below(&edges, *member);
                prop_assert!(!group.members.iter().any(|other| below.contains(other)));
                let semaphores = &of(*member).meta.semaphores;
                prop_assert!(semaphores.iter().all(|it| group.meta.semaphores.contains(it)));
            }
        }
    }

    /// E-19: no groups could be merged further: a path joins any two of a class.
    #[test]
    fn no_two_of_a_class_are_left_unjoined((candidates, edges) in anything()) {
        let contracted = contract(&candidates, &edges);
        let leaders = leaders(&contracted);
        let left: Vec<&Candidate> = candidates
            .iter()
            .filter(|vertex| leaders.get(&vertex.id).is_none_or(|leader| *leader == vertex.id))
            .collect();
        for one in left.iter().filter(|one| one.key.is_some()) {
            for other in left.iter().filter(|other| other.id > one.id && other.key == one.key) {
                if other.meta.noop == one.meta.noop {
                    let down = below(&contracted.edges, one.id).contains(&other.id);
                    let up = below(&contracted.edges, other.id).contains(&one.id);
                    prop_assert!(down || up, "{} and {}", one.id, other.id);
                }
            }
        }
    }

    /// E-19: each edge of the result comes from one between members, and notifies only if one of those does.
    #[test]
    fn every_edge_comes_from_one((candidates, edges) in anything()) {
        let contracted = contract(&candidates, &edges);
        let leaders = leaders(&contracted);
        let leader = |id: VertexId| leaders.get(&id).copied().unwrap_or(id);
        for moved in &contracted.edges {
            let from = |it: &&Edge| (leader(it.from), leader(it.to)) == (moved.from, moved.to);
            prop_assert!(edges.iter().any(|edge| from(&edge)), "{:?}", moved);
            let notifies = edges.iter().filter(from).any(|edge| edge.notify);
            prop_assert_eq!(moved.notify, notifies);
        }
        let meta = |id: VertexId| &candidates.iter().find(|it| it.id == id).unwrap().meta;
        for group in &contracted.groups {
            let all = group.members.iter().flat_map(|id| meta(*id).semaphores.iter().copied());
            let united: BTreeSet<SemaphoreId> = all.collect();
            prop_assert_eq!(&group.meta.semaphores, &united.into_iter().collect::<Vec<_>>());
        }
    }

    /// E-19: the membership of groups does not depend on numbers, and a leader stays the leader.
    #[test]
    fn numbers_are_of_no_account(
        (mut candidates, edges) in anything(),
        leading in prop::collection::btree_set(0_u32..24, 0..6),
    ) {
        let mirrored = |id: VertexId| VertexId(100 - id.0);
        let mut partition: Vec<Vec<VertexId>> =
            contract(&candidates, &edges).groups.into_iter().map(|group| group.members).collect();
        for vertex in &mut candidates {
            vertex.leads = leading.contains(&vertex.id.0);
        }
        for group in contract(&candidates, &edges).groups {
            let leads = |id: &&VertexId| leading.contains(&id.0);
            let expected = group.members.iter().find(leads).or_else(|| group.members.first());
            prop_assert_eq!(Some(&group.leader), expected);
        }
        for vertex in &mut candidates {
            vertex.id = mirrored(vertex.id);
        }
        let renamed = |edge: &Edge| Edge { from: mirrored(edge.from), to: mirrored(edge.to), ..*edge };
        let edges: Vec<Edge> = edges.iter().map(renamed).collect();
        let groups = contract(&candidates, &edges).groups;
        let back = |group: steadfast_engine::Group| {
            let mut members: Vec<VertexId> = group.members.into_iter().map(mirrored).collect();
            members.sort_unstable();
            members
        };
        let mut other: Vec<Vec<VertexId>> = groups.into_iter().map(back).collect();
        partition.sort_unstable();
        other.sort_unstable();
        prop_assert_eq!(partition, other);
    }

    /// E-19: the order of the input does not matter.
    #[test]
    fn the_order_of_what_is_given_does_not_matter(
        (candidates, edges) in anything(),
        turn in any::<prop::sample::Index>(),
    ) {
        let contracted = contract(&candidates, &edges);
        let by = turn.index(candidates.len());
        let (mut others, mut moved) = (candidates, edges);
        others.rotate_left(by);
        others.reverse();
        moved.reverse();
        prop_assert_eq!(contract(&others, &moved), contracted);
    }
}
